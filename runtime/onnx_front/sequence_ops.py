"""Sequences and optionals: where it is known before the model runs what they hold, they vanish."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from caffeforge.generated import hub
from caffeforge.runtime.array import Dense
from caffeforge.runtime.graph import Value, constant
from caffeforge.runtime.onnx_front.call import Call, Unconvertible, static_dims
from caffeforge.runtime.onnx_front.items import Items, Nothing
from caffeforge.runtime.onnx_front.registry import converts
from caffeforge.runtime.onnx_node import DTYPES

# Ops that take what is no tensor.
TAKE_ITEMS: Final = frozenset(
    {"Identity", "Optional", "OptionalHasElement", "OptionalGetElement", "SequenceAt", "SequenceErase"}
    | {"SequenceInsert", "SequenceLength", "ConcatFromSequence"}
)

_FLOAT: Final = 1  # ONNX's number of float32


@converts("SequenceConstruct")
def construct(call: Call) -> Sequence[Value]:
    """The operands, in order."""
    items = [value for value in call.inputs if value is not None]
    return [Items(call.value(0).dtype, items)]


@converts("SequenceEmpty")
def empty(call: Call) -> Sequence[Value]:
    """Float32 where no type is named."""
    return [Items(DTYPES[call.op.fields_by_name().get("dtype") or _FLOAT], ())]


@converts("SequenceInsert")
def insert(call: Call) -> Sequence[Value]:
    """Before a position; behind all others if none is given."""
    given = _items(call)
    at = len(given.items) if call.operand(2) is None else _position(call, 2, len(given.items) + 1)
    return [Items(given.dtype, (*given.items[:at], call.value(1), *given.items[at:]))]


@converts("SequenceErase")
def erase(call: Call) -> Sequence[Value]:
    """The last one if no position is given."""
    given = _items(call)
    at = len(given.items) - 1 if call.operand(1) is None else _position(call, 1, len(given.items))
    return [Items(given.dtype, (*given.items[:at], *given.items[at + 1 :]))]


@converts("SequenceAt")
def at(call: Call) -> Sequence[Value]:
    """A position that is computed when the model runs chooses among tensors of one shape."""
    items = _items(call).items
    place = call.value(1)
    if place.data is not None:
        return [items[_position(call, 1, len(items))]]
    if not items:
        raise Unconvertible("it chooses from a sequence that holds no tensor")
    if len({item.dims for item in items}) != 1:
        raise Unconvertible("it chooses among tensors of several shapes when the model runs")
    if place.rank:
        place = call.one(hub.Reshape(shape=()), place)
    return [call.one(hub.Gather(axis=0), _stacked(call, items, 0), place)]


@converts("SequenceLength")
def length(call: Call) -> Sequence[Value]:
    """A constant."""
    return [constant("", Dense(np.array(len(_items(call).items), np.int64)))]


@converts("ConcatFromSequence")
def concat(call: Call) -> Sequence[Value]:
    """Along an axis that the tensors have, or along a new one."""
    items, given = _items(call).items, call.op.fields_by_name()
    if not items:
        raise Unconvertible("the sequence holds no tensor to join")
    axis = given["axis"]
    if given["new_axis"]:
        return [_stacked(call, items, axis)]
    if len(items) == 1:
        return list(items)
    axis += items[0].rank if axis < 0 else 0
    return [call.one(hub.Concat(axis=axis), *items)]


@converts("SplitToSequence")
def split(call: Call) -> Sequence[Value]:
    """Into parts of one size, the last of which may be smaller, or of the sizes of a vector."""
    x, given = call.value(0), call.op.fields_by_name()
    axis = given["axis"] % x.rank
    sizes = call.operand(1)
    if sizes is not None and sizes.rank == 1:
        (count,) = static_dims(sizes, (0,))
        if sizes.data is not None:
            return [_parts(call, axis, sizes.data.numpy().tolist())]
        return [Items(x.dtype, call.emit(hub.Split(axis=axis), x, sizes, count=count))]
    size = 1 if sizes is None else _number(call, 1)
    (total,) = static_dims(x, (axis,))
    if size < 1:
        raise Unconvertible(f"parts of {size} elements cannot be made")
    full, rest = divmod(total, size)
    parts = _parts(call, axis, [size] * full + [rest] * bool(rest))
    if sizes is None and not given["keepdims"]:
        return [Items(x.dtype, [call.one(hub.Squeeze(axes=(axis,)), part) for part in parts.items])]
    return [parts]


@converts("Optional")
def optional(call: Call) -> Sequence[Value]:
    """What it holds, or nothing."""
    return [call.value(0) if call.operand(0) is not None else Nothing()]


@converts("OptionalHasElement")
def has_element(call: Call) -> Sequence[Value]:
    """A constant; a tensor or sequence counts as an optional that holds it."""
    given = call.operand(0)
    return [constant("", Dense(np.array(given is not None and not isinstance(given, Nothing))))]


@converts("OptionalGetElement")
def get_element(call: Call) -> Sequence[Value]:
    """What it holds."""
    given = call.value(0)
    if isinstance(given, Nothing):
        raise Unconvertible("the optional that it reads holds nothing")
    return [given]


def _items(call: Call) -> Items:
    found = call.value(0)
    if not isinstance(found, Items):
        raise Unconvertible("how long the sequence is is computed when the model runs")
    return found


def _number(call: Call, index: int) -> int:
    found = call.constant(index)
    if found is None or found.size != 1:
        raise Unconvertible(
            f"its {'position' if index == 2 else 'position or size'} is computed when it runs"
        )
    return int(found.reshape(-1)[0])


def _position(call: Call, index: int, count: int) -> int:
    """Return a position from the front; a negative one counts from behind."""
    given = _number(call, index)
    last = count - 1
    found = given + len(_items(call).items) if given < 0 else given
    if not 0 <= found <= last:
        raise Unconvertible(f"position {given} lies outside a sequence of {len(_items(call).items)} tensors")
    return found


def _parts(call: Call, axis: int, sizes: Sequence[int]) -> Items:
    x = call.value(0)
    if len(sizes) == 1:
        return Items(x.dtype, (x,))
    op = hub.Split(axis=axis, split=tuple(sizes))
    return Items(x.dtype, call.emit(op, x, count=len(sizes)))


def _stacked(call: Call, items: Sequence[Value], axis: int) -> Value:
    axis += items[0].rank + 1 if axis < 0 else 0
    rows = [call.one(hub.Unsqueeze(axes=(axis,)), item) for item in items]
    return rows[0] if len(rows) == 1 else call.one(hub.Concat(axis=axis), *rows)
