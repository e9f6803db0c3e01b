"""Cambricon's own layers, held to PyTorch and to loops over what its published program does."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from caffeforge.runtime.backends import find
from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.loaded import load
from tests.e2e.dialect_cases import Single, written
from tests.e2e.known_formulas import Floats, T
from tests.e2e.layer_cases import Random

BACKEND = find("cambricon")


def found(case: Single, folder: Path) -> Floats:
    prototxt, caffemodel, inputs = written([case], "cambricon", folder)
    (result,) = load(prototxt, caffemodel, BACKEND).run(inputs).values()
    return result


def same(case: Single, expected: Floats, folder: Path) -> None:
    result = found(case, folder)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_arithmetic_of_two_bottoms(tmp_path: Path) -> None:
    r = Random(1)
    x, y, each = r.normal(2, 3, 4, 5), r.normal(2, 3, 4, 5), r.normal(1, 3, 1, 1)
    results = {
        "Add": x + y, "Mult": x * y, "Sub": x - y,
        "CycleAdd": x + each, "CycleMult": x * each, "CycleSub": x - each,
    }  # fmt: skip
    for kind, expected in results.items():
        same(Single(kind, "", (x, each if "Cycle" in kind else y)), expected, tmp_path)


def test_square_roots_reversed_channels_and_a_frame_of_zeros(tmp_path: Path) -> None:
    x = np.abs(Random(2).normal(2, 3, 4, 5))
    same(Single("Sqrt", "", (x,)), np.sqrt(x), tmp_path)
    same(Single("Reverse", "", (x,)), x[:, ::-1], tmp_path)
    same(Single("AddPad", "addpad_param { pad: 2 }", (x,)), np.pad(x, [(0, 0)] * 2 + [(2, 2)] * 2), tmp_path)
    framed = np.pad(x, [(0, 0), (0, 0), (1, 1), (3, 3)])
    same(Single("AddPad", "addpad_param { pad_h: 1 pad_w: 3 }", (x,)), framed, tmp_path)


@pytest.mark.parametrize("strides", [(1, 1, 0, 0), (2, 1, 1, 0), (1, 2, 0, 1), (2, 3, 1, 2)])
def test_a_convolution_in_three_dimensions_is_pytorch_s(
    strides: tuple[int, int, int, int], tmp_path: Path
) -> None:
    (temporal, stride, before, pad), r = strides, Random(3)
    x, weights, bias = r.normal(2, 3, 5, 7, 6), r.normal(4, 3, 2, 3, 3), r.normal(1, 1, 1, 1, 4)
    text = (
        "convolution3d_param { num_output: 4 kernel_size: 3 kernel_depth: 2 filter_group: 2 "
        f"temporal_stride: {temporal} stride: {stride} temporal_pad: {before} pad: {pad} }}"
    )
    expected = functional.conv3d(
        T(x), T(weights), T(bias).flatten(), (temporal, stride, stride), (before, pad, pad)
    )
    same(Single("Convolution3D", text, (x,), (weights, bias)), expected.numpy(), tmp_path)


@pytest.mark.parametrize(
    ("kind", "size", "stride", "pad"),
    [("MAX", 2, 2, 0), ("MAX", 3, 2, 0), ("AVE", 2, 1, 0), ("AVE", 3, 2, 1), ("AVE", 3, 3, 2)],
)
def test_a_pool_in_three_dimensions_rounds_up(
    kind: str, size: int, stride: int, pad: int, tmp_path: Path
) -> None:
    """A mean is that over what lies in the bottom and its padding, and windows end where that ends."""
    x = Random(4).normal(2, 3, 5, 8, 6)
    windows, steps, edges = (2, size, size), (2, stride, stride), (0, pad, pad)
    text = f"pool: {kind} kernel_size: {size} kernel_depth: 2 stride: {stride} temporal_stride: 2 pad: {pad}"
    whole = np.pad(x, [(0, 0), (0, 0), *((edge, edge) for edge in edges)])
    counts = [-(-(n - w) // s) + 1 for n, w, s in zip(whole.shape[2:], windows, steps, strict=True)]
    expected = np.empty((2, 3, *counts), np.float32)
    for place in np.ndindex(*counts):
        cut = tuple(slice(i * s, i * s + w) for i, s, w in zip(place, steps, windows, strict=True))
        part = whole[..., cut[0], cut[1], cut[2]]
        expected[..., place[0], place[1], place[2]] = (
            part.max((2, 3, 4)) if kind == "MAX" else part.mean((2, 3, 4))
        )
    same(Single("Pooling3D", f"pooling3d_param {{ {text} }}", (x,)), expected, tmp_path)


def unpooled(x: Floats, kind: str, window: tuple[int, int], stride: int, pad: int) -> Floats:
    """Return what the program's loops over the windows of the result give."""
    n, c, rows, columns = x.shape
    high = (rows - 1) * stride - 2 * pad + window[0]
    wide = (columns - 1) * stride - 2 * pad + window[1]
    result, covers = np.zeros((n, c, high, wide), np.float32), np.zeros((high, wide))
    inside = {}
    for i, j in np.ndindex(rows, columns):
        top, left = i * stride - pad, j * stride - pad
        places = itertools.product(range(top, top + window[0]), range(left, left + window[1]))
        inside[i, j] = [(p, q) for p, q in places if 0 <= p < high and 0 <= q < wide]
        for place in inside[i, j]:
            covers[place] += 1
        middle = (2 * top + window[0] - 1) // 2, (2 * left + window[1] - 1) // 2
        if kind == "FIXED":
            result[:, :, middle[0], middle[1]] = x[:, :, i, j]
    if kind != "FIXED":
        for (i, j), places_of in inside.items():
            part = x[:, :, i, j] / (window[0] * window[1] if kind == "DIV" else 1)
            for p, q in places_of:
                result[:, :, p, q] += part / covers[p, q]
    return result


