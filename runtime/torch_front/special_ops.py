"""Special functions that ONNX lacks, by approximations that hold to float32's precision."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import torch

from caffeforge.generated import hub
from caffeforge.runtime.graph import Value
from caffeforge.runtime.torch_front.call import Call
from caffeforge.runtime.torch_front.registry import torch_op

aten = torch.ops.aten

# M. Giles, "Approximating the erfinv function", 2010: polynomials in w = -log(1 - x^2), from the highest
# power on: in w - 2.5 for w < 5, in sqrt(w) - 3 else.
_CENTRE: Final = (
    *(2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06),
    *(2.1858087e-04, -1.25372503e-03, -4.17768164e-03, 2.46640727e-01, 1.50140941),
)
_TAIL: Final = (
    *(-2.00214257e-04, 1.00950558e-04, 1.34934322e-03, -3.67342844e-03),
    *(5.73950773e-03, -7.6224613e-03, 9.43887047e-03, 1.00167406, 2.83297682),
)


@torch_op(aten.erfinv.default, aten.special_erfinv.default)
def erfinv(call: Call) -> Value:
    """Evaluate Giles' polynomials.

    aten::erfinv(Tensor self) -> Tensor
    aten::special_erfinv(Tensor self) -> Tensor
    """
    return _erfinv(call, call.operand("self"))


@torch_op(aten.special_ndtri.default)
def ndtri(call: Call) -> Value:
    """Become sqrt(2) * erfinv(2 x - 1): aten::special_ndtri(Tensor self) -> Tensor."""
    doubled = call.pointwise(hub.Mul(), call.operand("self"), call.full((), 2.0))
    inverse = _erfinv(call, call.pointwise(hub.Sub(), doubled, call.full((), 1.0)))
    return call.node(hub.Mul(), inverse, call.full((), math.sqrt(2)))


def _erfinv(call: Call, x: Value) -> Value:
    one = call.full((), 1.0)
    # The product of the factors is exact where 1 - x^2 is not: near one.
    factors = [call.pointwise(op, one, x) for op in (hub.Sub(), hub.Add())]
    w = call.pointwise(hub.Neg(), call.pointwise(hub.Log(), call.pointwise(hub.Mul(), *factors)))
    centre = _polynomial(call, call.pointwise(hub.Sub(), w, call.full((), 2.5)), _CENTRE)
    root = call.pointwise(hub.Sqrt(), call.pointwise(hub.Max(), w, call.full((), 0.0)))
    tail = _polynomial(call, call.pointwise(hub.Sub(), root, call.full((), 3.0)), _TAIL)
    near = call.pointwise(hub.Less(), w, call.full((), 5.0), dtype="bool")
    slope = call.pointwise(hub.Where(), near, centre, tail, dtype=x.dtype)
    end = call.pointwise(hub.Equal(), call.pointwise(hub.Abs(), x), one, dtype="bool")
    slope = call.pointwise(hub.Where(), end, call.full((), math.inf), slope, dtype=x.dtype)
    return call.pointwise(hub.Mul(), x, slope)


def _polynomial(call: Call, x: Value, coefficients: Sequence[float]) -> Value:
    """Return a polynomial of `x` by Horner's rule, its coefficients from the highest power on."""
    total = call.full((), coefficients[0])
    for coefficient in coefficients[1:]:
        product = call.pointwise(hub.Mul(), x, total)
        total = call.pointwise(hub.Add(), product, call.full((), coefficient))
    return total
