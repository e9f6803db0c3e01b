"""Mathematical functions of one element: roots, logarithms, angles, rounding, tests."""

from __future__ import annotations

import math
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

# Functions that ONNX has too, under its own name.
_PLAIN: Final[Mapping[OpOverload, type[Op]]] = {
    aten.exp.default: hub.Exp,
    aten.log.default: hub.Log,
    aten.sqrt.default: hub.Sqrt,
    aten.reciprocal.default: hub.Reciprocal,
    aten.erf.default: hub.Erf,
    aten.special_erf.default: hub.Erf,
    aten.sin.default: hub.Sin,
    aten.cos.default: hub.Cos,
    aten.tan.default: hub.Tan,
    aten.asin.default: hub.Asin,
    aten.acos.default: hub.Acos,
    aten.atan.default: hub.Atan,
    aten.sinh.default: hub.Sinh,
    aten.cosh.default: hub.Cosh,
    aten.asinh.default: hub.Asinh,
    aten.acosh.default: hub.Acosh,
    aten.atanh.default: hub.Atanh,
}

# Functions that leave an integer as it is.
_ROUNDING: Final[Mapping[OpOverload, type[Op]]] = {
    aten.floor.default: hub.Floor,
    aten.ceil.default: hub.Ceil,
    aten.round.default: hub.Round,
}


@torch_op(*_PLAIN)
def plain(call: Call) -> Value:
    """Lower as it is; an integer is converted to the result's float before.

    aten::exp(Tensor self) -> Tensor
    aten::log(Tensor self) -> Tensor
    aten::sqrt(Tensor self) -> Tensor
    aten::reciprocal(Tensor self) -> Tensor
    aten::erf(Tensor self) -> Tensor
    aten::special_erf(Tensor self) -> Tensor
    aten::sin(Tensor self) -> Tensor
    aten::cos(Tensor self) -> Tensor
    aten::tan(Tensor self) -> Tensor
    aten::asin(Tensor self) -> Tensor
    aten::acos(Tensor self) -> Tensor
    aten::atan(Tensor self) -> Tensor
    aten::sinh(Tensor self) -> Tensor
    aten::cosh(Tensor self) -> Tensor
    aten::asinh(Tensor self) -> Tensor
    aten::acosh(Tensor self) -> Tensor
    aten::atanh(Tensor self) -> Tensor
    """
    return call.node(_PLAIN[call.overload](), call.operand("self"))


@torch_op(*_ROUNDING)
def rounded(call: Call) -> Value:
    """Round as ONNX does, halves to even; integers are round already.

    aten::floor(Tensor self) -> Tensor
    aten::ceil(Tensor self) -> Tensor
    aten::round(Tensor self) -> Tensor
    """
    x = call.operand("self")
    return call.node(_ROUNDING[call.overload](), x) if "float" in x.dtype else x


@torch_op(aten.round.decimals)
def round_decimals(call: Call) -> Value:
    """Round after moving the point: aten::round.decimals(Tensor self, *, int decimals) -> Tensor."""
    x, factor = call.operand("self"), 10.0 ** abs(call.argument("decimals"))
    away, back = (hub.Mul(), hub.Div()) if call.argument("decimals") >= 0 else (hub.Div(), hub.Mul())
    number = call.full((), factor)
    return call.node(back, call.pointwise(hub.Round(), call.pointwise(away, x, number)), number)


@torch_op(aten.trunc.default)
def trunc(call: Call) -> Value:
    """Round towards zero: aten::trunc(Tensor self) -> Tensor."""
    x = call.operand("self")
    return truncated(call, x) if "float" in x.dtype else x


@torch_op(aten.frac.default)
def frac(call: Call) -> Value:
    """Take what is behind the point: aten::frac(Tensor self) -> Tensor."""
    x = call.operand("self")
    return call.node(hub.Sub(), x, truncated(call, x))


@torch_op(aten.abs.default)
def abs_(call: Call) -> Value:
    """Lower as it is: aten::abs(Tensor self) -> Tensor."""
    x = call.operand("self")
    return x if x.dtype == "bool" else call.node(hub.Abs(), x)


@torch_op(aten.neg.default)
def neg(call: Call) -> Value:
    """Lower as it is: aten::neg(Tensor self) -> Tensor."""
    return call.node(hub.Neg(), call.operand("self"))


@torch_op(aten.sign.default, aten.sgn.default)
def sign(call: Call) -> Value:
    """Lower as it is; a truth value is its own sign.

    aten::sign(Tensor self) -> Tensor
    aten::sgn(Tensor self) -> Tensor
    """
    x = call.operand("self")
    return x if x.dtype == "bool" else call.node(hub.Sign(), x)


@torch_op(aten.signbit.default)
def signbit(call: Call) -> Value:
    """Tell what is below zero; a negative zero counts as zero here: aten::signbit(Tensor self) -> Tensor."""
    x = call.value("self")
    if x.dtype == "bool":
        return call.full(call.dims, False)
    return call.node(hub.Less(), x, call.full((), 0, x.dtype))


@torch_op(aten.erfc.default, aten.special_erfc.default)
def erfc(call: Call) -> Value:
    """Take what the error function lacks to one.

    aten::erfc(Tensor self) -> Tensor
    aten::special_erfc(Tensor self) -> Tensor
    """
    erf = call.pointwise(hub.Erf(), call.operand("self"))
    return call.node(hub.Sub(), call.full((), 1.0), erf)


@torch_op(aten.rsqrt.default)
def rsqrt(call: Call) -> Value:
    """Take the reciprocal of the root: aten::rsqrt(Tensor self) -> Tensor."""
    return call.node(hub.Reciprocal(), call.pointwise(hub.Sqrt(), call.operand("self")))


