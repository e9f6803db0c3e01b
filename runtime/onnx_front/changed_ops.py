"""Ops whose meaning changed between versions, or whose parts have other names in the hub."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from onnx import TensorProto

from caffeforge.generated import hub
from caffeforge.runtime.array import Dense
from caffeforge.runtime.graph import Value
from caffeforge.runtime.onnx_front import generic
from caffeforge.runtime.onnx_front.call import Call, Unconvertible, static_dims
from caffeforge.runtime.onnx_front.registry import converts
from caffeforge.runtime.onnx_node import DTYPES, element_type

_LOWEST: Final = float(np.finfo(np.float32).min)


@converts("Softmax", "LogSoftmax", "Hardmax")
def softmax(call: Call) -> Sequence[Value]:
    """Before opset 13 all axes from `axis` on are one; from then on it is one axis."""
    if call.op.since >= 13:
        return generic.convert(call)
    x, axis = call.value(0), call.op.fields_by_name()["axis"]
    axis += x.rank if axis < 0 else 0
    if all(dim == 1 for dim in x.dims[axis + 1 :]):
        return generic.convert(call, {"axis": axis})
    tail = static_dims(x, range(axis, x.rank))
    flat = call.one(hub.Reshape(shape=(0,) * axis + (-1,)), x)
    op = hub.OPS[call.op.op_type](axis=-1)  # type: ignore[call-arg]
    return [call.one(hub.Reshape(shape=(0,) * axis + tail), call.one(op, flat))]


@converts("Clip")
def clip(call: Call) -> Sequence[Value]:
    """Before opset 11 a bound that is left out is float32's last number: no bound at all."""
    if call.op.since >= 11:
        return generic.convert(call)
    given = call.op.fields_by_name()
    low, high = given["min"], given["max"]
    narrow = call.value(0).dtype in ("float32", "float16")
    open_low, open_high = narrow and low <= _LOWEST * 0.9999, narrow and high >= -_LOWEST * 0.9999
    return generic.convert(call, {"min": None if open_low else low, "max": None if open_high else high})


@converts("Pad")
def pad(call: Call) -> Sequence[Value]:
    """The value was an attribute of another name."""
    if call.op.since >= 11:
        return generic.convert(call)
    value = call.op.fields_by_name().get("value", 0.0)
    return generic.convert(call, {"constant_value": value}, dropped=("value",))


@converts("TopK")
def top_k(call: Call) -> Sequence[Value]:
    """The count was an attribute of another name."""
    if call.op.since >= 10:
        return generic.convert(call)
    return generic.convert(call, {"K": call.op.fields_by_name()["k"]}, dropped=("k",))


@converts("Dropout")
def dropout(call: Call) -> Sequence[Value]:
    """Before opset 10 the mask is of the input's type; nothing reads it when a model infers."""
    if call.op.since < 10 and len(call.used) > 1:
        raise Unconvertible("the mask is read, whose type has changed since")
    if not call.op.fields_by_name().get("is_test", 1):
        raise Unconvertible("is_test=0 trains")
    return generic.convert(call, dropped=("is_test",))


@converts("BatchNormalization")
def batch_normalization(call: Call) -> Sequence[Value]:
    """Before opset 14 further outputs mean training; `spatial` before opset 9 means one channel a mean.

    Before opset 7 `is_test` says that the model infers.
    """
    if not call.op.fields_by_name().get("is_test", 1):
        raise Unconvertible("is_test=0 trains")
    if call.op.since < 14 and len(call.used) > 1:
        raise Unconvertible("it is written for training: more outputs than one are read")
    if not call.op.fields_by_name().get("spatial", 1):
        raise Unconvertible("spatial=0 normalizes each position by itself")
    return generic.convert(call, dropped=("spatial", "is_test"))


@converts("Identity")
def identity(call: Call) -> Sequence[Value]:
    """Nothing: exporters write it to share one weight, or in place of what they took out."""
    return [call.value(0)]


@converts("Cast")
def cast(call: Call) -> Sequence[Value]:
    """Nothing where the operand is of that type; in opset 1 types are named by text."""
    to = call.op.fields_by_name()["to"]
    to = TensorProto.DataType.Value(to) if isinstance(to, str) else to
    x = call.value(0)
    if DTYPES.get(to) == x.dtype:
        return [x]
    before = x.producer
    if before is not None and isinstance(before.op, hub.OneHot) and before.inputs[2] is not None:
        # PyTorch's old exporter says torch.gather so: of integers, which are cast then.
        values = call.one(hub.Cast(to=to), before.inputs[2])
        return [call.one(before.op, *before.inputs[:2], values)]
    return generic.convert(call, {"to": to})


@converts("CastLike")
def cast_like(call: Call) -> Sequence[Value]:
    """Cast to the type of the second operand."""
    given = {name: value for name, value in call.op.fields_by_name().items() if value is not None}
    return [call.one(hub.Cast(to=element_type(call.value(1).dtype), **given), call.value(0))]


@converts("Range")
def sequence(call: Call) -> Sequence[Value]:
    """Limits are scalars; exporters write vectors of one element too, which runtimes take."""
    for index, operand in enumerate(call.inputs):
        if operand is not None and operand.dims == (1,):
            call.inputs[index] = call.one(hub.Squeeze(axes=(0,)), operand)
    return generic.convert(call)


@converts("Scatter")
def scatter(call: Call) -> Sequence[Value]:
    """The old name of ScatterElements."""
    return generic.convert(call, op_type="ScatterElements")


@converts("Transpose")
def transpose(call: Call) -> Sequence[Value]:
    """Axes are reversed where no order is given."""
    perm = call.op.fields_by_name().get("perm") or tuple(reversed(range(call.value(0).rank)))
    return generic.convert(call, {"perm": perm})


@converts("Reshape")
def reshape(call: Call) -> Sequence[Value]:
    """``allowzero``, which PyTorch's exporter always sets, says nothing where the shape has no zero."""
    if call.op.since < 14 or not call.op.fields_by_name()["allowzero"]:
        return generic.convert(call)
    shape = call.elements(call.value(1))
    return generic.convert(call, {} if shape is None or 0 in shape else {"allowzero": 0})


@converts("Split")
def split(call: Call) -> Sequence[Value]:
    """Without sizes the parts are equal, as many as there are outputs, read or not."""
    call.used = (*call.used, *[False] * (call.outputs - len(call.used)))
    given = call.op.fields_by_name()
    if call.operand(1) is not None or given.get("split") or given.get("num_outputs"):
        return generic.convert(call)
    return generic.convert(call, {"num_outputs": call.outputs})


@converts("GroupNormalization")
def group_normalization(call: Call) -> Sequence[Value]:
    """In opset 18 scale and bias are one number a group, from 21 on one a channel."""
    if call.op.since >= 21:
        return generic.convert(call)
    groups = call.op.fields_by_name()["num_groups"]
    (channels,) = static_dims(call.value(0), (1,))
    for index in (1, 2):
        elements = call.constant(index)
        if elements is None:
            column = call.one(hub.Unsqueeze(axes=(1,)), call.value(index))
            wide = call.one(hub.Expand(shape=(groups, channels // groups)), column)
            call.inputs[index] = call.one(hub.Reshape(shape=(channels,)), wide)
        else:
            spread = Dense(np.repeat(elements, channels // groups))
            call.inputs[index] = Value("", spread.dtype, spread.shape, spread)
    return generic.convert(call)
