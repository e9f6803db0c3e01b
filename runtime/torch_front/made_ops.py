"""Tensors made from sizes alone: constants for fixed sizes, which are folded, and values for open ones."""

from __future__ import annotations

from typing import Any

import torch

from caffeforge.generated import hub
from caffeforge.runtime.graph import Value
from caffeforge.runtime.symbol import Symbol
from caffeforge.runtime.torch_front.call import Call
from caffeforge.runtime.torch_front.registry import torch_op

aten = torch.ops.aten


@torch_op(
    aten.full.default,
    aten.full_like.default,
    aten.new_full.default,
    aten.fill.Scalar,
)
def full(call: Call) -> Value:
    """Spread a number over the result's shape.

    aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, ...) -> Tensor
    aten::full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, ...) -> Tensor
    aten::new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, ...) -> Tensor
    aten::fill.Scalar(Tensor self, Scalar value) -> Tensor
    """
    return _filled(call, call.argument("fill_value" if call.has("fill_value") else "value"))


@torch_op(aten.ones.default, aten.ones_like.default, aten.new_ones.default)
def ones(call: Call) -> Value:
    """Spread a one over the result's shape.

    aten::ones(SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor
    aten::ones_like(Tensor self, *, ScalarType? dtype=None, ...) -> Tensor
    aten::new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor
    """
    return _filled(call, 1)


@torch_op(
    aten.zeros.default,
    aten.zeros_like.default,
    aten.new_zeros.default,
    aten.zero.default,
    aten.empty.memory_format,
    aten.empty_like.default,
    aten.new_empty.default,
)
def zeros(call: Call) -> Value:
    """Spread a zero over the result's shape; what an empty tensor holds is not said, so it may be zero.

    aten::zeros(SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor
    aten::zeros_like(Tensor self, *, ScalarType? dtype=None, ...) -> Tensor
    aten::new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor
    aten::zero(Tensor self) -> Tensor
    aten::empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor
    aten::empty_like(Tensor self, *, ScalarType? dtype=None, ...) -> Tensor
    aten::new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor
    """
    return _filled(call, 0)


@torch_op(aten.arange.default, aten.arange.start, aten.arange.start_step)
def arange(call: Call) -> Value:
    """Count from start to end.

    aten::arange(Scalar end, *, ScalarType? dtype=None, ...) -> Tensor
    aten::arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, ...) -> Tensor
    aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, ...)
    -> Tensor
    """
    limits = [call.size(name) if call.knows(name) else number for name, number in _LIMITS]
    if not all(isinstance(limit, (int, Symbol)) for limit in limits):
        raise call.error("counts by numbers that are computed from sizes", hint="count by whole numbers")
    operands = [call.scalar(limit) for limit in limits if limit is not None]
    return call.cast(call.helper(hub.Range(), *operands, dims=call.dims, dtype="int64"), call.dtype)


_LIMITS = (("start", 0), ("end", 0), ("step", 1))


def _filled(call: Call, number: Any) -> Value:
    return call.full(call.dims, number)
