"""One line a configuration: what a function or module becomes, and that it computes what PyTorch does.

A line gives the ops of the graph where they must stay whole or must be just these; None where only the
values count.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.torch_front.checking import seeded
from tests.torch_front.table import Line, check_line, lines

A = seeded(2, 6, 4, 5)
B = seeded(2, 6, 4, 5, seed=1)
ROW = seeded(3, 8)
LINE = seeded(2, 3, 11)
CUBE = seeded(2, 3, 4, 5, 6)
POSITIVE = seeded(3, 5).sigmoid()  # where all functions are defined
IDS = torch.tensor([[0, 2, 1, 4], [3, 3, 0, 1]])

FUNCTIONS = """
    exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square abs neg sign floor ceil round trunc frac
    sin cos tan asin acos atan sinh cosh asinh atanh erf erfc isnan isinf isfinite signbit logit sinc deg2rad
    nan_to_num positive sigmoid
"""

ACTIVATIONS: list[Line] = [
    ("silu", nn.SiLU(inplace=True), (A,), ["Swish"]),
    ("hardswish", nn.Hardswish(inplace=True), (A * 3,), ["HardSwish"]),
    ("hardsigmoid", nn.Hardsigmoid(), (A * 3,), ["HardSigmoid"]),
    ("mish", nn.Mish(), (A,), ["Mish"]),
    ("gelu", nn.GELU(), (A,), ["Gelu"]),
    ("gelu by tanh", nn.GELU(approximate="tanh"), (A,), ["Gelu"]),
    ("elu", nn.ELU(0.7), (A,), ["Elu"]),
    ("selu", nn.SELU(), (A,), ["Selu"]),
    ("celu", nn.CELU(1.5), (A,), ["Celu"]),
    ("prelu of channels", nn.PReLU(6, 0.2), (A,), ["PRelu"]),
    ("prelu of one slope", nn.PReLU(), (A,), ["PRelu"]),
    ("prelu of a matrix", nn.PReLU(8), (ROW,), ["PRelu"]),
    ("rrelu", nn.RReLU(), (A,), ["LeakyRelu"]),
    ("softplus", nn.Softplus(), (A * 9,), ["Softplus"]),
    ("softplus with beta", nn.Softplus(2, 15), (A * 9,), ["Mul", "Softplus", "Div"]),
    ("softplus with low threshold", nn.Softplus(1, 1), (A,), None),
    ("softsign", nn.Softsign(), (A,), None),
    ("tanhshrink", nn.Tanhshrink(), (A,), None),
    ("hardshrink", nn.Hardshrink(0.3), (A,), ["Shrink"]),
    ("softshrink", nn.Softshrink(0.3), (A,), ["Shrink"]),
    ("threshold", nn.Threshold(0.3, 0.0), (A,), ["ThresholdedRelu"]),
    ("threshold with value", nn.Threshold(0.3, -2.0), (A,), ["Greater", "Where"]),
    ("logsigmoid", nn.LogSigmoid(), (A,), ["Neg", "Softplus", "Neg"]),
    ("glu", nn.GLU(1), (A,), ["Split", "Sigmoid", "Mul"]),
    ("log_softmax", nn.LogSoftmax(1), (A,), ["LogSoftmax"]),
    ("softmin", nn.Softmin(1), (A,), ["Neg", "Softmax"]),
    ("softmax of a scalar", lambda x: x.sum().softmax(0), (A,), None),
    ("clamp by tensors", lambda x, y: torch.clamp(x, y - 1, y + 1), (A, B), ["Sub", "Add", "Max", "Min"]),
    ("clamp with crossed bounds", lambda x: x.clamp(0.5, -0.5), (A,), ["Clip"]),
    ("clamp of integers", lambda x: x.clamp(1, 3), (IDS,), ["Clip"]),
    ("relu of integers", lambda x: F.relu(x - 2), (IDS,), ["Sub", "Max"]),
]

POINTWISE: list[Line] = [
    *[(name, getattr(torch, name), (POSITIVE,), None) for name in re.findall(r"\w+", FUNCTIONS)],
    ("acosh", torch.acosh, (POSITIVE + 1,), ["Acosh"]),
    ("rounding halves", torch.round, (torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5]),), ["Round"]),
    ("round to decimals", lambda x: torch.round(x, decimals=1), (A,), None),
    ("trunc of negatives", torch.trunc, (A * 3,), None),
    ("log1p of small", torch.log1p, (A * 1e-5,), None),
    ("expm1 of small", torch.expm1, (A * 1e-5,), None),
    ("sin of integers", torch.sin, (IDS,), ["Cast", "Sin"]),
    ("floor of integers", torch.floor, (IDS + 1,), ["Identity"]),
    ("isnan", torch.isnan, (torch.tensor([1.0, torch.nan, torch.inf]),), ["IsNaN"]),
    ("isinf", torch.isinf, (torch.tensor([1.0, torch.nan, -torch.inf]),), ["IsInf"]),
    ("isfinite", torch.isfinite, (torch.tensor([1.0, torch.nan, -torch.inf]),), None),
    ("pow by a number", lambda x: x**3, (A,), ["Pow"]),
    ("square root by pow", lambda x: x**0.5, (POSITIVE,), ["Pow"]),
    ("number to a power", lambda x: 2**x, (A,), ["Pow"]),
    ("pow of tensors", torch.pow, (POSITIVE, seeded(3, 5)), ["Pow"]),
    ("pow of integers", lambda x: x**2, (IDS,), ["Pow"]),
    ("atan2", torch.atan2, (A, B), None),
    (
        "atan2 on the axes",
        torch.atan2,
        (torch.tensor([0.0, 1, -1, 0, 0]), torch.tensor([1.0, 0, 0, -1, 0])),
        None,
    ),
    ("hypot", torch.hypot, (A, B), None),
    ("fmax", torch.fmax, (torch.tensor([1.0, torch.nan]), torch.tensor([torch.nan, 2.0])), None),
    ("fmod", torch.fmod, (A * 5, B), ["Mod"]),
    ("remainder", torch.remainder, (A * 5, B), None),
    ("remainder of integers", lambda x: (x - 2) % 3, (IDS,), ["Sub", "Mod"]),
    ("floor division", lambda x, y: x // y, (A * 5, B), ["Div", "Floor"]),
    ("floor division of integers", lambda x: (x - 2) // 3, (IDS,), ["Sub", "Mod", "Sub", "Div"]),
    ("truncating division", lambda x, y: torch.div(x, y, rounding_mode="trunc"), (A * 5, B), None),
    ("addcmul", lambda x, y: torch.addcmul(x, x, y, value=0.5), (A, B), ["Mul", "Mul", "Add"]),
    ("addcdiv", lambda x, y: torch.addcdiv(x, x, y + 9), (A, B), ["Add", "Div", "Add"]),
    ("lerp", lambda x, y: torch.lerp(x, y, 0.3), (A, B), ["Sub", "Mul", "Add"]),
    ("ldexp", lambda x: torch.ldexp(x, torch.tensor(3)), (A,), None),
    ("cosine similarity", F.cosine_similarity, (ROW, ROW.flip(0)), None),
    ("normalize", F.normalize, (ROW,), None),
]

CHOICES: list[Line] = [
    ("eq", lambda x: x == 3, (IDS,), ["Equal"]),
    ("ne", lambda x: x != 3, (IDS,), ["Equal", "Not"]),
    ("lt", lambda x, y: x < y, (A, B), ["Less"]),
    ("le of mixed types", lambda x: x <= 2.5, (IDS,), ["Cast", "LessOrEqual"]),
    ("gt of truth values", lambda x: (x > 2) > (x > 3), (IDS,), None),
    ("ge", lambda x, y: x >= y, (A, B), ["GreaterOrEqual"]),
    ("where", lambda x, y: torch.where(x > 0, x, y), (A, B), ["Greater", "Where"]),
    ("where of a number", lambda x: torch.where(x > 0, x, 0.5), (A,), ["Greater", "Where"]),
    ("where of mixed types", lambda x: torch.where(x > 0, x, IDS[0, 1]), (A,), ["Greater", "Where"]),
    ("masked_fill", lambda x: x.masked_fill(x > 0, -1.0), (A,), ["Greater", "Where"]),
    ("masked_fill by -inf", lambda x: x.masked_fill(x > 0, -torch.inf), (A,), ["Greater", "Where"]),
    ("logic", lambda x: ((x > 1) & (x < 4)) | ~(x == 2), (IDS,), None),
    ("logic of numbers", lambda x: torch.logical_and(x, x - 1), (IDS,), None),
    ("xor", lambda x: (x > 1) ^ (x > 3), (IDS,), None),
    ("bits", lambda x: (x & 3) | 4, (IDS,), ["BitwiseAnd", "BitwiseOr"]),
    ("bits turned", lambda x: ~x, (IDS,), ["BitwiseNot"]),
]

LAYOUT: list[Line] = [
    ("select", lambda x: x[:, -1], (A,), ["Slice", "Reshape"]),
    ("stack", lambda x, y: torch.stack([x, y], 1), (A, B), ["Reshape", "Reshape", "Concat"]),
    ("unbind", lambda x: [part + 1 for part in x.unbind(2)], (A,), None),
    ("expand", lambda x: x[:, :1].expand(-1, 3, -1, -1), (A,), ["Slice", "Expand"]),
    ("expand_as", lambda x, y: x[:1].expand_as(y), (A, B), ["Slice", "Expand"]),
    ("repeat", lambda x: x.repeat(2, 1, 1, 3), (A,), ["Tile"]),
    ("repeat with a new axis", lambda x: x.repeat(2, 1, 2), (ROW,), ["Reshape", "Tile"]),
    ("tile", lambda x: x.tile(2, 3), (A,), ["Tile"]),
    ("repeat_interleave", lambda x: x.repeat_interleave(3, 1), (A,), ["Gather"]),
    ("repeat_interleave of all", lambda x: x.repeat_interleave(2), (ROW,), ["Reshape", "Gather"]),
    ("roll", lambda x: x.roll((1, -2), (2, 3)), (A,), ["Slice", "Slice", "Concat"] * 2),
    ("roll of all", lambda x: x.roll(5), (ROW,), None),
    ("flip", lambda x: x.flip(1, -1), (A,), ["Slice"]),
    ("movedim", lambda x: x.movedim((1, 2), (-1, 0)), (A,), ["Transpose"]),
    ("swapaxes", lambda x: x.swapaxes(1, 3), (A,), ["Transpose"]),
    ("mT", lambda x: x.mT, (A,), ["Transpose"]),
    ("narrow", lambda x: x.narrow(1, -3, 2), (A,), ["Slice"]),
    ("tensor_split", lambda x: [p + 1 for p in x.tensor_split(4, 3)], (A,), None),
    ("tensor_split by indices", lambda x: [p + 1 for p in x.tensor_split((1, 4), 1)], (A,), None),
    ("split with an empty piece", lambda x: torch.split(x, [0, 6], 1)[1] + 1, (A,), ["Add"]),
    ("unfold", lambda x: x.unfold(2, 3, 1), (A,), ["Gather", "Transpose"]),
    ("diagonal", lambda x: x.diagonal(1, 2, 3), (A,), None),
    ("diagonal below", lambda x: x.diagonal(-1, 3, 1), (A,), None),
    ("tril", lambda x: x.tril(1), (A,), ["Trilu"]),
    ("triu", lambda x: x.triu(-1), (A,), ["Trilu"]),
    ("meshgrid", lambda x, y: torch.meshgrid(x, y, indexing="ij"), (seeded(3), seeded(4)), None),
    ("meshgrid of xy", lambda x, y: torch.meshgrid(x, y, indexing="xy"), (seeded(3), seeded(4)), None),
    ("pixel_shuffle", nn.PixelShuffle(2), (seeded(2, 8, 3, 4),), ["DepthToSpace"]),
    ("pixel_unshuffle", nn.PixelUnshuffle(2), (A[..., :4],), ["Reshape", "Transpose", "Reshape"]),
    ("channel_shuffle", nn.ChannelShuffle(3), (A,), ["Reshape", "Transpose", "Reshape"]),
    ("squeeze at the end", lambda x: x.sum(-1, keepdim=True).squeeze(-1), (ROW,), ["ReduceSum", "Reshape"]),
    ("unflatten", lambda x: x.unflatten(1, (2, 3)), (A,), ["Reshape"]),
    ("view_as", lambda x, y: x.view_as(y.transpose(0, 1)), (ROW, ROW.t().contiguous()), None),
    ("slice written", lambda x: torch.slice_scatter(x, x[:, :2] * 2, 1, 2, 4), (A,), None),
    ("every second element written", lambda x: torch.slice_scatter(x, x[:, :3] * 2, 1, 0, 6, 2), (A,), None),
    ("diagonal written", lambda x: torch.diagonal_scatter(x, x[0, :3] * 9), (ROW,), None),
    ("as_strided", lambda x: torch.as_strided(x, (3, 4), (2, 1), 1), (ROW,), None),
]

PADS: list[Line] = [
    ("constant", lambda x: F.pad(x, (1, 2, 0, 3), value=0.5), (A,), ["Pad"]),
    ("all axes", lambda x: F.pad(x, (1, 0, 0, 1, 2, 0, 0, 1)), (A,), ["Pad"]),
    ("cut", lambda x: F.pad(x, (-1, -2)), (A,), ["Slice"]),
    ("cut and pad", lambda x: F.pad(x, (-1, 2, 1, -1)), (A,), ["Slice", "Slice", "Pad"]),
    ("reflect", nn.ReflectionPad2d((1, 2, 3, 0)), (A,), ["Pad"]),
    ("reflect of lines", nn.ReflectionPad1d(2), (LINE,), ["Pad"]),
    ("reflect of volumes", nn.ReflectionPad3d(1), (CUBE,), ["Pad"]),
    ("replicate", nn.ReplicationPad2d((1, 2, 3, 0)), (A,), ["Pad"]),
    ("circular", nn.CircularPad2d((1, 2, 3, 0)), (A,), None),
    ("zero", nn.ZeroPad2d(1), (A,), ["Pad"]),
    ("integers", lambda x: F.pad(x, (1, 1), value=7), (IDS,), ["Pad"]),
]

ALL = {
    "activation": ACTIVATIONS,
    "pointwise": POINTWISE,
    "choice": CHOICES,
    "layout": LAYOUT,
    "pad": PADS,
}


@pytest.mark.parametrize(("function", "inputs", "expected"), lines(ALL))
def test_function_computes_what_pytorch_does(
    function: Any, inputs: tuple[torch.Tensor, ...], expected: list[str] | None
) -> None:
    check_line(function, inputs, expected)
