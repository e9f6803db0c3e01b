"""Pooling: windows, their rounding mode as explicit pads, and the adaptive sizes that are plain windows."""

from __future__ import annotations

from typing import NamedTuple

import torch

from caffeforge.generated import hub
from caffeforge.runtime.graph import Value
from caffeforge.runtime.op import Op
from caffeforge.runtime.torch_front.call import Call, normalized
from caffeforge.runtime.torch_front.registry import Result, torch_op

aten = torch.ops.aten
Pair = tuple[int, int]


class _Windows(NamedTuple):
    """Where a pool's windows lie; `over` is how far the last one reaches beyond the padded input."""

    kernel: Pair
    strides: Pair
    pads: Pair
    dilations: Pair
    over: Pair


@torch_op(aten.max_pool2d.default)
def max_pool2d(call: Call) -> Value:
    """Write the overhang of ceil_mode as larger pads at the end: padding never wins a maximum.

    aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1,
    bool ceil_mode=False) -> Tensor
    """
    x = call.image("self")
    windows = _windows(call, x, call.pair("dilation"))
    op = hub.MaxPool(
        kernel_shape=windows.kernel,
        strides=windows.strides,
        pads=_pads(windows.pads, windows.over),
        dilations=windows.dilations,
    )
    return call.node(op, x)


@torch_op(aten.avg_pool2d.default)
def avg_pool2d(call: Call) -> Value:
    """Keep PyTorch's divisor: the window within the padded input, or within the input itself.

    aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0,
    bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor
    """
    x = call.image("self")
    windows = _windows(call, x, dilations=(1, 1))
    padded, overhangs = any(windows.pads), any(windows.over)
    counted = padded and call.argument("count_include_pad")
    constant_divisor = not overhangs and (counted or not padded)
    area = windows.kernel[0] * windows.kernel[1]
    override = call.argument("divisor_override")
    if override is not None and (override != area or not constant_divisor):
        raise call.error(
            f"divides by divisor_override={override} instead of by its windows' sizes",
            hint="leave divisor_override out and multiply the result by a number",
        )
    if counted and overhangs:
        # The padding counts, the overhang does not: no single pool says that.
        height, width = (size + 2 * pad for size, pad in zip(x.shape[2:], windows.pads, strict=True))
        pad = hub.Pad(pads=(0, 0, *windows.pads, 0, 0, *windows.pads), constant_value=0.0)
        x = call.helper(pad, x, dims=(*x.dims[:2], height, width))
        windows = windows._replace(pads=(0, 0))
        counted = False
    op = hub.AveragePool(
        kernel_shape=windows.kernel,
        strides=windows.strides,
        pads=_pads(windows.pads, windows.over),
        count_include_pad=int(counted),
    )
    return call.node(op, x)


@torch_op(aten.adaptive_avg_pool2d.default)
def adaptive_avg_pool2d(call: Call) -> Value:
    """Become a global pool, nothing, or a pool whose windows all have one size.

    aten::adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor
    """
    x = call.image("self")
    op = _adaptive(call, x, hub.GlobalAveragePool, hub.AveragePool)
    return x if op is None else call.node(op, x)


@torch_op(aten.adaptive_max_pool2d.default)
def adaptive_max_pool2d(call: Call) -> Result:
    """Become a global pool, nothing, or a pool whose windows all have one size; without the indices.

    aten::adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)
    """
    x = call.image("self")
    op = _adaptive(call, x, hub.GlobalMaxPool, hub.MaxPool)
    return [x if op is None else call.node(op, x), None]


@torch_op(aten.mean.dim)
def mean_dim(call: Call) -> Value:
    """Become a global pool over height and width, else a reduction.

    aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
    """
    x = call.value("self")
    dims = call.ints("dim") if call.has("dim") else ()
    axes = tuple(sorted(normalized(axis, x.rank) for axis in dims)) or tuple(range(x.rank))
    if call.dtype != x.dtype:
        raise call.error(f"converts {x.dtype} to {call.dtype}", hint="leave dtype out")
    if x.rank == 4 and axes == (2, 3) and call.argument("keepdim"):
        return call.node(hub.GlobalAveragePool(), x)
    return call.node(hub.ReduceMean(axes=axes, keepdims=int(call.argument("keepdim"))), x)


def _windows(call: Call, x: Value, dilations: Pair) -> _Windows:
    """Return the windows of a pool over `x`, from the size of the result, which PyTorch has computed."""
    kernel, pads = call.pair("kernel_size"), call.pair("padding")
    strides = call.pair("stride") if call.ints("stride") else kernel
    axes = zip(x.shape[2:], call.dims[2:], kernel, strides, pads, dilations, strict=True)
    over = [max(0, (out - 1) * s + d * (k - 1) + 1 - (size + 2 * p)) for size, out, k, s, p, d in axes]
    return _Windows(kernel, strides, pads, dilations, (over[0], over[1]))


def _pads(pads: Pair, over: Pair) -> tuple[int, ...]:
    return (*pads, *(pad + beyond for pad, beyond in zip(pads, over, strict=True)))


def _adaptive(
    call: Call,
    x: Value,
    whole: type[hub.GlobalAveragePool | hub.GlobalMaxPool],
    plain: type[hub.AveragePool | hub.MaxPool],
) -> Op | None:
    """Return the pool that gives the result's size, or None if the sizes are equal already.

    With n = q * out + r, window i spans [floor(i * n / out), ceil((i + 1) * n / out)): for r = 0 that is
    [i * q, (i + 1) * q), for r = 1 it is [i * q, (i + 1) * q + 1), and for larger r the sizes differ.
    """
    sizes, outs = x.shape[2:], call.dims[2:]
    if outs == (1, 1):
        return whole()
    if sizes == outs:
        return None
    quotients = [divmod(size, max(out, 1)) for size, out in zip(sizes, outs, strict=True)]
    if 0 in outs or any(quotient == 0 or rest > 1 for quotient, rest in quotients):
        raise call.error(
            f"takes {sizes[0]}x{sizes[1]} to {outs[0]}x{outs[1]} by windows of different sizes",
            hint="choose an input size that gives a multiple of the output size here",
        )
    return plain(
        kernel_shape=tuple(quotient + rest for quotient, rest in quotients),
        strides=tuple(quotient for quotient, _ in quotients),
    )