@pytest.mark.parametrize("kind", ["FIXED", "REP", "DIV"])
@pytest.mark.parametrize(
    ("window", "stride", "pad"), [((3, 3), 2, 1), ((2, 2), 2, 0), ((3, 2), 1, 0), ((2, 3), 4, 0)]
)
def test_unpooling_spreads_elements_over_windows(
    kind: str, window: tuple[int, int], stride: int, pad: int, tmp_path: Path
) -> None:
    x = Random(5).normal(2, 3, 3, 4)
    text = (
        f"unpooling_param {{ unpool: {kind} out_kernel_h: {window[0]} out_kernel_w: {window[1]} "
        f"out_stride: {stride} out_pad: {pad} }}"
    )
    same(Single("UnPooling", text, (x,)), unpooled(x, kind, window, stride, pad), tmp_path)


def test_a_layer_of_the_chip_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CaffeforgeError, match=r"MLUResizecrop.*: it runs on the MLU alone"):
        found(Single("MLUResizecrop", "", (Random(6).normal(1, 4, 8, 8),)), tmp_path)


@pytest.mark.parametrize(
    "twice", ["out_stride: 2 out_stride_h: 2 out_stride_w: 2", "out_pad: 1 out_pad_h: 1 out_pad_w: 1"]
)
def test_sizes_that_are_given_twice_are_refused(twice: str, tmp_path: Path) -> None:
    text = f"unpooling_param {{ out_kernel_size: 3 {twice} }}"
    with pytest.raises(CaffeforgeError, match="strides and paddings are given for both sides, or as one"):
        found(Single("UnPooling", text, (Random(7).normal(1, 2, 3, 4),)), tmp_path)


def test_windows_beyond_the_bottom_are_refused(tmp_path: Path) -> None:
    text = "pooling3d_param { kernel_size: 1 kernel_depth: 1 stride: 4 }"
    with pytest.raises(CaffeforgeError, match="a window lies outside the bottom"):
        found(Single("Pooling3D", text, (torch.zeros(1, 1, 6, 6, 6).numpy(),)), tmp_path)
