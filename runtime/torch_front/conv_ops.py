"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from caffeforge.generated import hub
from caffeforge.runtime.graph import Value
from caffeforge.runtime.torch_front.call import Call
from caffeforge.runtime.torch_front.registry import torch_op

aten = torch.ops.aten


@torch_op(aten.conv2d.default)
def conv2d(call: Call) -> Value:
    """Lower by the same numbers; PyTorch pads both ends alike.

    aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1],
    SymInt[2] padding=[0, 0], SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor
    """
    pads = call.pair("padding")
    return _conv(call, begins=pads, ends=pads)


@torch_op(aten.conv2d.padding)
def conv2d_padding(call: Call) -> Value:
    """Turn a word into numbers; of an odd total, PyTorch pads the larger half at the end.

    aten::conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1],
    str padding="valid", SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor
    """
    if call.argument("padding") == "valid":
        return _conv(call, begins=(0, 0), ends=(0, 0))
    kernel, dilation = call.value("weight").shape[2:], call.pair("dilation")
    totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    return _conv(call, begins=[t // 2 for t in totals], ends=[t - t // 2 for t in totals])


def _conv(call: Call, begins: Sequence[int], ends: Sequence[int]) -> Value:
    weight = call.value("weight")
    op = hub.Conv(
        kernel_shape=weight.shape[2:],
        strides=call.pair("stride"),
        pads=(*begins, *ends),
        dilations=call.pair("dilation"),
        group=call.argument("groups"),
    )
    return call.node(op, call.image("input"), weight, call.optional("bias"))
