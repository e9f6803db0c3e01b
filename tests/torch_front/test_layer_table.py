"""Layers with weights, windows, sizes or states: one line a configuration, see `table`."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.torch_front.checking import checked, seeded
from tests.torch_front.table import Line, check_line, lines

LINE = seeded(2, 6, 11)
IMAGE = seeded(2, 6, 9, 7)
CUBE = seeded(2, 6, 4, 5, 6)
ROW = seeded(3, 8)
WORDS = seeded(2, 5, 8)

ATTENTION = nn.MultiheadAttention(8, 2, batch_first=True).eval()
STATEFUL = nn.LSTM(8, 4, 2)

CONVOLUTIONS: list[Line] = [
    ("conv1d", nn.Conv1d(6, 4, 3, 2, 1, 2, groups=2), (LINE,), ["Conv"]),
    ("conv1d same", nn.Conv1d(6, 4, 3, padding="same"), (LINE,), ["Conv"]),
    ("conv3d", nn.Conv3d(6, 4, (1, 3, 3), (1, 2, 1), (0, 1, 1)), (CUBE,), ["Conv"]),
    ("conv of one padding", nn.Conv2d(6, 4, 3, padding=1, padding_mode="zeros"), (IMAGE,), ["Conv"]),
    (
        "conv padded by mirror",
        nn.Conv2d(6, 4, 3, padding=1, padding_mode="reflect"),
        (IMAGE,),
        ["Pad", "Conv"],
    ),
    ("transposed 1-D", nn.ConvTranspose1d(6, 4, 3, 2, 1, 1), (LINE,), ["ConvTranspose"]),
    ("transposed", nn.ConvTranspose2d(6, 4, 3, 2, 1, 1, groups=2, dilation=2), (IMAGE,), ["ConvTranspose"]),
    ("transposed and dilated", nn.ConvTranspose2d(6, 4, 3, 2, 2, 2, dilation=3), (IMAGE,), ["ConvTranspose"]),
    ("transposed 3-D", nn.ConvTranspose3d(6, 4, 2, 2, bias=False), (CUBE,), ["ConvTranspose"]),
    ("transposed to a size", lambda x: _to_size(x), (IMAGE,), ["ConvTranspose"]),
    ("unfold", nn.Unfold((3, 2), dilation=(1, 2), padding=1, stride=2), (IMAGE,), ["Conv", "Reshape"]),
    ("fold", nn.Fold((5, 6), (2, 3), padding=1, stride=(1, 2)), (seeded(2, 12, 18),), ["Col2Im"]),
]

POOLS: list[Line] = [
    ("max 1-D", nn.MaxPool1d(3, 2, 1, ceil_mode=True), (LINE,), ["MaxPool"]),
    ("max 3-D", nn.MaxPool3d((2, 3, 2), (1, 2, 2), dilation=(1, 2, 1)), (CUBE,), ["MaxPool"]),
    ("average 1-D", nn.AvgPool1d(3, 2, 1), (LINE,), ["AveragePool"]),
    ("average 3-D", nn.AvgPool3d(2, padding=1, count_include_pad=False), (CUBE,), ["AveragePool"]),
    ("average 3-D by halves", nn.AvgPool3d(3, 2, 1, ceil_mode=True), (CUBE,), None),
    ("adaptive 1-D", nn.AdaptiveAvgPool1d(1), (LINE,), ["GlobalAveragePool"]),
    ("adaptive 3-D", nn.AdaptiveAvgPool3d((1, 2, 3)), (CUBE,), None),
    ("adaptive max 3-D", nn.AdaptiveMaxPool3d(1), (CUBE,), ["GlobalMaxPool"]),
    ("power average", nn.LPPool2d(2, 2), (IMAGE,), None),
    ("max with places", nn.MaxPool2d(2, return_indices=True), (IMAGE,), ["MaxPool", "Mod"]),
    (
        "unpool",
        lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), (2, 2), output_size=(9, 7)),
        (IMAGE,),
        None,
    ),
]

NORMS: list[Line] = [
    ("batch norm 1-D", nn.BatchNorm1d(8), (ROW,), ["BatchNormalization"]),
    ("batch norm 3-D", nn.BatchNorm3d(6, affine=False), (CUBE,), ["BatchNormalization"]),
    ("layer norm", nn.LayerNorm(8), (WORDS,), ["LayerNormalization"]),
    ("layer norm of two axes", nn.LayerNorm((5, 8), eps=1e-3, bias=False), (WORDS,), ["LayerNormalization"]),
    (
        "layer norm without weights",
        nn.LayerNorm(8, elementwise_affine=False),
        (WORDS,),
        ["LayerNormalization"],
    ),
    ("rms norm", nn.RMSNorm(8), (WORDS,), ["RMSNormalization"]),
    ("rms norm with eps", nn.RMSNorm(8, 1e-3, elementwise_affine=False), (WORDS,), ["RMSNormalization"]),
    ("group norm", nn.GroupNorm(3, 6), (IMAGE,), ["GroupNormalization"]),
    ("group norm without weights", nn.GroupNorm(2, 6, affine=False), (LINE,), ["GroupNormalization"]),
    ("instance norm", nn.InstanceNorm2d(6, affine=True), (IMAGE,), ["InstanceNormalization"]),
    (
        "instance norm with statistics",
        nn.InstanceNorm2d(6, track_running_stats=True),
        (IMAGE,),
        ["BatchNormalization"],
    ),
    ("local response", nn.LocalResponseNorm(3), (IMAGE,), None),
    ("weight norm", nn.utils.parametrizations.weight_norm(nn.Linear(8, 3)), (ROW,), ["Gemm"]),
]

SIZES: list[Line] = [
    *[
        (
            f"{mode} {how}",
            lambda x, mode=mode, how=how: F.interpolate(x, mode=mode, **how),
            (IMAGE,),
            ["Resize"],
        )
        for mode in ("nearest", "nearest-exact", "bilinear", "bicubic")
        for how in ({"scale_factor": 2}, {"size": (5, 13)}, {"scale_factor": (0.6, 1.7)})
    ],
    *[
        (
            f"{mode} aligned",
            lambda x, mode=mode: F.interpolate(x, size=(5, 13), mode=mode, align_corners=True),
            (IMAGE,),
            ["Resize"],
        )
        for mode in ("bilinear", "bicubic")
    ],
    *[
        (
            f"{mode} antialiased {size}",
            lambda x, mode=mode, size=size: F.interpolate(x, size=size, mode=mode, antialias=True),
            (IMAGE,),
            ["Resize"],
        )
        for mode in ("bilinear", "bicubic")
        for size in ((4, 3), (13, 5))
    ],
    (
        "antialiased and aligned",
        lambda x: F.interpolate(x, size=(4, 3), mode="bilinear", antialias=True, align_corners=True),
        (IMAGE,),
        ["MatMul", "MatMul"],
    ),
    ("nearest 1-D", lambda x: F.interpolate(x, scale_factor=1.5), (LINE,), ["Resize"]),
    ("linear 1-D", lambda x: F.interpolate(x, 17, mode="linear"), (LINE,), ["Resize"]),
    ("nearest 3-D", lambda x: F.interpolate(x, (3, 7, 6)), (CUBE,), ["Resize"]),
    ("trilinear", lambda x: F.interpolate(x, (3, 7, 6), mode="trilinear"), (CUBE,), ["Resize"]),
    ("area", lambda x: F.interpolate(x, (3, 4), mode="area"), (IMAGE,), None),
    *[
        (
            f"grid sample {mode} {padding} {aligned}",
            lambda x, g, m=mode, p=padding, a=aligned: F.grid_sample(x, g, m, p, a),
            (IMAGE, seeded(2, 5, 6, 2)),
            ["GridSample"],
        )
        for mode in ("bilinear", "nearest", "bicubic")
        for padding in ("zeros", "border", "reflection")
        for aligned in (False, True)
    ],
    (
        "affine grid",
        lambda t: F.affine_grid(t, [2, 3, 4, 5], align_corners=False),
        (seeded(2, 2, 3),),
        ["AffineGrid"],
    ),
]

PRODUCTS: list[Line] = [
    ("matmul", torch.matmul, (WORDS, seeded(8, 3)), ["MatMul"]),
    ("matmul of vectors", torch.matmul, (WORDS, seeded(8)), ["MatMul"]),
    ("bmm", torch.bmm, (WORDS, seeded(2, 8, 3)), ["MatMul"]),
    ("mv", torch.mv, (ROW, seeded(8)), ["MatMul"]),
    ("outer", torch.outer, (seeded(3), seeded(4)), ["Reshape", "Reshape", "Mul"]),
    (
        "addmm",
        lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2),
        (seeded(3), ROW, seeded(8, 3)),
        ["Gemm"],
    ),
    ("baddbmm", torch.baddbmm, (seeded(2, 5, 3), WORDS, seeded(2, 8, 3)), ["MatMul", "Add"]),
    ("linear of words", nn.Linear(8, 3), (WORDS,), ["MatMul", "Add"]),
    ("bilinear", nn.Bilinear(8, 4, 3), (ROW, seeded(3, 4)), ["Einsum", "Add"]),
    ("einsum", lambda a, b: torch.einsum("bqd, bkd -> bqk", a, b), (WORDS, seeded(2, 7, 8)), ["Einsum"]),
    ("einsum without result", lambda a, b: torch.einsum("ij,jk", a, b), (ROW, seeded(8, 3)), ["Einsum"]),
    ("einsum with dots", lambda a: torch.einsum("...ij->...ji", a), (WORDS,), ["Einsum"]),
    ("cdist", torch.cdist, (WORDS, seeded(2, 3, 8)), None),
    (
        "attention",
        F.scaled_dot_product_attention,
        (WORDS, WORDS, WORDS),
        ["Mul", "Transpose", "MatMul", "Softmax", "MatMul"],
    ),
    ("causal attention", lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), (WORDS,), None),
    (
        "attention with a mask",
        lambda q, m: F.scaled_dot_product_attention(q, q, q, m),
        (WORDS, seeded(5, 5)),
        None,
    ),
    (
        "attention with a choice",
        lambda q, m: F.scaled_dot_product_attention(q, q, q, m > 0.5),
        (WORDS, seeded(5, 5)),
        None,
    ),
    (
        "attention of groups",
        lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True, scale=0.3),
        (seeded(2, 4, 5, 8), seeded(2, 2, 6, 8)),
        None,
    ),
    (
        "multi-head attention",
        lambda q: ATTENTION(q, q, q),
        (WORDS,),
        None,
    ),
    ("transformer layer", nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (WORDS,), None),
]

RECURRENT: list[Line] = [
    ("lstm", nn.LSTM(8, 4), (WORDS,), ["LSTM", "Reshape"]),
    (
        "lstm of two layers both ways",
        nn.LSTM(8, 4, 2, bidirectional=True, batch_first=True, dropout=0.3),
        (WORDS,),
        None,
    ),
    ("lstm without bias", nn.LSTM(8, 4, bias=False), (WORDS,), ["LSTM", "Reshape"]),
    (
        "lstm with states",
        lambda x, h, c: STATEFUL(x, (h, c)),
        (WORDS, seeded(2, 5, 4), seeded(2, 5, 4, seed=2)),
        None,
    ),
    ("lstm of one sequence", nn.LSTM(8, 4), (ROW,), None),
    ("gru", nn.GRU(8, 4, 2, bidirectional=True), (WORDS,), None),
    ("rnn", nn.RNN(8, 4, batch_first=True), (WORDS,), None),
    ("rnn with relu", nn.RNN(8, 4, nonlinearity="relu"), (WORDS,), None),
    ("lstm cell", nn.LSTMCell(8, 4), (ROW,), None),
    ("gru cell", nn.GRUCell(8, 4), (ROW,), None),
]

TABLES = {
    "convolution": CONVOLUTIONS,
    "pool": POOLS,
    "norm": NORMS,
    "size": SIZES,
    "product": PRODUCTS,
    "recurrent": RECURRENT,
}


def _to_size(x: torch.Tensor) -> torch.Tensor:
    return F.conv_transpose2d(x, torch.ones(6, 2, 3, 3), stride=2, output_padding=(1, 0))


def test_first_states_of_zero_are_left_out() -> None:
    (lstm, _) = checked(nn.LSTM(8, 4), WORDS).graph.nodes
    assert len(lstm.inputs) == 4


@pytest.mark.parametrize(("function", "inputs", "expected"), lines(TABLES))
def test_layer_computes_what_pytorch_does(
    function: Any, inputs: tuple[torch.Tensor, ...], expected: list[str] | None
) -> None:
    check_line(function, inputs, expected)