@torch_op(aten.log2.default)
def log2(call: Call) -> Value:
    """Divide the natural logarithm by that of 2: aten::log2(Tensor self) -> Tensor."""
    return _log_over(call, math.log(2))


@torch_op(aten.log10.default)
def log10(call: Call) -> Value:
    """Divide the natural logarithm by that of 10: aten::log10(Tensor self) -> Tensor."""
    return _log_over(call, math.log(10))


@torch_op(aten.exp2.default, aten.special_exp2.default)
def exp2(call: Call) -> Value:
    """Raise 2 to the power of the argument.

    aten::exp2(Tensor self) -> Tensor
    aten::special_exp2(Tensor self) -> Tensor
    """
    return call.node(hub.Pow(), call.full((), 2.0), call.operand("self"))


@torch_op(aten.log1p.default, aten.special_log1p.default)
def log1p(call: Call) -> Value:
    """Use log(u) * x / (u - 1) for u = 1 + x, which keeps the digits of a small x.

    aten::log1p(Tensor self) -> Tensor
    aten::special_log1p(Tensor self) -> Tensor
    """
    x, one = call.operand("self"), call.full((), 1.0)
    sum_ = call.pointwise(hub.Add(), x, one)
    rest = call.pointwise(hub.Sub(), sum_, one)
    small = call.pointwise(hub.Equal(), rest, call.full((), 0.0), dtype="bool")
    # The quotient is not read where u is 1 or infinite.
    endless = call.pointwise(hub.IsInf(detect_negative=0), sum_, dtype="bool")
    log = call.pointwise(hub.Log(), sum_)
    corrected = call.pointwise(hub.Mul(), log, call.pointwise(hub.Div(), x, rest))
    large = call.pointwise(hub.Where(), endless, log, corrected, dtype=x.dtype)
    return call.node(hub.Where(), small, x, large)


@torch_op(aten.expm1.default, aten.special_expm1.default)
def expm1(call: Call) -> Value:
    """Use 2 * tanh(x / 2) / (1 - tanh(x / 2)) for a small x, whose digits exp(x) - 1 would lose.

    aten::expm1(Tensor self) -> Tensor
    aten::special_expm1(Tensor self) -> Tensor
    """
    x, one, two = call.operand("self"), call.full((), 1.0), call.full((), 2.0)
    t = call.pointwise(hub.Tanh(), call.pointwise(hub.Div(), x, two))
    exact = call.pointwise(hub.Div(), call.pointwise(hub.Mul(), t, two), call.pointwise(hub.Sub(), one, t))
    plain_ = call.pointwise(hub.Sub(), call.pointwise(hub.Exp(), x), one)
    near = call.pointwise(hub.Less(), call.pointwise(hub.Abs(), x), one, dtype="bool")
    return call.node(hub.Where(), near, exact, plain_)


@torch_op(aten.atan2.default)
def atan2(call: Call) -> Value:
    """Take the angle of the quotient, half a turn further where the divisor is below zero.

    aten::atan2(Tensor self, Tensor other) -> Tensor
    """
    y, x = call.operand("self"), call.operand("other")
    zero = call.full((), 0.0)
    angle = call.pointwise(hub.Atan(), call.pointwise(hub.Div(), y, x))
    below = call.pointwise(hub.Less(), y, zero, dtype="bool")
    half_turn = call.pointwise(
        hub.Where(), below, call.full((), -math.pi), call.full((), math.pi), dtype=call.dtype
    )
    behind = call.pointwise(hub.Less(), x, zero, dtype="bool")
    turned = call.pointwise(
        hub.Where(), behind, call.pointwise(hub.Add(), angle, half_turn), angle, dtype=call.dtype
    )
    # Zero by zero is no number; PyTorch gives the angle zero.
    undefined = call.pointwise(hub.IsNaN(), call.pointwise(hub.Div(), y, x), dtype="bool")
    return call.node(hub.Where(), undefined, zero, turned)


@torch_op(aten.isnan.default)
def isnan(call: Call) -> Value:
    """Lower as it is; an integer is always a number: aten::isnan(Tensor self) -> Tensor."""
    x = call.value("self")
    if "float" not in x.dtype:
        return call.full(call.dims, False)
    return call.node(hub.IsNaN(), x)


@torch_op(aten.isinf.default)
def isinf(call: Call) -> Value:
    """Lower as it is; an integer is always finite: aten::isinf(Tensor self) -> Tensor."""
    x = call.value("self")
    if "float" not in x.dtype:
        return call.full(call.dims, False)
    return call.node(hub.IsInf(), x)


@torch_op(aten.isfinite.default)
def isfinite(call: Call) -> Value:
    """Tell what is neither NaN nor infinite: aten::isfinite(Tensor self) -> Tensor."""
    x = call.value("self")
    if "float" not in x.dtype:
        return call.full(call.dims, True)
    odd = call.pointwise(
        hub.Or(),
        call.pointwise(hub.IsNaN(), x, dtype="bool"),
        call.pointwise(hub.IsInf(), x, dtype="bool"),
    )
    return call.node(hub.Not(), odd)


def truncated(call: Call, x: Value) -> Value:
    """Return `x`, a float, rounded towards zero."""
    size = call.pointwise(hub.Floor(), call.pointwise(hub.Abs(), x))
    return call.pointwise(hub.Mul(), call.pointwise(hub.Sign(), x), size)


def _log_over(call: Call, number: float) -> Value:
    return call.node(hub.Div(), call.pointwise(hub.Log(), call.operand("self")), call.full((), number))
