"""Conversions of the element type, and operators that give their tensor as it is."""

from __future__ import annotations

import torch

from caffeforge.runtime.graph import Value
from caffeforge.runtime.torch_front.call import Call
from caffeforge.runtime.torch_front.layout import expanded
from caffeforge.runtime.torch_front.registry import torch_op

aten = torch.ops.aten


@torch_op(
    aten.contiguous.default,
    aten.alias.default,
    aten.clone.default,
    aten.detach.default,
    aten.lift_fresh_copy.default,
    aten.to.dtype,
    aten.to.device,
    aten.to.dtype_layout,
    aten.to.other,
    aten._to_copy.default,
    aten.type_as.default,
    aten.positive.default,
    aten.resolve_conj.default,
    aten.resolve_neg.default,
)
def converted(call: Call) -> Value:
    """Convert the element type if it changes; memory layout and device have no place in the hub.

    aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)
    aten::alias(Tensor(a) self) -> Tensor(a)
    aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor
    aten::detach(Tensor(a) self) -> Tensor(a)
    aten::lift_fresh_copy(Tensor self) -> Tensor
    aten::to.dtype(Tensor(a) self, ScalarType dtype, ...) -> Tensor(a)
    aten::to.device(Tensor(a) self, Device device, ScalarType dtype, ...) -> Tensor(a)
    aten::to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, ...) -> Tensor(a)
    aten::to.other(Tensor(a) self, Tensor other, ...) -> Tensor(a)
    aten::_to_copy(Tensor self, *, ScalarType? dtype=None, ...) -> Tensor
    aten::type_as(Tensor self, Tensor other) -> Tensor
    aten::positive(Tensor(a) self) -> Tensor(a)
    aten::resolve_conj(Tensor(a) self) -> Tensor(a)
    aten::resolve_neg(Tensor(a) self) -> Tensor(a)
    """
    return call.operand("self")


@torch_op(
    aten.dropout.default,
    aten.feature_dropout.default,
    aten.alpha_dropout.default,
    aten.feature_alpha_dropout.default,
)
def dropout(call: Call) -> Value:
    """Become nothing, as in evaluation mode.

    aten::dropout(Tensor input, float p, bool train) -> Tensor
    aten::feature_dropout(Tensor input, float p, bool train) -> Tensor
    aten::alpha_dropout(Tensor input, float p, bool train) -> Tensor
    aten::feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor
    """
    if call.argument("train") and call.argument("p") > 0:
        raise call.error(
            "drops elements at random", hint="use nn.Dropout, or pass training=self.training to the function"
        )
    return call.value("input")


@torch_op(aten.copy.default)
def copy(call: Call) -> Value:
    """Become the source, converted to and spread over the tensor whose elements it replaces.

    aten::copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor
    """
    return expanded(call, call.operand("src"), call.dims)


@torch_op(aten.fill.Tensor)
def fill(call: Call) -> Value:
    """Become the number, converted to and spread over the tensor whose elements it replaces.

    aten::fill.Tensor(Tensor self, Tensor value) -> Tensor
    """
    return expanded(call, call.operand("value"), call.dims)
