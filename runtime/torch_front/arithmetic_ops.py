"""Arithmetic of two tensors, or of a tensor and a number, with broadcasting as in NumPy and ONNX.

Operands are converted to the type of the result first, as PyTorch does.
"""

from __future__ import annotations

import math

import torch

from caffeforge.generated import hub
from caffeforge.runtime.graph import Value
from caffeforge.runtime.op import Op
from caffeforge.runtime.torch_front.call import Call
from caffeforge.runtime.torch_front.pointwise_ops import truncated
from caffeforge.runtime.torch_front.registry import torch_op

aten = torch.ops.aten


@torch_op(aten.add.Tensor, aten.add.Scalar)
def add(call: Call) -> Value:
    """Add `alpha` times the second operand; of truth values, tell whether one is true.

    aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
    """
    op = hub.Or() if call.dtype == "bool" else hub.Add()
    return call.node(op, call.operand("self"), _scaled(call, "other"))


@torch_op(aten.sub.Tensor, aten.sub.Scalar)
def sub(call: Call) -> Value:
    """Subtract `alpha` times the second operand.

    aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
    """
    return call.node(hub.Sub(), call.operand("self"), _scaled(call, "other"))


@torch_op(aten.rsub.Tensor, aten.rsub.Scalar)
def rsub(call: Call) -> Value:
    """Subtract `alpha` times the first operand from the second.

    aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
    """
    return call.node(hub.Sub(), call.operand("other"), _scaled(call, "self"))


@torch_op(aten.mul.Tensor, aten.mul.Scalar)
def mul(call: Call) -> Value:
    """Multiply; of truth values, tell whether both are true.

    aten::mul.Tensor(Tensor self, Tensor other) -> Tensor
    aten::mul.Scalar(Tensor self, Scalar other) -> Tensor
    """
    op = hub.And() if call.dtype == "bool" else hub.Mul()
    return call.node(op, call.operand("self"), call.operand("other"))


@torch_op(aten.div.Tensor, aten.div.Scalar, aten.true_divide.Tensor)
def div(call: Call) -> Value:
    """Divide; integers give a float.

    aten::div.Tensor(Tensor self, Tensor other) -> Tensor
    aten::div.Scalar(Tensor self, Scalar other) -> Tensor
    aten::true_divide.Tensor(Tensor self, Tensor other) -> Tensor
    """
    return call.node(hub.Div(), call.operand("self"), call.operand("other"))


@torch_op(aten.div.Tensor_mode, aten.div.Scalar_mode)
def div_mode(call: Call) -> Value:
    """Divide and round, towards zero or down.

    aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor
    aten::div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor
    """
    mode = call.argument("rounding_mode")
    if mode == "floor":
        return _floor_divided(call)
    quotient = call.pointwise(hub.Div(), call.operand("self"), call.operand("other"))
    return truncated(call, quotient) if mode == "trunc" else quotient


@torch_op(aten.floor_divide.default, aten.floor_divide.Scalar)
def floor_divide(call: Call) -> Value:
    """Divide and round down.

    aten::floor_divide(Tensor self, Tensor other) -> Tensor
    aten::floor_divide.Scalar(Tensor self, Scalar other) -> Tensor
    """
    return _floor_divided(call)


@torch_op(aten.remainder.Tensor, aten.remainder.Scalar)
def remainder(call: Call) -> Value:
    """Give the rest with the sign of the divisor, as Python's %.

    aten::remainder.Tensor(Tensor self, Tensor other) -> Tensor
    aten::remainder.Scalar(Tensor self, Scalar other) -> Tensor
    """
    return _remainder(call, call.operand("self"), call.operand("other"))


@torch_op(aten.fmod.Tensor, aten.fmod.Scalar)
def fmod(call: Call) -> Value:
    """Give the rest with the sign of the dividend, as C's fmod.

    aten::fmod.Tensor(Tensor self, Tensor other) -> Tensor
    aten::fmod.Scalar(Tensor self, Scalar other) -> Tensor
    """
    return call.node(hub.Mod(fmod=1), call.operand("self"), call.operand("other"))


@torch_op(aten.pow.Tensor_Scalar, aten.pow.Tensor_Tensor, aten.pow.Scalar)
def pow_(call: Call) -> Value:
    """Raise the first operand to the power of the second.

    aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor
    aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor
    aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor
    """
    return call.node(hub.Pow(), call.operand("self"), call.operand("exponent"))


@torch_op(aten.maximum.default, aten.max.other)
def maximum(call: Call) -> Value:
    """Take the larger operand.

    aten::maximum(Tensor self, Tensor other) -> Tensor
    aten::max.other(Tensor self, Tensor other) -> Tensor
    """
    op = hub.Or() if call.dtype == "bool" else hub.Max()
    return call.node(op, call.operand("self"), call.operand("other"))


@torch_op(aten.minimum.default, aten.min.other)
def minimum(call: Call) -> Value:
    """Take the smaller operand.

    aten::minimum(Tensor self, Tensor other) -> Tensor
    aten::min.other(Tensor self, Tensor other) -> Tensor
    """
    op = hub.And() if call.dtype == "bool" else hub.Min()
    return call.node(op, call.operand("self"), call.operand("other"))


