"""Opset 6 and older: the second operand's axes were aligned by attributes, and shapes were attributes."""

from __future__ import annotations

from collections.abc import Sequence

from caffeforge.generated import hub
from caffeforge.runtime.graph import Value
from caffeforge.runtime.onnx_front import generic
from caffeforge.runtime.onnx_front.call import Call
from caffeforge.runtime.onnx_front.registry import converts

_DROPPED = ("axis", "broadcast")


@converts("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Greater", "Less", "Equal")
def aligned(call: Call) -> Sequence[Value]:
    """Before opset 7 `axis` says which axis of the first operand the second begins at."""
    given = call.op.fields_by_name()
    if not given.get("broadcast") or given.get("axis") is None:
        return generic.convert(call, dropped=_DROPPED)
    first, second = call.value(0), call.value(1)
    axis = given["axis"] % first.rank
    behind = first.rank - axis - second.rank
    if behind > 0:
        axes = tuple(range(second.rank, second.rank + behind))
        call.inputs[1] = call.one(hub.Unsqueeze(axes=axes), second)
    return generic.convert(call, dropped=_DROPPED)


@converts("PRelu")
def prelu(call: Call) -> Sequence[Value]:
    """Before opset 7 a slope of one axis is one number a channel; some exporters still write it so."""
    x, slope = call.value(0), call.value(1)
    channels = x.dims[1] if x.rank > 1 else None
    if (
        slope.rank == 1
        and x.rank > 2
        and slope.dims[0] == channels
        and (call.op.since < 7 or x.dims[-1] != channels)
    ):
        call.inputs[1] = call.one(hub.Unsqueeze(axes=tuple(range(1, x.rank - 1))), slope)
    return generic.convert(call)


@converts("Gemm")
def gemm(call: Call) -> Sequence[Value]:
    """Before opset 7 `broadcast` says what has been so since."""
    return generic.convert(call, dropped=("broadcast",))


@converts("Concat")
def concat(call: Call) -> Sequence[Value]:
    """Before opset 4 the axis is 1 where it is left out."""
    axis = call.op.fields_by_name().get("axis")
    return generic.convert(call, {"axis": 1 if axis is None else axis})
