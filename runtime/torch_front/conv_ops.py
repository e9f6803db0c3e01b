"""Convolutions and transposed convolutions over one, two or three axes, and windows written as columns."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from caffeforge.generated import hub
from caffeforge.runtime.graph import Value
from caffeforge.runtime.torch_front.call import Call
from caffeforge.runtime.torch_front.layout import reshaped
from caffeforge.runtime.torch_front.registry import torch_op

aten = torch.ops.aten


@torch_op(aten.conv1d.default, aten.conv2d.default, aten.conv3d.default)
def conv(call: Call) -> Value:
    """Lower by the same numbers; PyTorch pads both ends alike.

    aten::conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] padding=[0],
    SymInt[1] dilation=[1], SymInt groups=1) -> Tensor
    aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1],
    SymInt[2] padding=[0, 0], SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor
    aten::conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1],
    SymInt[3] padding=[0, 0, 0], SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor
    """
    return _plain_conv(call)


@torch_op(aten.conv1d.padding, aten.conv2d.padding, aten.conv3d.padding)
def conv_by_word(call: Call) -> Value:
    """Turn a word into numbers; of an odd total, PyTorch pads the larger half at the end.

    aten::conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1],
    str padding="valid", SymInt[1] dilation=[1], SymInt groups=1) -> Tensor
    aten::conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1],
    str padding="valid", SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor
    aten::conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1],
    str padding="valid", SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor
    """
    kernel = call.value("weight").shape[2:]
    if call.argument("padding") == "valid":
        return _conv(call, begins=[0] * len(kernel), ends=[0] * len(kernel))
    dilation = call.spread("dilation", len(kernel))
    totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    return _conv(call, begins=[t // 2 for t in totals], ends=[t - t // 2 for t in totals])


@torch_op(aten.conv_transpose1d.default, aten.conv_transpose2d.input, aten.conv_transpose3d.input)
def conv_transpose(call: Call) -> Value:
    """Lower by the same numbers.

    aten::conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1],
    SymInt[1] padding=[0], SymInt[1] output_padding=[0], SymInt groups=1, SymInt[1] dilation=[1]) -> Tensor
    aten::conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1],
    SymInt[2] padding=[0, 0], SymInt[2] output_padding=[0, 0], SymInt groups=1,
    SymInt[2] dilation=[1, 1]) -> Tensor
    aten::conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1],
    SymInt[3] padding=[0, 0, 0], SymInt[3] output_padding=[0, 0, 0], SymInt groups=1,
    SymInt[3] dilation=[1, 1, 1]) -> Tensor
    """
    return _conv_transpose(call)


@torch_op(aten.convolution.default, aten._convolution.default)
def convolution(call: Call) -> Value:
    """Lower by the same numbers, transposed or not.

    aten::convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding,
    SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor
    aten::_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding,
    SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, ...) -> Tensor
    """
    return _conv_transpose(call) if call.argument("transposed") else _plain_conv(call)


@torch_op(aten.im2col.default)
def im2col(call: Call) -> Value:
    """Convolve each channel by kernels of which each picks one element of the window.

    aten::im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor
    """
    x = call.batched("self", 2)
    kernel = call.spread("kernel_size", 2)
    channels, area = x.shape[1], math.prod(kernel)
    picks = torch.eye(area, dtype=call.example("self").dtype).reshape(1, area, 1, *kernel)
    weight = call.tensor(picks.expand(channels, *picks.shape[1:]).reshape(-1, 1, *kernel))
    pads, strides, dilations = (call.spread(name, 2) for name in ("padding", "stride", "dilation"))
    counts = [
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, k, p, s, d in zip(x.dims[2:], kernel, pads, strides, dilations, strict=True)
    ]
    op = hub.Conv(kernel_shape=kernel, strides=strides, pads=pads + pads, dilations=dilations, group=channels)
    columns = call.helper(op, x, weight, dims=(x.dims[0], channels * area, *counts))
    return reshaped(call, columns, call.dims)


@torch_op(aten.col2im.default)
def col2im(call: Call) -> Value:
    """Lower as it is.

    aten::col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding,
    int[2] stride) -> Tensor
    """
    pads = call.spread("padding", 2)
    op = hub.Col2Im(
        image_shape=call.spread("output_size", 2),
        block_shape=call.spread("kernel_size", 2),
        dilations=call.spread("dilation", 2),
        pads=pads + pads,
        strides=call.spread("stride", 2),
    )
    return call.node(op, call.batched("self", 1))


def _plain_conv(call: Call) -> Value:
    pads = call.spread("padding", call.value("weight").rank - 2)
    return _conv(call, begins=pads, ends=pads)


def _conv(call: Call, begins: Sequence[int], ends: Sequence[int]) -> Value:
    weight = call.value("weight")
    axes = weight.rank - 2
    op = hub.Conv(
        kernel_shape=weight.shape[2:],
        strides=call.spread("stride", axes),
        pads=(*begins, *ends),
        dilations=call.spread("dilation", axes),
        group=call.argument("groups"),
    )
    return call.node(op, call.batched("input", axes), weight, call.optional("bias"))


def _conv_transpose(call: Call) -> Value:
    weight = call.value("weight")
    axes = weight.rank - 2
    begins, strides = call.spread("padding", axes), call.spread("stride", axes)
    ends, extra = begins, call.spread("output_padding", axes)
    if any(more >= stride for more, stride in zip(extra, strides, strict=True)):
        # With dilation PyTorch allows more than a stride, which is as much less padding at the end.
        ends, extra = tuple(p - more for p, more in zip(begins, extra, strict=True)), (0,) * axes
        if min(ends) < 0:
            raise call.error("adds more output_padding than its stride and padding", hint="pad the result")
    op = hub.ConvTranspose(
        kernel_shape=weight.shape[2:],
        strides=strides,
        pads=begins + ends,
        output_padding=extra,
        dilations=call.spread("dilation", axes),
        group=call.argument("groups"),
    )
    return call.node(op, call.batched("input", axes), weight, call.optional("bias"))
