"""Scales and shifts in the weights beside them: the layers that are left, and that real Caffe agrees.

By default nothing goes away that a module returns; with ``fold=True`` layers of different modules join too.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.e2e.layer_cases import Random
from tests.e2e.op_cases import OpCase, check, kinds, written
from tests.real_caffe.witness import Witness

R = Random(31)
SHAPES: Mapping[str, tuple[int, ...]] = {
    "c": (6, 1, 1),
    "d": (6, 1, 1),
    "i": (4, 1, 1),
    "j": (4, 1, 1),
    "k": (6, 4, 3, 3),
    "b": (6,),
    "g": (6, 2, 3, 3),
    "t": (4, 3, 3, 3),
    "w": (5, 6),
    "v": (6,),
    "r": (5,),
    "q": (30, 4),
    "m": (4, 6, 5),
}
CONV = "kernel_shape=(3, 3), pads=(1, 1, 1, 1)"

# The lines of a net of x, (2, 4, 6, 5), with random constants of the shapes above; and its layers.
CASES = {
    f"a = Conv(x, k, {CONV}); y = Mul(a, c)": "Convolution",
    f"a = Conv(x, k, b, {CONV}); e = Mul(a, c); y = Add(e, d)": "Convolution",
    f"a = Conv(x, g, {CONV}, group=2); e = Sub(a, d); y = Mul(e, 0.5)": "Convolution",
    f"a = ConvTranspose(x, t, {CONV}, group=2); e = Mul(a, c); y = Sub(1.5, e)": "Deconvolution",
    "a = MatMul(x, w); e = Mul(a, v); y = Add(e, v)": "InnerProduct",
    "a = MatMul(x, w); y = Mul(a, v)": "InnerProduct",
    # Before the product; a shift only where no padding of zeros comes between.
    f"a = Mul(x, i); y = Conv(a, k, b, {CONV})": "Convolution",
    f"a = Mul(x, i); e = Add(a, j); y = Conv(e, k, b, {CONV})": "Scale Convolution",
    "a = Mul(x, i); e = Add(a, j); y = Conv(e, g, b, kernel_shape=(3, 3), group=2)": "Convolution",
    "a = Sub(x, 0.5); e = Div(a, 0.2); y = Conv(e, k, kernel_shape=(3, 3))": "Convolution",
    f"a = Mul(x, i); y = ConvTranspose(a, t, {CONV}, group=2)": "Deconvolution",
    f"a = Add(x, i); y = ConvTranspose(a, t, {CONV}, group=2)": "Bias Deconvolution",
    "a = Mul(x, r); e = Add(a, r); y = MatMul(e, w)": "InnerProduct",
    # What a shift may cancel stays.
    "a = Sub(x, 100.0); y = Conv(a, k, kernel_shape=(3, 3))": "Power Convolution",
    # Along another axis, or where something else reads what would go away.
    f"a = Conv(x, k, {CONV}); y = Mul(a, r)": "Convolution Scale",
    f"a = Conv(x, k, {CONV}); e = Mul(a, c); f = Relu(a); y = Add(e, f)": "Convolution Scale ReLU Eltwise",
    # Two that have the weights in common.
    f"a = Conv(x, k, {CONV}); e = Mul(a, c); f = Conv(x, k, {CONV}); y = Mul(e, f)": (
        "Convolution Scale Convolution Eltwise"
    ),
    # Through what moves elements.
    f"a = Conv(x, k, {CONV}); e = Reshape(a, shape=(0, 6, 30)); y = Mul(e, 3.0)": "Convolution Reshape",
    "a = MatMul(x, w); e, f = Split(a, axis=3, split=(2, 4)); h = Mul(e, 3.0); y = Concat(h, f, axis=3)": (
        "InnerProduct Slice Concat"
    ),
    "a = MatMul(x, w); e, f = Split(a, axis=2, split=(2, 4)); h = Mul(e, 3.0); y = Concat(h, f, axis=2)": (
        "InnerProduct Slice Power Concat"
    ),
    "a = Mul(x, i); e = Reshape(a, shape=(2, 4, 30)); f = Reshape(e, shape=(0, 120)); y = Gemm(f, z)": (
        "Reshape InnerProduct"
    ),
}
SIZES = {**SHAPES, "z": (120, 3)}


def case(lines: str) -> OpCase:
    """Return a net, with what it names as parameters and its numbers as constants."""
    import re

    names = [name for name in SIZES if re.search(rf"[(, ]{name}[,)]", lines)]
    constants = [f"{name}: float32{list(SIZES[name])}" for name in names]
    for index, number in enumerate(dict.fromkeys(re.findall(r"(?<=[(, ])\d+\.\d+", lines))):
        constants.append(f"n{index}: float32[] = {number}")
        lines = re.sub(rf"(?<=[(, ]){re.escape(number)}(?=[,)])", f"n{index}", lines)
    head = ", ".join(["x: float32[2, 4, 6, 5]", "*", *constants])
    return OpCase(f"({head}): {lines}", weights=[R.normal(*SIZES[name]) for name in names])


def test_nets_with_scales_in_weights_compute_the_same(caffe: Witness, tmp_path: Path) -> None:
    assert check([case(lines) for lines in CASES], caffe, tmp_path) < 2e-6


@pytest.mark.parametrize(("lines", "layers"), CASES.items())
def test_weights_hold_scales(lines: str, layers: str, tmp_path: Path) -> None:
    graph = case(lines).graph()
    net, *_ = written([graph], tmp_path)
    assert kinds(net, graph) == layers
