"""What is known of small integer tensors before the model runs: shapes on their way to Reshape.

An exporter writes ``x.view(x.shape[0], -1)`` as Shape, Gather, Unsqueeze, Concat, Reshape. Where all sizes
are known that is a constant; where the batch is a symbol, elements are numbers and symbols side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from caffeforge.generated import hub
from caffeforge.runtime.graph import Dim, Value
from caffeforge.runtime.op import Op

Elements = tuple["Dim | None", ...]  # None for one that is not known
Known = Callable[[Value], "Elements | None"]

LONGEST: Final = 64  # elements; no shape is longer


def propagate(op: Op, inputs: Sequence[Value | None], known: Known) -> Elements | None:
    """Return the elements of the result of `op`, row-major; None if nothing is known of them."""
    function = _FUNCTIONS.get(type(op))
    first = inputs[0] if inputs else None
    if function is None or first is None:
        return None
    found: Elements | None = function(op, inputs, known)
    return found if found is not None and any(e is not None for e in found) else None


def _shape(op: hub.Shape, inputs: Sequence[Value], known: Known) -> Elements:
    return inputs[0].dims[op.start : op.end]


def _size(op: hub.Size, inputs: Sequence[Value], known: Known) -> Elements | None:
    total = 1
    for dim in inputs[0].dims:
        if not isinstance(dim, int):
            return None
        total *= dim
    return (total,)


def _same(op: Op, inputs: Sequence[Value], known: Known) -> Elements | None:
    return known(inputs[0])


def _cast(op: hub.Cast, inputs: Sequence[Value], known: Known) -> Elements | None:
    return known(inputs[0]) if op.to in (6, 7) else None  # int32, int64


def _gather(op: hub.Gather, inputs: Sequence[Value], known: Known) -> Elements | None:
    data, places = known(inputs[0]), known(inputs[1])
    if data is None or places is None or inputs[0].rank != 1:
        return None
    if not all(isinstance(place, int) and -len(data) <= place < len(data) for place in places):
        return None
    return tuple(data[place] for place in places if isinstance(place, int))


def _slice(op: hub.Slice, inputs: Sequence[Value], known: Known) -> Elements | None:
    data = known(inputs[0])
    if data is None or inputs[0].rank != 1 or op.starts is None or op.ends is None:
        return None
    step = op.steps[0] if op.steps else 1
    if len(inputs) > 1 or step == 0:
        return None
    start, end = op.starts[0], op.ends[0]
    if step < 0 and end < -len(data):
        return data[start::step]
    return data[start:end:step]


def _concat(op: hub.Concat, inputs: Sequence[Value], known: Known) -> Elements | None:
    found: list[Dim | None] = []
    for value in inputs:
        part = known(value)
        if value.rank != 1 or not isinstance(value.dims[0], int):
            return None
        found += part if part is not None else [None] * value.dims[0]
    return tuple(found)


def _arithmetic(op: Op, inputs: Sequence[Value], known: Known) -> Elements | None:
    left, right = known(inputs[0]), known(inputs[1])
    if max(inputs[0].rank, inputs[1].rank) > 1:
        return None
    if left is None or right is None or (len(left) != len(right) and 1 not in (len(left), len(right))):
        return None
    count = max(len(left), len(right))
    pairs = zip(left * (count // len(left)), right * (count // len(right)), strict=True)
    return tuple(_computed(op, a, b) for a, b in pairs)


def _computed(op: Op, a: Dim | None, b: Dim | None) -> Dim | None:
    if isinstance(a, int) and isinstance(b, int):
        return _whole(op, a, b)
    neutral = 1 if isinstance(op, (hub.Mul, hub.Div)) else 0
    if b == neutral:
        return a
    return b if a == neutral and isinstance(op, (hub.Mul, hub.Add)) else None


def _whole(op: Op, a: int, b: int) -> int | None:
    if isinstance(op, hub.Add):
        return a + b
    if isinstance(op, hub.Sub):
        return a - b
    if isinstance(op, hub.Mul):
        return a * b
    return None if b == 0 else int(abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)


_FUNCTIONS: Final[dict[type[Op], Callable[[Any, Any, Known], Elements | None]]] = {
    hub.Shape: _shape,
    hub.Size: _size,
    hub.Identity: _same,
    hub.Reshape: _same,
    hub.Squeeze: _same,
    hub.Unsqueeze: _same,
    hub.Cast: _cast,
    hub.Gather: _gather,
    hub.Slice: _slice,
    hub.Concat: _concat,
    hub.Add: _arithmetic,
    hub.Sub: _arithmetic,
    hub.Mul: _arithmetic,
    hub.Div: _arithmetic,
}
