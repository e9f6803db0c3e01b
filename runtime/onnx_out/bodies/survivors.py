"""Suppression among boxes in the order in which they stand, by a Loop: each meets those behind it.

What stays is what ``references.survivors`` keeps: of two that overlap the one of the lower score goes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from caffeforge.generated import hub
from caffeforge.runtime.array import Full
from caffeforge.runtime.builder import Builder
from caffeforge.runtime.graph import Graph, Origin, Value
from caffeforge.runtime.onnx_node import element_type
from caffeforge.runtime.onnx_out.bodies.body import Body
from caffeforge.runtime.onnx_out.bodies.repeated import Repeated

_FLOAT = element_type("float32")
# (what sides two boxes share (groups, count, 2), the area of one, those of all) -> which overlap too much
Overlap = Callable[[Body, Value, Value, Value], Value]


@dataclass(frozen=True)
class Boxes:
    """Boxes in groups, which know nothing of each other.

    Attributes:
        low: (groups, count, 2): left and top.
        high: as many: right and bottom.
        area: (groups, count).
        scores: as many.
        classes: as many, float32; boxes of two classes do not meet. None if all are of one.
    """

    low: Value
    high: Value
    area: Value
    scores: Value
    classes: Value | None = None

    def values(self) -> list[Value]:
        own = [self.low, self.high, self.area, self.scores]
        return own if self.classes is None else [*own, self.classes]


def survivors(body: Body, boxes: Boxes, overlap: Overlap, *, dropped_meet: bool = False) -> Value:
    """Return float32 (groups, count): 1 for each box that stays, 0 for others.

    Args:
        body: what is built.
        boxes: in the order in which they meet.
        overlap: of pairs.
        dropped_meet: whether boxes that went already can still make the one go that meets them.
    """
    count = boxes.scores.dims[1]
    row = body.reshape(body.part(boxes.scores, 0, 1, 0), -1)
    places = body(hub.Unsqueeze(axes=(0,)), body.chosen(body.ones(row), count))
    read = [*boxes.values(), places]
    op = Repeated(_one_box(boxes, places, overlap, dropped_meet), 1)
    (kept,) = body.all_open(op, [body.count(places), body.ones(boxes.scores), *read], [boxes.scores.dims])
    return kept


def _one_box(boxes: Boxes, places: Value, overlap: Overlap, dropped_meet: bool) -> Graph:
    """Return what is done for one box of each group: (step, who is there, what it reads) -> who is there."""
    step, there = Value("step", "int64", ()), Value("there", "float32", boxes.scores.dims)
    names = ("low", "high", "area", "scores", "classes")
    read = [Value(name, v.dtype, v.dims) for name, v in zip(names, boxes.values(), strict=False)]
    each = Value("places", places.dtype, places.dims)
    low, high, area, scores, *classes = read
    builder = Builder("each", Origin())
    body = Body(builder)
    at = body.reshape(step, 1)

    def own(value: Value) -> Value:
        return body(hub.Gather(axis=1), value, at)

    def true(value: Value) -> Value:
        return body(hub.Cast(to=_FLOAT), value)

    def both(*masks: Value) -> Value:
        found = masks[0]
        for mask in masks[1:]:
            found = body(hub.Mul(), found, mask)
        return found

    sides = body(hub.Sub(), body(hub.Min(), high, own(high)), body(hub.Max(), low, own(low)))
    met = both(true(overlap(body, sides, own(area), area)), true(body(hub.Greater(), each, step)))
    for kind in classes:
        other = body(hub.Abs(), body(hub.Sub(), kind, own(kind)))
        met = both(met, true(body(hub.Less(), other, Full((), 0.5))))
    if not dropped_meet:
        met = both(met, there)
    better = both(met, true(body(hub.Greater(), scores, own(scores))))
    beaten = body(hub.ReduceMax(axes=(1,), keepdims=1), better)
    before = true(body(hub.Less(), each, body(hub.ArgMax(axis=1, keepdims=1), better)))
    dropped = both(met, body(hub.Max(), before, body(hub.Sub(), Full((), 1.0), beaten)))
    itself = both(beaten, true(body(hub.Equal(), each, step)))
    gone = both(own(there), body(hub.Max(), dropped, itself))
    after = both(there, body(hub.Sub(), Full((), 1.0), gone))
    return Graph("each", [step, there, *read, each], [after], builder.nodes)


def by_pixels(threshold: float) -> Overlap:
    """Return the overlap of boxes whose last pixel counts in their area, and not in what two share."""

    def overlap(body: Body, sides: Value, one: Value, areas: Value) -> Value:
        shared = body(hub.ReduceProd(axes=(2,), keepdims=0), sides)
        some = body(hub.Greater(), body(hub.ReduceMin(axes=(2,), keepdims=0), sides), Full((), 0.0))
        part = body(hub.Div(), shared, body(hub.Sub(), body(hub.Add(), one, areas), shared))
        return body(hub.And(), some, body(hub.Greater(), part, Full((), threshold)))

    return overlap


def by_middles(threshold: float) -> Overlap:
    """Return the overlap of boxes that were told by their middles."""

    def overlap(body: Body, sides: Value, one: Value, areas: Value) -> Value:
        apart = body(hub.Less(), body(hub.ReduceMin(axes=(2,), keepdims=0), sides), Full((), 0.0))
        shared = body(hub.ReduceProd(axes=(2,), keepdims=0), sides)
        shared = body(hub.Where(), apart, Full((), 0.0), shared)
        part = body(hub.Div(), shared, body(hub.Sub(), body(hub.Add(), one, areas), shared))
        return body(hub.Greater(), part, Full((), threshold))

    return overlap


def padded(body: Body, table: Value, kept: Value, count: int) -> Value:
    """Return (1, count, columns): the first rows of a table of which a mask says so, zeros behind them."""
    columns = table.shape[1]
    found = body(hub.Gather(axis=0), table, body.chosen(body.reshape(kept, -1)))
    longer = body(hub.Concat(axis=0), found, Full((count, columns), 0.0))
    return body.reshape(body.part(longer, 0, count, 0), 1, count, columns)
