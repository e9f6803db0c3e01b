"""Convolutions and poolings of every kind as layers: real Caffe against onnxruntime and PyTorch."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from tests.e2e.layer_cases import Random, difference
from tests.e2e.op_cases import OpCase, check, written
from tests.real_caffe.witness import Witness

PADS = ((0, 0, 0, 0), (1, 1, 1, 1), (0, 1, 1, 0), (1, 0, 1, 0), (2, 0, 0, 1))
STRIDES = ((1, 1), (1, 2), (2, 3))
DILATIONS = ((1, 1), (2, 1))


def fields(**given: Any) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in given.items())


def torch_pads(pads: tuple[int, ...]) -> tuple[int, ...]:
    """Return ONNX's pads (begins, ends) as torch's: last axis first, begin and end side by side."""
    axes = len(pads) // 2
    return tuple(side for axis in reversed(range(axes)) for side in (pads[axis], pads[axis + axes]))


def convolutions() -> list[OpCase]:
    r = Random(1)
    made = []
    for strides, pads, dilations, group in itertools.product(STRIDES, PADS, DILATIONS, (1, 2)):
        w, b = r.normal(4, 4 // group, 3, 2), r.normal(4)

        def conv(
            x: Any,
            w: Any = w,
            b: Any = b,
            s: Any = strides,
            p: Any = pads,
            d: Any = dilations,
            g: int = group,
        ) -> Any:
            padded = functional.pad(torch.from_numpy(x).double(), torch_pads(p))
            weights = (torch.from_numpy(w).double(), torch.from_numpy(b).double())
            return functional.conv2d(padded, *weights, stride=s, dilation=d, groups=g).numpy()

        text = fields(kernel_shape=(3, 2), strides=strides, pads=pads, dilations=dilations, group=group)
        head = f"(x: float32[2, 4, 7, 8], *, W: float32[4, {4 // group}, 3, 2], B: float32[4])"
        made.append(OpCase(f"{head}: y = Conv(x, W, B, {text})", weights=[w, b], expected=conv))
    line = (
        "(x: float32[2, 3, 9], *, W: float32[4, 3, 3]): "
        "y = Conv(x, W, kernel_shape=(3,), strides=(2,), pads=(2, 1))"
    )
    cube = (
        "(x: float32[2, 3, 5, 6, 7], *, W: float32[4, 3, 3, 2, 2]): "
        "y = Conv(x, W, kernel_shape=(3, 2, 2), pads=(1, 0, 1, 0, 1, 1))"
    )
    return [*made, OpCase(line, weights=[r.normal(4, 3, 3)]), OpCase(cube, weights=[r.normal(4, 3, 3, 2, 2)])]


def transposed_convolutions() -> list[OpCase]:
    r = Random(2)
    made = []
    for dilations, extra, group, pads in itertools.product(
        ((1, 1), (2, 2)), ((0, 0), (1, 0), (1, 1)), (1, 2), ((0, 0, 0, 0), (1, 0, 1, 0), (0, 2, 1, 1))
    ):
        w, b = r.normal(4, 3, 3, 2), r.normal(3 * group)

        def conv(
            x: Any, w: Any = w, b: Any = b, d: Any = dilations, e: Any = extra, g: int = group, p: Any = pads
        ) -> Any:
            weights = (torch.from_numpy(w).double(), torch.from_numpy(b).double())
            whole = functional.conv_transpose2d(
                torch.from_numpy(x).double(), *weights, stride=(2, 3), output_padding=e, groups=g, dilation=d
            )
            height, width = whole.shape[2:]
            return whole[:, :, p[0] : height - p[2], p[1] : width - p[3]].numpy()

        text = fields(
            kernel_shape=(3, 2),
            strides=(2, 3),
            pads=pads,
            dilations=dilations,
            group=group,
            output_padding=extra,
        )
        head = f"(x: float32[3, 4, 5, 6], *, W: float32[4, 3, 3, 2], B: float32[{3 * group}])"
        made.append(OpCase(f"{head}: y = ConvTranspose(x, W, B, {text})", weights=[w, b], expected=conv))
    line = (
        "(x: float32[3, 4, 9], *, W: float32[4, 3, 3]): "
        "y = ConvTranspose(x, W, kernel_shape=(3,), strides=(2,), pads=(1, 1), output_padding=(1,))"
    )
    cube = (
        "(x: float32[1, 4, 5, 3, 4], *, W: float32[4, 3, 3, 2, 2]): "
        "y = ConvTranspose(x, W, kernel_shape=(3, 2, 2), strides=(2, 1, 3), output_padding=(1, 0, 1))"
    )
    return [*made, OpCase(line, weights=[r.normal(4, 3, 3)]), OpCase(cube, weights=[r.normal(4, 3, 3, 2, 2)])]


def max_pools() -> list[OpCase]:
    made = []
    for strides, pads, dilations in itertools.product(STRIDES, PADS, DILATIONS):

        def pool(x: Any, s: Any = strides, p: Any = pads, d: Any = dilations) -> Any:
            padded = functional.pad(torch.from_numpy(x), torch_pads(p), value=-torch.inf)
            return functional.max_pool2d(padded, (3, 2), s, dilation=d).numpy()

        text = fields(kernel_shape=(3, 2), strides=strides, pads=pads, dilations=dilations)
        if pads[0] < 3 and pads[1] < 2:
            made.append(OpCase(f"(x: float32[2, 3, 7, 8]): y = MaxPool(x, {text})", expected=pool))
    return made + other_pools("MaxPool")


def average_pools() -> list[OpCase]:
    made = []
    for strides, pads, dilations in itertools.product(STRIDES, PADS, DILATIONS):
        for counted in (0, 1):

            def pool(
                x: Any, s: Any = strides, p: Any = pads, d: Any = dilations, counted: int = counted
            ) -> Any:
                wide = torch.from_numpy(x).double()
                kernel = torch.ones(3, 1, 3, 2, dtype=torch.float64)

                def total(t: torch.Tensor) -> torch.Tensor:
                    return functional.conv2d(
                        functional.pad(t, torch_pads(p)), kernel, stride=s, dilation=d, groups=3
                    )

                return (total(wide) / (6 if counted else total(torch.ones_like(wide)))).numpy()

            text = fields(
                kernel_shape=(3, 2),
                strides=strides,
                pads=pads,
                dilations=dilations,
                count_include_pad=counted,
            )
            made.append(OpCase(f"(x: float32[2, 3, 7, 8]): y = AveragePool(x, {text})", expected=pool))
    return made + other_pools("AveragePool")


def other_pools(op: str) -> list[OpCase]:
    made = [
        OpCase(f"(x: float32[2, 3, 9]): y = {op}(x, kernel_shape=(3,), strides=(2,), pads=(1, 0))"),
        OpCase(f"(x: float32[2, 3, 9]): y = {op}(x, kernel_shape=(3,), strides=(2,), dilations=(2,))"),
        OpCase(f"(x: float32[2, 3, 4, 5, 6]): y = {op}(x, kernel_shape=(2, 3, 2), strides=(2, 1, 2))"),
        OpCase(f"(x: float32[2, 3, 4, 5]): y = Global{op}(x)"),
        OpCase(f"(x: float32[2, 3, 9]): y = Global{op}(x)"),
        OpCase(f"(x: float32[2, 3, 4, 5, 6]): y = Global{op}(x)"),
    ]
    padded = "kernel_shape=(2, 3, 2), strides=(2, 1, 2), pads=(1, 1, 0, 1, 1, 1)"
    if op == "MaxPool":
        made.append(OpCase(f"(x: float32[2, 3, 4, 5, 6]): y = MaxPool(x, {padded})"))
    return made


CASES = {
    "Conv": convolutions,
    "ConvTranspose": transposed_convolutions,
    "MaxPool": max_pools,
    "AveragePool": average_pools,
}


@pytest.mark.parametrize("op", CASES)
def test_op_as_layers(op: str, caffe: Witness, tmp_path: Path) -> None:
    check(CASES[op](), caffe, tmp_path)


def test_second_caffe_agrees(kendryte: Witness, tmp_path: Path) -> None:
    check([case for cases in CASES.values() for case in cases()], kendryte, tmp_path)


def test_local_response_normalization(caffe: Witness, tmp_path: Path) -> None:
    made = []
    for size, alpha, beta, bias in itertools.product((1, 3, 5), (0.1, 2.0), (0.5, 0.75), (0.5, 1.0)):

        def lrn(
            x: Any, size: int = size, alpha: float = alpha, beta: float = beta, bias: float = bias
        ) -> Any:
            wide = torch.from_numpy(x).double()
            return functional.local_response_norm(wide, size, alpha, beta, bias).numpy()

        text = fields(size=size, alpha=alpha, beta=beta, bias=bias)
        made.append(OpCase(f"(x: float32[3, 5, 4, 7]): y = LRN(x, {text})", expected=lrn))
    check(made, caffe, tmp_path)


@pytest.mark.parametrize(
    ("size", "shape"), [(2, (2, 5, 4, 3)), (4, (2, 5, 4, 3)), (3, (2, 5, 7)), (3, (2, 5, 2, 3, 4))]
)
def test_local_response_normalization_of_even_windows_and_other_ranks(
    size: int, shape: tuple[int, ...], caffe: Witness, tmp_path: Path
) -> None:
    """ONNX's even window reaches further behind than before; onnxruntime takes odd ones on four axes only."""
    x = Random(3).normal(*shape)
    text = f"(x: float32{list(shape)}): y = LRN(x, size={size}, alpha=0.7, beta=0.6, bias=1.5)"
    _, prototxt, caffemodel = written([OpCase(text).graph()], tmp_path)
    squares = x.astype(np.float64) ** 2
    sums = [squares[:, max(0, c - (size - 1) // 2) : c + size // 2 + 1].sum(1) for c in range(5)]
    expected = x / (1.5 + 0.7 / size * np.stack(sums, 1)) ** 0.6
    assert difference(caffe.run(prototxt, caffemodel, {"x": x})["y"], expected) < 1e-5
