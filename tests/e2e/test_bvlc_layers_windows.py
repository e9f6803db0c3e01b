"""Layers with windows over height and width: our reader against real Caffe, many settings a type."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caffeforge.generated.bvlc import BACKEND, layers
from caffeforge.runtime.caffe_files import write_files
from caffeforge.runtime.errors import ReadError
from caffeforge.runtime.lib import caffe_windows_inside, window_count
from caffeforge.runtime.loaded import load
from tests.e2e.layer_cases import LayerCase, Random, check, net_of
from tests.real_caffe.witness import Witness

COUNT = 30
Sizes = tuple[int, ...]


def sides(r: Random, name: str, values: Sizes) -> dict[str, Any]:
    """Return fields of a convolution or pooling that say `values`, in one of the ways that Caffe knows."""
    if len(values) == 2 and r.pick((False, True)):
        return {f"{name}_h": values[0], f"{name}_w": values[1]}
    key = "kernel_size" if name == "kernel" else name
    return {key: values if len(set(values)) > 1 or r.pick((False, True)) else values[:1]}


def convolution_fields(r: Random, axes: int, sizes: Sizes) -> tuple[dict[str, Any], Sizes]:
    """Return random window fields that fit `sizes`, and the window."""
    while True:
        kernel, stride, pad, dilation = (
            tuple(r.size(low, high) for _ in range(axes)) for low, high in ((1, 3), (1, 3), (0, 2), (1, 2))
        )
        if all(count > 0 for count in window_count(sizes, kernel, stride, pad, dilation)):
            break
    fields = sides(r, "kernel", kernel) | sides(r, "stride", stride) | sides(r, "pad", pad)
    return fields | {"dilation": dilation if max(dilation) > 1 else ()}, kernel


def convolution(transposed: bool) -> list[LayerCase]:
    r = Random(1)
    made = []
    for index in range(COUNT):
        axes = 2 if index % 3 else r.pick((1, 3))
        group = r.pick((1, 1, 2, 3))
        channels, outputs = group * r.size(1, 3), group * r.size(1, 3)
        sizes = tuple(r.size(5, 9) for _ in range(axes))
        fields, kernel = convolution_fields(r, axes, sizes)
        bias = r.pick((True, False))
        weights = (
            r.normal(channels, outputs // group, *kernel)
            if transposed
            else r.normal(outputs, channels // group, *kernel)
        )
        fields |= {"num_output": outputs, "group": group, "bias_term": None if bias else False}
        param = layers.Deconvolution(**fields) if transposed else layers.Convolution(**fields)
        x = r.normal(r.pick((1, 3)), channels, *sizes)
        made.append(LayerCase(param, [x], [weights, r.normal(outputs)] if bias else [weights]))
    return made + along_another_axis(transposed)


def along_another_axis(transposed: bool) -> list[LayerCase]:
    """Return cases whose channels are the first, the third or the last but one axis."""
    r = Random(2)
    made = []
    for axis, shape in ((0, (4, 5, 6)), (2, (2, 3, 4, 5, 6)), (-2, (3, 2, 4, 7))):
        spatial = len(shape) - axis % len(shape) - 1
        fields: dict[str, Any] = {
            "num_output": 4,
            "axis": axis,
            "kernel_size": (2,),
            "stride": (2,),
            "bias_term": False,
        }
        param = layers.Deconvolution(**fields) if transposed else layers.Convolution(**fields)
        made.append(LayerCase(param, [r.normal(*shape)], [r.normal(4, 4, *(2,) * spatial)]))
    return made


def im2col() -> list[LayerCase]:
    r = Random(3)
    made = []
    for index in range(COUNT):
        axes = 2 if index % 3 else r.pick((1, 3))
        sizes = tuple(r.size(4, 7) for _ in range(axes))
        fields, _ = convolution_fields(r, axes, sizes)
        made.append(LayerCase(layers.Im2col(**fields), [r.normal(r.pick((1, 3)), r.size(1, 4), *sizes)]))
    made.append(LayerCase(layers.Im2col(kernel_size=(2,), axis=2), [r.normal(2, 3, 2, 4, 5)]))
    return made


def pooling(pool: Any, tops: int = 1) -> list[LayerCase]:
    r = Random(4)
    made: list[LayerCase] = []
    while len(made) < COUNT:
        sizes = (r.size(3, 12), r.size(3, 12))
        kernel, stride, pad = ((r.size(a, b), r.size(a, b)) for a, b in ((1, 4), (1, 4), (0, 2)))
        if r.pick((True, False, False)):
            kernel, stride, pad = ((pair[0],) * 2 for pair in (kernel, stride, pad))
        inside = caffe_windows_inside(sizes, kernel, stride, pad)
        if not inside or any(k > s + 2 * p for k, s, p in zip(kernel, sizes, pad, strict=True)):
            continue
        names = {"kernel_h": kernel[0], "kernel_w": kernel[1], "stride_h": stride[0], "stride_w": stride[1]}
        fields: dict[str, Any] = names | {"pad_h": pad[0], "pad_w": pad[1]}
        if all(len(set(pair)) == 1 for pair in (kernel, stride, pad)):
            fields = {"kernel_size": kernel[0], "stride": stride[0], "pad": pad[0]}
        x = r.normal(r.pick((1, 3)), r.size(1, 4), *sizes)
        made.append(LayerCase(layers.Pooling(pool=pool, **fields), [x], tops=tops))
    ties = r.whole(3, 2, 3, 7, 6)
    made.append(LayerCase(layers.Pooling(pool=pool, kernel_size=3, stride=2), [ties], tops=tops))
    made.append(LayerCase(layers.Pooling(pool=pool, global_pooling=True), [r.normal(3, 4, 5, 7)], tops=tops))
    return made


def lrn(region: Any) -> list[LayerCase]:
    r = Random(5)
    made = []
    for _ in range(COUNT):
        param = layers.LRN(
            local_size=r.pick((None, 1, 3, 7)),
            alpha=r.pick((None, 0.1, 2.0)),
            beta=r.pick((None, 0.5, 1.0)),
            k=r.pick((None, 2.0, 0.5)),
            norm_region=region,
        )
        made.append(LayerCase(param, [r.normal(r.pick((1, 3)), r.size(1, 9), r.size(3, 8), r.size(3, 8))]))
    return made


def spp() -> list[LayerCase]:
    r = Random(6)
    made = []
    for index in range(COUNT):
        height = index % 3 + 1
        sizes = (r.pick((8, 9, 11, 12, 16, 17)), r.pick((8, 10, 13, 15, 16)))
        x = r.normal(r.pick((1, 3)), r.size(2, 4), *sizes)
        made.append(LayerCase(layers.SPP(pyramid_height=height, pool=r.pick((None, "AVE"))), [x]))
    return made


CASES: dict[str, Callable[[], list[LayerCase]]] = {
    "Convolution": lambda: convolution(False),
    "Deconvolution": lambda: convolution(True),
    "Im2col": im2col,
    "LRN across": lambda: lrn(None),
    "LRN within": lambda: lrn("WITHIN_CHANNEL"),
    "Pooling MAX": lambda: pooling("MAX"),
    "Pooling MAX with mask": lambda: pooling("MAX", tops=2),
    "Pooling AVE": lambda: pooling("AVE"),
    "SPP": spp,
}


@pytest.mark.parametrize("kind", CASES)
def test_layer_computes_what_caffe_computes(kind: str, caffe: Witness, tmp_path: Path) -> None:
    check(CASES[kind](), caffe, tmp_path)


def test_second_caffe_agrees(kendryte: Witness, tmp_path: Path) -> None:
    check([case for cases in CASES.values() for case in cases()], kendryte, tmp_path)


def test_stochastic_pooling_takes_the_mean_weighted_by_value(tmp_path: Path) -> None:
    """Caffe has this for the GPU only: the reference is its formula, over windows that may overhang."""
    x = np.maximum(Random(7).normal(2, 3, 5, 6), 0)
    x[0, 0] = 0
    case = LayerCase(layers.Pooling(pool="STOCHASTIC", kernel_size=2, stride=2), [x])
    net, inputs = net_of([case])
    prototxt, caffemodel, _ = write_files(net, BACKEND, tmp_path / "net", "{}\n")
    found = load(prototxt, caffemodel, BACKEND).run(inputs)["y0_0"]
    expected = np.zeros((2, 3, 3, 3))
    for row in range(3):
        for column in range(3):
            window = x[:, :, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2].astype(np.float64)
            total = window.sum((2, 3))
            squares = (window**2).sum((2, 3))
            expected[:, :, row, column] = np.divide(squares, total, out=np.zeros((2, 3)), where=total > 0)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (LayerCase(layers.LRN(local_size=4), [np.ones((1, 2, 3, 3), np.float32)]), "local_size must be odd"),
        (LayerCase(layers.LRN(), [np.ones((1, 2, 3), np.float32)]), "four axes"),
        (
            LayerCase(layers.SPP(pyramid_height=3), [np.ones((1, 2, 1, 9), np.float32)]),
            "more bins than the bottom has places",
        ),
        (
            LayerCase(layers.Im2col(kernel_size=(5,)), [np.ones((1, 2, 3, 9), np.float32)]),
            "window is larger than the bottom",
        ),
        (
            LayerCase(
                layers.Pooling(pool="STOCHASTIC", kernel_size=2, pad=1), [np.ones((1, 2, 3, 3), np.float32)]
            ),
            "STOCHASTIC without padding",
        ),
    ],
)
def test_what_caffe_does_not_take_is_refused(case: LayerCase, reason: str, tmp_path: Path) -> None:
    net, _ = net_of([case])
    prototxt, caffemodel, _ = write_files(net, BACKEND, tmp_path / "net", "{}\n")
    with pytest.raises(ReadError, match=reason):
        load(prototxt, caffemodel, BACKEND)
