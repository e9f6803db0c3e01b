"""Arithmetic of two tensors, or of a tensor and a number, with broadcasting as in NumPy and ONNX."""

from __future__ import annotations

import torch

from caffeforge.generated import hub
from caffeforge.runtime.graph import Value
from caffeforge.runtime.torch_front.call import Call
from caffeforge.runtime.torch_front.registry import torch_op

aten = torch.ops.aten


@torch_op(aten.add.Tensor, aten.add.Scalar)
def add(call: Call) -> Value:
    """Add `alpha` times the second operand.

    aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
    """
    return call.node(hub.Add(), _operand(call, "self"), _scaled(call, "other"))


@torch_op(aten.sub.Tensor, aten.sub.Scalar)
def sub(call: Call) -> Value:
    """Subtract `alpha` times the second operand.

    aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
    """
    return call.node(hub.Sub(), _operand(call, "self"), _scaled(call, "other"))


@torch_op(aten.rsub.Tensor, aten.rsub.Scalar)
def rsub(call: Call) -> Value:
    """Subtract `alpha` times the first operand from the second.

    aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
    """
    return call.node(hub.Sub(), _operand(call, "other"), _scaled(call, "self"))


@torch_op(aten.mul.Tensor, aten.mul.Scalar)
def mul(call: Call) -> Value:
    """Multiply.

    aten::mul.Tensor(Tensor self, Tensor other) -> Tensor
    aten::mul.Scalar(Tensor self, Scalar other) -> Tensor
    """
    return call.node(hub.Mul(), _operand(call, "self"), _operand(call, "other"))


@torch_op(aten.div.Tensor, aten.div.Scalar)
def div(call: Call) -> Value:
    """Divide; integers give a float in PyTorch and are refused.

    aten::div.Tensor(Tensor self, Tensor other) -> Tensor
    aten::div.Scalar(Tensor self, Scalar other) -> Tensor
    """
    return call.node(hub.Div(), _operand(call, "self"), _operand(call, "other"))


@torch_op(aten.maximum.default)
def maximum(call: Call) -> Value:
    """Lower as it is: aten::maximum(Tensor self, Tensor other) -> Tensor."""
    return call.node(hub.Max(), _operand(call, "self"), _operand(call, "other"))


@torch_op(aten.minimum.default)
def minimum(call: Call) -> Value:
    """Lower as it is: aten::minimum(Tensor self, Tensor other) -> Tensor."""
    return call.node(hub.Min(), _operand(call, "self"), _operand(call, "other"))


def _operand(call: Call, name: str) -> Value:
    """Return an operand that has the result's element type: the hub does not convert silently."""
    value = call.value(name)
    if value.dtype != call.dtype:
        raise call.error(
            f"mixes {value.dtype} into {call.dtype}", hint="convert the operands to one type before"
        )
    if value.dtype == "bool":
        raise call.error("computes with truth values, which ONNX's arithmetic does not")
    return value


def _scaled(call: Call, name: str) -> Value:
    """Return an operand times `alpha`."""
    value, alpha = _operand(call, name), call.argument("alpha")
    if alpha == 1:
        return value
    return call.helper(hub.Mul(), value, call.full((), alpha), dims=value.dims)
