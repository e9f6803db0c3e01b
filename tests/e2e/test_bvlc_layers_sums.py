"""Layers that add, multiply and normalize: our reader against real Caffe, many settings a type."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caffeforge.generated.bvlc import layers
from tests.e2e.layer_cases import Floats, LayerCase, Random, check
from tests.real_caffe.witness import Witness

COUNT = 30


def shape_of(r: Random, axes: int) -> tuple[int, ...]:
    """Return sizes, the batch 1 or 3."""
    return (r.pick((1, 3)), *(r.size(3, 7) for _ in range(axes - 1)))


def batch_norm() -> list[LayerCase]:
    r = Random(1)
    made = []
    for _ in range(COUNT):
        x = r.normal(*shape_of(r, r.size(2, 5)))
        channels = x.shape[1]
        factor = np.array([r.pick((1.0, 0.0, 999.98, 0.3))], np.float32)
        blobs = [r.normal(channels) * factor[0], r.positive(channels) * factor[0], factor]
        stored = r.pick((None, True, False))
        param = layers.BatchNorm(use_global_stats=stored, eps=r.pick((None, 0.001, 0.1)))
        made.append(LayerCase(param, [x], blobs, varies=stored is not False or x.shape[0] > 1))
    return made


def run_of(r: Random, shape: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """Return an axis and the sizes of some axes from there on."""
    axis = r.size(0, len(shape) - 1)
    return axis, shape[axis : axis + r.size(1, len(shape) - axis)]


def scale_or_bias(scale: bool) -> list[LayerCase]:
    r = Random(2)
    made = []
    for index in range(COUNT):
        shape = shape_of(r, r.size(2, 4))
        axis, run = run_of(r, shape)
        given = r.pick((axis, axis - len(shape)))
        two = index % 2 == 0
        num_axes = None if two else r.pick((len(run), -1)) if axis + len(run) == len(shape) else len(run)
        biased = scale and r.pick((True, False))
        param = (
            layers.Scale(axis=given, num_axes=num_axes, bias_term=biased or None)
            if scale
            else layers.Bias(axis=given, num_axes=num_axes)
        )
        factors = [r.normal(*run)]
        bias: list[Floats] = [r.normal(*run)] if biased else []
        bottoms = [r.normal(*shape), *(factors if two else [])]
        made.append(LayerCase(param, bottoms, [*([] if two else factors), *bias]))
    scalar = layers.Scale(num_axes=0) if scale else layers.Bias(num_axes=0)
    made.append(LayerCase(scalar, [r.normal(2, 3)], [r.normal()]))
    return made


def eltwise() -> list[LayerCase]:
    r = Random(3)
    made = []
    for index in range(3 * COUNT):
        operation: Any = ("SUM", "PROD", "MAX")[index % 3]
        count = r.size(2, 5)
        coeff = (
            tuple(float(c) for c in r.normal(count)) if operation == "SUM" and r.pick((True, False)) else ()
        )
        shape = shape_of(r, r.size(1, 4))
        param = layers.Eltwise(operation=operation, coeff=coeff)
        made.append(LayerCase(param, [r.normal(*shape) for _ in range(count)], varies=len(shape) > 1))
    ones = (1.0, -1.0)
    made.append(LayerCase(layers.Eltwise(coeff=ones), [r.normal(2, 3), r.normal(2, 3)]))
    made.append(LayerCase(layers.Eltwise(operation="MAX", coeff=ones), [r.normal(2, 3), r.normal(2, 3)]))
    return made


def inner_product() -> list[LayerCase]:
    r = Random(4)
    made = []
    for _ in range(COUNT):
        shape = shape_of(r, r.size(2, 4))
        axis = r.pick((None, *range(-len(shape) + 1, len(shape))))
        start = 1 if axis is None else axis % len(shape)
        depth, outputs = int(np.prod(shape[start:])), r.size(2, 6)
        bias, transpose = r.pick((None, False)), r.pick((None, True))
        matrix = r.normal(depth, outputs) if transpose else r.normal(outputs, depth)
        param = layers.InnerProduct(num_output=outputs, axis=axis, bias_term=bias, transpose=transpose)
        blobs = [matrix] if bias is False else [matrix, r.normal(outputs)]
        made.append(LayerCase(param, [r.normal(*shape)], blobs))
    return made


def mvn() -> list[LayerCase]:
    r = Random(5)
    made = []
    for _ in range(COUNT):
        x = r.normal(r.pick((1, 3)), *(r.size(4, 8) for _ in range(r.size(2, 3))))
        param = layers.MVN(
            normalize_variance=r.pick((None, True, False)),
            across_channels=r.pick((None, True)),
            eps=r.pick((None, 1e-5, 0.5)),
        )
        made.append(LayerCase(param, [(x * r.pick((1, 0.01)) + r.pick((0, 0.05))).astype(np.float32)]))
    made.append(LayerCase(layers.MVN(across_channels=True), [r.normal(2, 9)]))
    return made


def reduction() -> list[LayerCase]:
    r = Random(6)
    made = []
    for index in range(4 * COUNT):
        shape = shape_of(r, r.size(2, 5))
        axis = r.pick((None, *range(-len(shape), len(shape))))
        kept = 0 if axis is None else axis % len(shape)
        operation: Any = (None, "ASUM", "SUMSQ", "MEAN")[index % 4]
        param = layers.Reduction(operation=operation, axis=axis, coeff=r.pick((None, 0.3, -2.0)))
        made.append(LayerCase(param, [r.normal(*shape)], varies=kept > 1))
    return made


def softmax() -> list[LayerCase]:
    r = Random(7)
    made = []
    for _ in range(COUNT):
        shape = shape_of(r, r.size(2, 4))
        axis = r.pick((None, *range(1 - len(shape), len(shape))))
        made.append(LayerCase(layers.Softmax(axis=axis), [r.normal(*shape, scale=4)], varies=axis != 0))
    return made


CASES: dict[str, Callable[[], list[LayerCase]]] = {
    "BatchNorm": batch_norm,
    "Bias": lambda: scale_or_bias(False),
    "Eltwise": eltwise,
    "InnerProduct": inner_product,
    "MVN": mvn,
    "Reduction": reduction,
    "Scale": lambda: scale_or_bias(True),
    "Softmax": softmax,
}


@pytest.mark.parametrize("kind", CASES)
def test_layer_computes_what_caffe_computes(kind: str, caffe: Witness, tmp_path: Path) -> None:
    check(CASES[kind](), caffe, tmp_path)


def test_second_caffe_agrees(kendryte: Witness, tmp_path: Path) -> None:
    """Its statistics of the batch (use_global_stats: false) are its own, so they are left out."""
    every = [case for cases in CASES.values() for case in cases()]
    check([c for c in every if getattr(c.param, "use_global_stats", None) is not False], kendryte, tmp_path)