@torch_op(aten.fmax.default)
def fmax(call: Call) -> Value:
    """Take the larger operand that is a number: aten::fmax(Tensor self, Tensor other) -> Tensor."""
    return _of_numbers(call, hub.Max())


@torch_op(aten.fmin.default)
def fmin(call: Call) -> Value:
    """Take the smaller operand that is a number: aten::fmin(Tensor self, Tensor other) -> Tensor."""
    return _of_numbers(call, hub.Min())


@torch_op(aten.hypot.default)
def hypot(call: Call) -> Value:
    """Take the root of the sum of squares, of the quotient by the larger: a square may overflow.

    aten::hypot(Tensor self, Tensor other) -> Tensor
    """
    sides = [call.pointwise(hub.Abs(), call.operand(name)) for name in ("self", "other")]
    longer, shorter = (call.pointwise(op, *sides) for op in (hub.Max(), hub.Min()))
    least = torch.finfo(getattr(torch, call.dtype)).tiny
    slope = call.pointwise(hub.Div(), shorter, call.pointwise(hub.Max(), longer, call.full((), least)))
    square = call.pointwise(hub.Add(), call.pointwise(hub.Mul(), slope, slope), call.full((), 1.0))
    length = call.pointwise(hub.Mul(), longer, call.pointwise(hub.Sqrt(), square))
    infinite = call.pointwise(hub.Or(), *(call.pointwise(hub.IsInf(), s, dtype="bool") for s in sides))
    return call.node(hub.Where(), infinite, call.full((), math.inf), length)


@torch_op(aten.ldexp.Tensor)
def ldexp(call: Call) -> Value:
    """Multiply by a power of two: aten::ldexp.Tensor(Tensor self, Tensor other) -> Tensor."""
    power = call.pointwise(hub.Pow(), call.full((), 2.0), call.operand("other"))
    return call.node(hub.Mul(), call.operand("self"), power)


@torch_op(aten.addcmul.default)
def addcmul(call: Call) -> Value:
    """Add a scaled product.

    aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor
    """
    return _added(call, hub.Mul())


@torch_op(aten.addcdiv.default)
def addcdiv(call: Call) -> Value:
    """Add a scaled quotient.

    aten::addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor
    """
    return _added(call, hub.Div())


@torch_op(aten.lerp.Scalar, aten.lerp.Tensor)
def lerp(call: Call) -> Value:
    """Go from the first operand to the second by `weight`.

    aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor
    aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor
    """
    start = call.operand("self")
    way = call.pointwise(hub.Sub(), call.operand("end"), start)
    return call.node(hub.Add(), start, call.pointwise(hub.Mul(), way, call.operand("weight")))


@torch_op(aten.square.default)
def square(call: Call) -> Value:
    """Raise to the power of two: aten::square(Tensor self) -> Tensor."""
    return call.node(hub.Pow(), call.operand("self"), call.full((), 2))


def _of_numbers(call: Call, op: Op) -> Value:
    first, second = call.operand("self"), call.operand("other")
    if "float" not in call.dtype:
        return call.pointwise(op, first, second)
    chosen = call.pointwise(op, first, second)
    for candidate, other in ((first, second), (second, first)):
        missing = call.pointwise(hub.IsNaN(), candidate, dtype="bool")
        chosen = call.pointwise(hub.Where(), missing, other, chosen, dtype=call.dtype)
    return chosen


def _scaled(call: Call, name: str) -> Value:
    """Return an operand times `alpha`."""
    value, alpha = call.operand(name), call.argument("alpha")
    return value if alpha == 1 else call.pointwise(hub.Mul(), value, call.full((), alpha))


def _added(call: Call, op: Op) -> Value:
    term = call.pointwise(op, call.operand("tensor1"), call.operand("tensor2"))
    factor = call.argument("value")
    if factor != 1:
        term = call.pointwise(hub.Mul(), term, call.full((), factor))
    return call.node(hub.Add(), call.operand("self"), term)


def _floor_divided(call: Call) -> Value:
    """Round the quotient down; ONNX divides integers towards zero, so their rest is taken off before."""
    a, b = call.operand("self"), call.operand("other")
    if "float" in call.dtype:
        return call.node(hub.Floor(), call.pointwise(hub.Div(), a, b))
    return call.node(hub.Div(), call.pointwise(hub.Sub(), a, _remainder(call, a, b)), b)


def _remainder(call: Call, a: Value, b: Value) -> Value:
    if "float" not in a.dtype:
        return call.pointwise(hub.Mod(), a, b)
    # ONNX's Mod of floats has the sign of the dividend.
    rest = call.pointwise(hub.Mod(fmod=1), a, b)
    differs = call.pointwise(
        hub.Less(), call.pointwise(hub.Mul(), rest, b), call.full((), 0.0, a.dtype), dtype="bool"
    )
    return call.pointwise(hub.Where(), differs, call.pointwise(hub.Add(), rest, b), rest, dtype=a.dtype)
