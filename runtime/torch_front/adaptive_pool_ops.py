"""Pools that are given the size of their result: global, by plain windows, or axis by axis."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch

from caffeforge.generated import hub
from caffeforge.runtime.array import Dense
from caffeforge.runtime.graph import Value, constant
from caffeforge.runtime.op import Op
from caffeforge.runtime.torch_front.call import Call
from caffeforge.runtime.torch_front.layout import expanded, gathered, joined, reshaped, sliced
from caffeforge.runtime.torch_front.reduce_ops import reduced
from caffeforge.runtime.torch_front.registry import Result, torch_op

aten = torch.ops.aten


@torch_op(
    aten.adaptive_avg_pool1d.default,
    aten.adaptive_avg_pool2d.default,
    aten.adaptive_avg_pool3d.default,
    aten._adaptive_avg_pool2d.default,
    aten._adaptive_avg_pool3d.default,
)
def adaptive_avg_pool(call: Call) -> Value:
    """Become a global pool, nothing, a pool whose windows all have one size, or means axis by axis.

    aten::adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor
    aten::adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor
    aten::adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor
    aten::_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor
    aten::_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor
    """
    return _adaptive(call, hub.GlobalAveragePool, hub.AveragePool, hub.ReduceMean)


@torch_op(
    aten.adaptive_max_pool1d.default,
    aten.adaptive_max_pool2d.default,
    aten.adaptive_max_pool3d.default,
)
def adaptive_max_pool(call: Call) -> Result:
    """Become a global pool, nothing, a pool whose windows all have one size, or maxima axis by axis.

    aten::adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)
    aten::adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)
    aten::adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)
    """
    if call.reads_result(1):
        return _with_places(call)
    return [_adaptive(call, hub.GlobalMaxPool, hub.MaxPool, hub.ReduceMax), None]


def _with_places(call: Call) -> Result:
    """Return the maxima and their places within a channel: each window is gathered as a row.

    Shorter windows repeat their first element at the end, which is never the first of the largest.
    """
    x = call.batched("self", int(call.overload._schema.name[-2]))
    sizes, outs = x.shape[2:], call.shape[2:]
    if 0 in outs:
        raise call.error("yields a tensor without elements")
    area = np.arange(math.prod(sizes), dtype=np.int64).reshape(sizes)
    windows = [area[slices].reshape(-1) for slices in _windows(sizes, outs)]
    width = max(window.size for window in windows)
    table = np.stack([np.append(w, np.repeat(w[:1], width - w.size)) for w in windows])
    flat = reshaped(call, x, (*x.dims[:2], area.size))
    rows = gathered(call, flat, constant("", Dense(table)), 2)
    largest = reduced(call, hub.ReduceMax, rows, (3,), keep=False)
    dims = (*rows.dims[:3], 1)
    first = call.helper(hub.ArgMax(axis=3, keepdims=1), rows, dims=dims, dtype="int64")
    spread = expanded(call, constant("", Dense(table[None, None])), rows.dims)
    places = call.helper(hub.GatherElements(axis=3), spread, first, dims=dims, dtype="int64")
    return [reshaped(call, value, call.dims) for value in (largest, places)]


def _windows(sizes: tuple[int, ...], outs: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Yield the windows of an adaptive pool in the order of its result."""
    for place in np.ndindex(*outs):
        axes = zip(place, sizes, outs, strict=True)
        yield tuple(slice(i * size // out, -(-(i + 1) * size // out)) for i, size, out in axes)


def _adaptive(
    call: Call,
    whole: type[hub.GlobalAveragePool | hub.GlobalMaxPool],
    plain: type[hub.AveragePool | hub.MaxPool],
    reduction: type[hub.ReduceMean | hub.ReduceMax],
) -> Value:
    """Return the pool that gives the result's size.

    With n = q * out + r, window i spans [floor(i * n / out), ceil((i + 1) * n / out)): for r = 0 that is
    [i * q, (i + 1) * q), for r = 1 it is [i * q, (i + 1) * q + 1), and for larger r the sizes differ. Then
    each axis is reduced by itself: the mean over a rectangle is the mean of the means over its rows.
    """
    name = call.overload._schema.name
    x = call.batched("self", int(name[-2]))
    if 0 in call.dims[2:]:
        raise call.error("yields a tensor without elements")
    if set(call.dims[2:]) == {1}:
        return call.node(whole(), x)
    if x.dims == call.dims:
        return x
    sizes, outs = x.shape[2:], call.shape[2:]
    quotients = [divmod(size, out) for size, out in zip(sizes, outs, strict=True)]
    if all(quotient and rest <= 1 for quotient, rest in quotients):
        op: Op = plain(
            kernel_shape=tuple(quotient + rest for quotient, rest in quotients),
            strides=tuple(quotient for quotient, _ in quotients),
        )
        return call.node(op, x)
    for axis, (size, out) in enumerate(zip(sizes, outs, strict=True), start=2):
        if size != out:
            spans = [(i * size // out, -(-(i + 1) * size // out)) for i in range(out)]
            parts = [sliced(call, x, axis, start, end) for start, end in spans]
            x = joined(call, [reduced(call, reduction, part, (axis,), keep=True) for part in parts], axis)
    return x
