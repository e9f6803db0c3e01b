"""Operators that plain Caffe computes by several layers, as functions of PyTorch, by subject.

They are those of a list of lowerings that was worked out by hand; each name is an entry of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Shape = tuple[int, ...]
Entry = tuple[Callable[..., Any], tuple[Shape, ...]]
IMAGE: Shape = (2, 6, 7, 9)
EVEN: Shape = (2, 4, 8, 12)
ROWS: Shape = (2, 5, 8)
R = torch.Generator().manual_seed(31)


def weight(*shape: int) -> Tensor:
    return torch.randn(shape, generator=R) / 2


def positive(x: Tensor) -> Tensor:
    return x.abs() + 0.25


def windows(x: Tensor) -> Tensor:
    """Return windows of four by four as items, as in Swin."""
    return x.view(2, 2, 4, 3, 4, 4).permute(0, 1, 3, 2, 4, 5).reshape(12, 16, 4)


def each(function: Callable[..., Any], *shapes: Shape) -> Entry:
    return function, shapes or (IMAGE,)


def fixed(function: Callable[..., Any], *constants: Tensor) -> Entry:
    """Return a function of an image and constants."""
    return lambda x: function(x, *constants), (IMAGE,)


def module(made: nn.Module, *shapes: Shape) -> Entry:
    """Return a module with random weights as an entry."""
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=R) / 2)
    return made.eval(), shapes or (IMAGE,)


ACTIVATIONS: Mapping[str, Entry] = {
    "relu6": each(F.relu6),
    "clamp": each(lambda x: x.clamp(-0.3, 0.8)),
    "clamp from below": each(lambda x: x.clamp(min=-0.4)),
    "clamp from above": each(lambda x: x.clamp(max=0.4)),
    "hardtanh": each(F.hardtanh),
    "hardsigmoid": each(F.hardsigmoid),
    "hardswish": each(F.hardswish),
    "silu": each(F.silu),
    "mish": each(F.mish),
    "softplus": each(lambda x: F.softplus(x, beta=1.7)),
    "softplus with a threshold": each(lambda x: F.softplus(x, threshold=1.0)),
    "logsigmoid": each(F.logsigmoid),
    "gelu by tanh": each(lambda x: F.gelu(x, approximate="tanh")),
    "gelu": each(F.gelu),
    "erf": each(torch.erf),
    "quick gelu": each(lambda x: x * torch.sigmoid(1.702 * x)),
    "leaky_relu": each(lambda x: F.leaky_relu(x, 0.2)),
    "prelu": module(nn.PReLU(6)),
    "prelu, shared, of rows": module(nn.PReLU(), ROWS),
    "elu": each(lambda x: F.elu(x, 0.7)),
    "selu": each(F.selu),
    "celu": each(lambda x: F.celu(x, 0.7)),
    "softsign": each(F.softsign),
    "tanhshrink": each(F.tanhshrink),
    "threshold": each(lambda x: F.threshold(x, 0.3, -1.5)),
    "hardshrink": each(F.hardshrink),
    "softshrink": each(F.softshrink),
    "glu": each(lambda x: F.glu(x, 1)),
}

ELEMENTS: Mapping[str, Entry] = {
    "abs": each(torch.abs),
    "by numbers": each(lambda x: 1 - (2 * x + 0.5) / 3),
    "number by x": each(lambda x: 2.5 / positive(x)),
    "sqrt": each(lambda x: positive(x).sqrt()),
    "rsqrt": each(lambda x: positive(x).rsqrt()),
    "reciprocal": each(lambda x: positive(x).reciprocal()),
    "pow": each(lambda x: x**3),
    "exp": each(torch.exp),
    "exp2": each(torch.exp2),
    "expm1": each(torch.expm1),
    "number to the power of x": each(lambda x: 1.7**x),
    "log": each(lambda x: positive(x).log()),
    "log2": each(lambda x: positive(x).log2()),
    "log10": each(lambda x: positive(x).log10()),
    "log1p": each(lambda x: positive(x).log1p()),
    "sign": each(torch.sign),
    "comparisons": each(lambda x: (x > 0.1).float() + (x <= 0.5).float() * 2 + (x == 0).float()),
    "where": each(lambda x, y: torch.where(x > 0.2, x, y), IMAGE, IMAGE),
    "round": each(lambda x: (x * 3).round()),
    "floor": each(lambda x: (x * 3).floor()),
    "ceil": each(lambda x: (x * 3).ceil()),
    "trunc": each(lambda x: (x * 3).trunc()),
    "frac": each(lambda x: (x * 3).frac()),
    "remainder": each(lambda x: x.remainder(0.75)),
    "fmod": each(lambda x: x.fmod(0.75)),
    "floor_divide": each(lambda x: torch.div(x, 0.75, rounding_mode="floor")),
    "sin": each(torch.sin),
    "cos": each(torch.cos),
    "tan": each(lambda x: torch.tan(x / 4)),
    "sinh": each(torch.sinh),
    "cosh": each(torch.cosh),
    "atanh": each(lambda x: torch.atanh(x.tanh() * 0.9)),
    "asinh": each(torch.asinh),
    "acosh": each(lambda x: torch.acosh(x.abs() + 1.5)),
    "logit": each(lambda x: torch.logit(x.sigmoid())),
}

PAIRS: Mapping[str, Entry] = {
    "add": each(lambda x, y: torch.add(x, y, alpha=1.5), IMAGE, IMAGE),
    "sub": each(lambda x, y: x - y, IMAGE, IMAGE),
    "lerp": each(lambda x, y: torch.lerp(x, y, 0.3), IMAGE, IMAGE),
    "mul": each(lambda x, y: x * y, IMAGE, IMAGE),
    "div": each(lambda x, y: x / positive(y), IMAGE, IMAGE),
    "maximum": each(torch.maximum, IMAGE, IMAGE),
    "minimum": each(torch.minimum, IMAGE, IMAGE),
    "pow of two": each(lambda x, y: positive(x) ** y, IMAGE, IMAGE),
    "logaddexp": each(torch.logaddexp, IMAGE, IMAGE),
    **{
        f"with {list(shape)}": each(lambda x, y: x * y + (x - y), IMAGE, shape)
        for shape in ((2, 6, 1, 1), (1, 6, 1, 1), (6, 7, 9), (7, 9), (9,), (2, 1, 1, 1), (2, 6, 7, 1))
    },
    **{
        f"with gaps {list(shape)}": each(lambda x, y: x * y + (x - y), IMAGE, shape)
        for shape in ((2, 1, 7, 9), (2, 6, 1, 9), (2, 1, 7, 1), (2, 1, 1, 9))
    },
    **{
        f"with constant {list(shape)}": fixed(lambda x, c: x * c + (x - c), weight(*shape))
        for shape in ((6, 1, 1), (6, 7, 9), (7, 9), (9,), (6, 7, 1), (7, 1), (1, 6, 1, 9))
    },
    "both broadcast": each(lambda x, y: x * y, (2, 6, 1, 1), (2, 1, 7, 9)),
    "both broadcast, of the batch": each(lambda x, y: x * y, (2, 6, 1, 1), (1, 1, 7, 9)),
}

POOLS: Mapping[str, Entry] = {
    "max_pool2d": each(lambda x: F.max_pool2d(x, 3, 2, 1)),
    "max_pool2d, odd": each(lambda x: F.max_pool2d(x, 2, 2)),
    "max_pool2d, ceil": each(lambda x: F.max_pool2d(x, 2, 2, ceil_mode=True)),
    "max_pool2d, places": each(lambda x: F.max_pool2d(x, 2, 2, return_indices=True)[1].float()),
    "pad by -inf": each(lambda x: F.max_pool2d(F.pad(x, (0, 1, 0, 1), value=float("-inf")), 3, 2)),
    "pad by zeros, then pool": each(lambda x: F.max_pool2d(F.pad(x, (0, 1, 0, 1)), 2, 1)),
    "max_pool2d, dilated": each(lambda x: F.max_pool2d(x, 3, 1, 1, dilation=2)),
    "avg_pool2d": each(lambda x: F.avg_pool2d(x, 3, 2, 1)),
    "avg_pool2d, ceil": each(lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True)),
    "avg_pool2d, without padding": each(lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)),
    "avg_pool2d, divisor": each(lambda x: F.avg_pool2d(x, 3, 2, divisor_override=5)),
    "adaptive_avg_pool2d": each(lambda x: F.adaptive_avg_pool2d(x, (3, 4))),
    "adaptive_avg_pool2d, unequal": each(lambda x: F.adaptive_avg_pool2d(x, (5, 4))),
    "adaptive_max_pool2d": each(lambda x: F.adaptive_max_pool2d(x, (3, 4))),
    "adaptive_max_pool2d, unequal": each(lambda x: F.adaptive_max_pool2d(x, (5, 4))),
    "global": each(lambda x: F.adaptive_avg_pool2d(x, 1) + F.adaptive_max_pool2d(x, 1)),
    "max_pool1d": each(lambda x: F.max_pool1d(x, 3, 2, 1), ROWS),
    "avg_pool1d": each(lambda x: F.avg_pool1d(x, 3, 2, 1), ROWS),
    "max_pool3d": each(lambda x: F.max_pool3d(x, 2), (2, 3, 4, 6, 5)),
    "avg_pool3d": each(lambda x: F.avg_pool3d(x, 2), (2, 3, 4, 6, 5)),
    "lp_pool2d": each(lambda x: F.lp_pool2d(positive(x), 3.0, 3, 2)),
}

WINDOWS: Mapping[str, Entry] = {
    "conv1d": module(nn.Conv1d(5, 4, 3, 2, 1), ROWS),
    "conv2d": module(nn.Conv2d(6, 4, 3, 2, 1)),
    "conv2d, depthwise, dilated": module(nn.Conv2d(6, 12, 3, padding=(1, 2), dilation=(1, 2), groups=6)),
    "conv3d": module(nn.Conv3d(3, 4, 3, padding=1), (2, 3, 4, 5, 6)),
    "pad beside a convolution": module(nn.Sequential(nn.ZeroPad2d((0, 1, 2, 0)), nn.Conv2d(6, 4, 3, 2))),
    "pad": each(lambda x: F.pad(x, (1, 2, 0, 3))),
    "pad by a value": each(lambda x: F.pad(x, (1, 2, 0, 3), value=1.5)),
    "pad by reflection": each(lambda x: F.pad(x, (2, 1, 1, 2), mode="reflect")),
    "pad by replication": each(lambda x: F.pad(x, (2, 1, 1, 2), mode="replicate")),
    "pad around": each(lambda x: F.pad(x, (2, 1, 1, 2), mode="circular")),
    "crop": each(lambda x: F.pad(x, (-1, -2, 1, -1))),
    "conv_transpose1d": module(nn.ConvTranspose1d(5, 4, 3, 2, 1, output_padding=1), ROWS),
    "conv_transpose2d": module(nn.ConvTranspose2d(6, 4, 3, 2, 1, 1, groups=2, dilation=2)),
    "unfold": each(lambda x: F.unfold(x, 3, padding=1, stride=2)),
    "fold": each(lambda x: F.fold(x, (5, 6), 2), (2, 12, 20)),
}

RESIZES: Mapping[str, Entry] = {
    "nearest by 2": each(lambda x: F.interpolate(x, scale_factor=2)),
    "nearest": each(lambda x: F.interpolate(x, (5, 13))),
    "nearest-exact": each(lambda x: F.interpolate(x, (5, 13), mode="nearest-exact")),
    "nearest by 1/2": each(lambda x: F.interpolate(x, scale_factor=0.5), EVEN),
    **{
        f"bilinear {size}, {align}": each(
            lambda x, size=size, align=align: F.interpolate(x, size, mode="bilinear", align_corners=align)
        )
        for size in ((14, 18), (13, 17), (10, 4))
        for align in (False, True)
    },
    "bilinear by 1/2": each(lambda x: F.interpolate(x, scale_factor=0.5, mode="bilinear"), EVEN),
    "bicubic": each(lambda x: F.interpolate(x, (11, 5), mode="bicubic")),
    "antialias": each(lambda x: F.interpolate(x, (4, 5), mode="bilinear", antialias=True)),
    "area": each(lambda x: F.interpolate(x, (3, 4), mode="area")),
    "linear": each(lambda x: F.interpolate(x, 13, mode="linear"), ROWS),
    "trilinear": each(lambda x: F.interpolate(x, (5, 4, 9), mode="trilinear"), (1, 2, 4, 5, 6)),
}

MOVES: Mapping[str, Entry] = {
    "permute": each(lambda x: x.permute(0, 2, 3, 1)),
    "permute, all around": each(lambda x: x.permute(3, 1, 0, 2)),
    "permute of five": each(lambda x: x.permute(0, 3, 1, 4, 2), (2, 3, 2, 4, 3)),
    "transpose": each(lambda x: x.transpose(2, 3)),
    "pixel_shuffle": each(lambda x: F.pixel_shuffle(x, 2), EVEN),
    "conv, pixel_shuffle": module(nn.Sequential(nn.Conv2d(6, 12, 3, padding=1), nn.PixelShuffle(2))),
    "pixel_unshuffle": each(lambda x: F.pixel_unshuffle(x, 2), EVEN),
    "channel_shuffle": each(lambda x: F.channel_shuffle(x, 2)),
    "flatten": each(lambda x: x.flatten(1, 2)),
    "view": each(lambda x: x.view(2, 3, 2, 63)),
    "squeeze": each(lambda x: x.unsqueeze(1).squeeze(1).unsqueeze(-1)),
    "cat": each(lambda x, y: torch.cat([x, y, x], 1), IMAGE, (2, 3, 7, 9)),
    "split": each(lambda x: torch.cat(x.split([1, 3, 2], 1)[::-1], 1)),
    "chunk": each(lambda x: torch.cat(x.chunk(2, 3)[::-1], 3)),
    "narrow": each(lambda x: x.narrow(2, 1, 4)),
    "select": each(lambda x: x.select(1, 2)),
    "strided": each(lambda x: x[:, 1::2, ::2, 1::3]),
    "roll": each(lambda x: x.roll((1, -2), (2, 3))),
    "flip": each(lambda x: x.flip(3)),
    "stack": each(lambda x, y: torch.stack([x, y], 2), IMAGE, IMAGE),
    "expand": each(lambda x: x.expand(2, 6, 7, 9) * 2, (2, 6, 1, 1)),
    "repeat": each(lambda x: x.repeat(1, 2, 1, 3)),
    "repeat_interleave": each(lambda x: x.repeat_interleave(3, 1)),
    "index_select": each(lambda x: x.index_select(1, torch.tensor([4, 0, 0, 5]))),
    "gather": each(lambda x: x.gather(3, x.argmax(3, keepdim=True))),
    "windows": each(windows, (2, 8, 12, 4)),
    "fftshift": each(lambda x: torch.fft.fftshift(x, dim=(2,))),
    "tril": each(lambda x: x.tril(1)),
}

SUMS: Mapping[str, Entry] = {
    **{
        f"{name} over {axes}": each(lambda x, f=f, axes=axes: f(x, axes))
        for name, f in (
            ("mean", lambda x, a: x.mean(a, keepdim=True)),
            ("amax", lambda x, a: x.amax(a)),
            ("sum", lambda x, a: x.sum(a)),
            ("amin", lambda x, a: x.amin(a, keepdim=True)),
        )
        for axes in ((1,), (2,), (3,), (2, 3), (1, 3), (1, 2, 3))
    },
    "L1": each(lambda x: x.abs().sum((2, 3))),
    "L2": each(lambda x: x.norm(dim=1)),
    "var": each(lambda x: x.var((2, 3))),
    "std": each(lambda x: x.std((1, 2, 3))),
    "prod": each(lambda x: x.prod(1)),
    "argmax": each(lambda x: x.argmax(1).float()),
    "argmin": each(lambda x: x.argmin(3, keepdim=True).float()),
    "topk": each(lambda x: torch.cat([x.topk(3, 1)[0], x.topk(3, 1)[1].float()], 1)),
    "sort": each(lambda x: x.sort(1, descending=True)[0]),
    "sort, rising": each(lambda x: x.sort(1)[0]),
    "median": each(lambda x: x.median(3)[0]),
    "softmax": each(lambda x: x.softmax(1) + x.softmax(3)),
    "softmin": each(lambda x: F.softmin(x, 2)),
    "log_softmax": each(lambda x: (x * 50).log_softmax(1)),
    "logsumexp": each(lambda x: (x * 50).logsumexp((1, 2))),
    "cumsum": each(lambda x: x.cumsum(1) + x.cumsum(3)),
    "cumprod": each(lambda x: x.cumprod(1)),
    "cummax": each(lambda x: x.cummax(1)[0]),
}

NORMS: Mapping[str, Entry] = {
    "normalize": each(F.normalize),
    "normalize of rows": each(lambda x: F.normalize(x, dim=1), (3, 8)),
    "normalize, L1": each(lambda x: F.normalize(x, p=1.0)),
    "rms_norm": module(nn.RMSNorm(8), ROWS),
    "rms_norm over channels": each(lambda x: x * (x.square().mean(1, keepdim=True) + 1e-5).rsqrt()),
    "layer_norm": module(nn.LayerNorm(8), ROWS),
    "layer_norm over all": module(nn.LayerNorm([6, 7, 9])),
    "layer_norm over channels": fixed(
        lambda x, w: F.layer_norm(x.permute(0, 2, 3, 1), (6,), w).permute(0, 3, 1, 2), weight(6)
    ),
    "instance_norm": module(nn.InstanceNorm2d(6, affine=True)),
    "group_norm": module(nn.GroupNorm(3, 6)),
    "batch_norm": module(nn.BatchNorm2d(6)),
    "batch_norm of rows": module(nn.BatchNorm1d(8, affine=False), (3, 8)),
    "local_response_norm": each(lambda x: F.local_response_norm(x, 5, 0.2, 0.6, 1.5)),
    "local_response_norm, even": each(lambda x: F.local_response_norm(x, 4, 0.2, 0.6, 1.5)),
    "response norm": each(lambda x: x * (x.norm(dim=(2, 3), keepdim=True) / 9 + 0.1)),
    "cosine_similarity": each(lambda x, y: F.cosine_similarity(x, y), IMAGE, IMAGE),
}

PRODUCTS: Mapping[str, Entry] = {
    "linear": module(nn.Linear(8, 5), (3, 8)),
    "linear of rows": module(nn.Linear(8, 5), ROWS),
    "linear of images": module(nn.Linear(9, 5, bias=False)),
    "matmul by a constant": fixed(lambda x, w: x @ w, weight(9, 4)),
    "constant by matmul": fixed(lambda x, w: w @ x, weight(4, 7)),
    "matmul": each(lambda x, y: x @ y, (2, 3, 4, 5), (2, 3, 5, 6)),
    "bmm": each(torch.bmm, (2, 4, 5), (2, 5, 3)),
    "einsum": fixed(lambda x, w: torch.einsum("nctv,vw->nctw", x, w), weight(9, 4)),
    "attention": each(F.scaled_dot_product_attention, (2, 2, 5, 4), (2, 2, 7, 4), (2, 2, 7, 3)),
    "bilinear": module(nn.Bilinear(5, 6, 4), (3, 5), (3, 6)),
    "grid_sample": fixed(
        lambda x, grid: F.grid_sample(x, grid.expand(2, 4, 5, 2), align_corners=False),
        torch.rand(1, 4, 5, 2, generator=R) * 2 - 1,
    ),
    "grid_sample, computed": each(
        lambda x, g: F.grid_sample(x, g.tanh(), align_corners=False), (2, 3, 5, 6), (2, 3, 4, 2)
    ),
    "affine_grid": each(lambda t: F.affine_grid(t, [2, 3, 4, 5], align_corners=False), (2, 2, 3)),
    "squeeze and excitation": fixed(
        lambda x, a, b: x * F.linear(F.relu(F.linear(x.mean((2, 3)), a)), b).sigmoid()[:, :, None, None],
        weight(3, 6),
        weight(6, 3),
    ),
}

TABLE: Mapping[str, Mapping[str, Entry]] = {
    "activations": ACTIVATIONS,
    "elements": ELEMENTS,
    "pairs": PAIRS,
    "pools": POOLS,
    "windows": WINDOWS,
    "resizes": RESIZES,
    "moves": MOVES,
    "sums": SUMS,
    "norms": NORMS,
    "products": PRODUCTS,
}
