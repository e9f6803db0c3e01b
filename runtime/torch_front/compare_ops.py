"""Comparisons, logic, bits, and choosing by a condition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import torch
from torch._ops import OpOverload

from caffeforge.generated import hub
from caffeforge.runtime.graph import Value
from caffeforge.runtime.op import Op
from caffeforge.runtime.torch_front.call import Call
from caffeforge.runtime.torch_front.registry import torch_op

aten = torch.ops.aten

_COMPARISONS: Final[Mapping[OpOverload, type[Op]]] = {
    aten.eq.Tensor: hub.Equal,
    aten.eq.Scalar: hub.Equal,
    aten.lt.Tensor: hub.Less,
    aten.lt.Scalar: hub.Less,
    aten.le.Tensor: hub.LessOrEqual,
    aten.le.Scalar: hub.LessOrEqual,
    aten.gt.Tensor: hub.Greater,
    aten.gt.Scalar: hub.Greater,
    aten.ge.Tensor: hub.GreaterOrEqual,
    aten.ge.Scalar: hub.GreaterOrEqual,
}

_LOGIC: Final[Mapping[OpOverload, type[Op]]] = {
    aten.logical_and.default: hub.And,
    aten.logical_or.default: hub.Or,
    aten.logical_xor.default: hub.Xor,
}

# Of truth values, and of integers.
_BITS: Final[Mapping[OpOverload, tuple[type[Op], type[Op]]]] = {
    aten.bitwise_and.Tensor: (hub.And, hub.BitwiseAnd),
    aten.bitwise_and.Scalar: (hub.And, hub.BitwiseAnd),
    aten.bitwise_or.Tensor: (hub.Or, hub.BitwiseOr),
    aten.bitwise_or.Scalar: (hub.Or, hub.BitwiseOr),
    aten.bitwise_xor.Tensor: (hub.Xor, hub.BitwiseXor),
    aten.bitwise_xor.Scalar: (hub.Xor, hub.BitwiseXor),
}


@torch_op(*_COMPARISONS)
def compare(call: Call) -> Value:
    """Compare in the type that both operands promote to.

    aten::eq.Tensor(Tensor self, Tensor other) -> Tensor
    aten::eq.Scalar(Tensor self, Scalar other) -> Tensor
    aten::lt.Tensor(Tensor self, Tensor other) -> Tensor
    aten::lt.Scalar(Tensor self, Scalar other) -> Tensor
    aten::le.Tensor(Tensor self, Tensor other) -> Tensor
    aten::le.Scalar(Tensor self, Scalar other) -> Tensor
    aten::gt.Tensor(Tensor self, Tensor other) -> Tensor
    aten::gt.Scalar(Tensor self, Scalar other) -> Tensor
    aten::ge.Tensor(Tensor self, Tensor other) -> Tensor
    aten::ge.Scalar(Tensor self, Scalar other) -> Tensor
    """
    op = _COMPARISONS[call.overload]
    first, second = call.promoted("self", "other")
    if first.dtype == "bool" and op is not hub.Equal:  # which ONNX does not order
        first, second = call.cast(first, "int32"), call.cast(second, "int32")
    return call.node(op(), first, second)


@torch_op(aten.ne.Tensor, aten.ne.Scalar)
def ne(call: Call) -> Value:
    """Negate equality; of truth values, tell whether one of the two is true.

    aten::ne.Tensor(Tensor self, Tensor other) -> Tensor
    aten::ne.Scalar(Tensor self, Scalar other) -> Tensor
    """
    first, second = call.promoted("self", "other")
    if first.dtype == "bool":
        return call.node(hub.Xor(), first, second)
    return call.node(hub.Not(), call.pointwise(hub.Equal(), first, second, dtype="bool"))


@torch_op(*_LOGIC)
def logic(call: Call) -> Value:
    """Combine truth values; a number is true if it is not zero.

    aten::logical_and(Tensor self, Tensor other) -> Tensor
    aten::logical_or(Tensor self, Tensor other) -> Tensor
    aten::logical_xor(Tensor self, Tensor other) -> Tensor
    """
    return call.node(_LOGIC[call.overload](), call.operand("self"), call.operand("other"))


@torch_op(aten.logical_not.default)
def logical_not(call: Call) -> Value:
    """Negate; a number is true if it is not zero: aten::logical_not(Tensor self) -> Tensor."""
    return call.node(hub.Not(), call.operand("self"))


@torch_op(*_BITS)
def bitwise(call: Call) -> Value:
    """Combine bits, of truth values the only one.

    aten::bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor
    aten::bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor
    aten::bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor
    aten::bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor
    aten::bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor
    aten::bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor
    """
    of_bool, of_int = _BITS[call.overload]
    op = of_bool if call.dtype == "bool" else of_int
    return call.node(op(), call.operand("self"), call.operand("other"))


@torch_op(aten.bitwise_not.default)
def bitwise_not(call: Call) -> Value:
    """Turn all bits, of a truth value the only one: aten::bitwise_not(Tensor self) -> Tensor."""
    x = call.value("self")
    return call.node(hub.Not() if x.dtype == "bool" else hub.BitwiseNot(), x)


@torch_op(aten.where.self, aten.where.ScalarOther, aten.where.ScalarSelf, aten.where.Scalar)
def where(call: Call) -> Value:
    """Choose element by element.

    aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor
    aten::where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor
    aten::where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor
    aten::where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor
    """
    condition = call.cast(call.value("condition"), "bool")
    return call.node(hub.Where(), condition, call.operand("self"), call.operand("other"))


@torch_op(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def masked_fill(call: Call) -> Value:
    """Choose the value where the mask is true.

    aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor
    aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor
    """
    return call.node(hub.Where(), call.value("mask"), call.operand("value"), call.operand("self"))
