"""Pooling over one, two or three axes: windows, and their rounding mode as explicit pads."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch

from caffeforge.generated import hub
from caffeforge.runtime.graph import Node, Value
from caffeforge.runtime.symbol import Dim, Symbol, larger
from caffeforge.runtime.torch_front.call import Call
from caffeforge.runtime.torch_front.layout import reshaped
from caffeforge.runtime.torch_front.registry import Result, torch_op

aten = torch.ops.aten

Ints = tuple[int, ...]


class _Windows(NamedTuple):
    """Where a pool's windows lie.

    `over` is how far the last one reaches beyond the padded input; where that depends on a size that is a
    symbol it stands in `growing`, and 0 in `over`.
    """

    kernel: Ints
    strides: Ints
    pads: Ints
    dilations: Ints
    over: Ints
    growing: tuple[Dim, ...]

    @property
    def all_pads(self) -> Ints:
        """The pads of all axes at their begin, then at their end with the overhang."""
        return (*self.pads, *(pad + beyond for pad, beyond in zip(self.pads, self.over, strict=True)))


@torch_op(aten.max_pool1d.default, aten.max_pool2d.default, aten.max_pool3d.default)
def max_pool(call: Call) -> Value:
    """Write the overhang of ceil_mode as larger pads at the end: padding never wins a maximum.

    aten::max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0],
    int[1] dilation=[1], bool ceil_mode=False) -> Tensor
    aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1,
    bool ceil_mode=False) -> Tensor
    aten::max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0,
    int[3] dilation=1, bool ceil_mode=False) -> Tensor
    """
    x, op = _max_pool(call)
    return call.node(op, x)


@torch_op(
    aten.max_pool1d_with_indices.default,
    aten.max_pool2d_with_indices.default,
    aten.max_pool3d_with_indices.default,
)
def max_pool_with_indices(call: Call) -> Result:
    """Take the maximum and its place, which PyTorch counts within a channel and ONNX from the first one on.

    aten::max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0],
    int[1] dilation=[1], bool ceil_mode=False) -> (Tensor, Tensor)
    aten::max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0,
    int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)
    aten::max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0,
    int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)
    """
    x, op = _max_pool(call)
    if not call.reads_result(1):
        return [call.node(op, x), None]
    result, places = call.node_of_all(op, x)
    area = call.full((), math.prod(x.shape[2:]), "int64")
    return [result, call.pointwise(hub.Mod(), places, area)]


@torch_op(aten.max_unpool2d.default)
def max_unpool2d(call: Call) -> Value:
    """Scatter each channel's elements over zeros.

    aten::max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor
    """
    x, places = call.batched("self", 2), call.value("indices")
    pool = _pool_of(places)
    if pool is not None:
        node, op = pool
        source, (values, flat) = node.inputs[0], node.outputs
        if source is not None and (values.dims, source.dims) == (x.dims, call.dims):
            back = hub.MaxUnpool(kernel_shape=op.kernel_shape, strides=op.strides, output_shape=call.shape)
            return call.node(back, x, flat)
    n, c, h, w = (x.dims[0], *x.shape[1:])
    rows = [reshaped(call, value, (n, c, h * w)) for value in (places, x)]
    empty = call.full((n, c, math.prod(call.numbers(call.dims[2:]))), 0.0)
    written = call.helper(hub.ScatterElements(axis=2), empty, *rows, dims=empty.dims)
    return reshaped(call, written, call.dims)


@torch_op(aten.avg_pool1d.default, aten.avg_pool2d.default, aten.avg_pool3d.default)
def avg_pool(call: Call) -> Value:
    """Keep PyTorch's divisor: the window within the padded input, or within the input itself.

    aten::avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0],
    bool ceil_mode=False, bool count_include_pad=True) -> Tensor
    aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0,
    bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor
    aten::avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0,
    bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor
    """
    x = call.batched("self", _spatial(call))
    windows = _windows(call, x, dilations=(1,) * (x.rank - 2))
    area = math.prod(windows.kernel)
    if call.has("divisor_override"):
        x, windows = _padded(call, x, windows, windows.all_pads)
        sums = _average(call, x, windows, counted=False)
        factor = area / call.argument("divisor_override")
        return sums if factor == 1 else call.pointwise(hub.Mul(), sums, call.full((), factor))
    counted = any(windows.pads) and bool(call.argument("count_include_pad"))
    if counted and any(windows.over):
        # The padding counts, the overhang does not: no single pool says that.
        x, windows = _padded(call, x, windows, windows.pads + windows.pads)
        counted = False
    return _average(call, x, windows, counted)


def _pool_of(places: Value) -> tuple[Node, hub.MaxPool] | None:
    """Return the pool whose places these are, within each plane, if its windows lie side by side."""
    producer = places.producer
    through = producer.inputs[0] if producer is not None and isinstance(producer.op, hub.Mod) else None
    pool = through.producer if through is not None else None
    if pool is None or not isinstance(pool.op, hub.MaxPool):
        return None
    side_by_side = pool.op.kernel_shape == pool.op.strides and not any(pool.op.pads)
    return (pool, pool.op) if side_by_side and set(pool.op.dilations) == {1} else None


def _max_pool(call: Call) -> tuple[Value, hub.MaxPool]:
    x = call.batched("self", _spatial(call))
    windows = _windows(call, x, call.spread("dilation", x.rank - 2))
    if any(windows.growing):
        x, windows = _grown(call, x, windows)
    op = hub.MaxPool(
        kernel_shape=windows.kernel,
        strides=windows.strides,
        pads=windows.all_pads,
        dilations=windows.dilations,
    )
    return x, op


def _average(call: Call, x: Value, windows: _Windows, counted: bool) -> Value:
    call.numbers(windows.growing)  # which averages would count
    op = hub.AveragePool(
        kernel_shape=windows.kernel,
        strides=windows.strides,
        pads=windows.all_pads,
        count_include_pad=int(counted),
    )
    return call.node(op, x)


def _padded(call: Call, x: Value, windows: _Windows, pads: Ints) -> tuple[Value, _Windows]:
    """Return `x` padded by zeros, and the windows over it; what `pads` leaves out overhangs still."""
    axes = len(windows.kernel)
    begins, ends = np.array(pads[:axes]), np.array(pads[axes:])
    over = np.array(windows.over) + windows.pads - ends
    if any(pads):
        op = hub.Pad(pads=(0, 0, *pads[:axes], 0, 0, *pads[axes:]), constant_value=0.0)
        grown = [size + more for size, more in zip(x.dims[2:], (begins + ends).tolist(), strict=True)]
        x = call.helper(op, x, dims=(*x.dims[:2], *grown))
    return x, windows._replace(pads=(0,) * axes, over=tuple(over.tolist()))


def _grown(call: Call, x: Value, windows: _Windows) -> tuple[Value, _Windows]:
    """Return `x` padded so far that the last windows of a maximum lie within, by what never wins."""
    axes = len(windows.kernel)
    ends = [p + more for p, more in zip(windows.pads, windows.growing, strict=True)]
    pads = call.shape_value([0, 0, *windows.pads, 0, 0, *ends])
    sizes = [size + begin + end for size, begin, end in zip(x.dims[2:], windows.pads, ends, strict=True)]
    padded = call.helper(hub.Pad(constant_value=-math.inf), x, pads, dims=(*x.dims[:2], *sizes))
    return padded, windows._replace(pads=(0,) * axes, growing=(0,) * axes)


def _spatial(call: Call) -> int:
    """Return over how many axes a pool goes, which its name says."""
    name = call.overload._schema.name
    return int(name[name.index("pool") + 4])


def _windows(call: Call, x: Value, dilations: Ints) -> _Windows:
    """Return the windows of a pool over `x`, from the size of the result, which PyTorch has computed."""
    count = x.rank - 2
    kernel, pads = call.spread("kernel_size", count), call.spread("padding", count)
    strides = call.spread("stride", count) if call.ints("stride") else kernel
    axes = zip(x.dims[2:], call.dims[2:], kernel, strides, pads, dilations, strict=True)
    over, growing = [], list[Dim]()
    for size, out, k, s, p, d in axes:
        beyond = (out - 1) * s + d * (k - 1) + 1 - (size + 2 * p)
        over.append(max(0, beyond) if isinstance(beyond, int) else 0)
        growing.append(larger(0, beyond) if call.argument("ceil_mode") and isinstance(beyond, Symbol) else 0)
    return _Windows(kernel, strides, pads, dilations, tuple(over), tuple(growing))
