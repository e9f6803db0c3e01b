"""Non-maximum suppression as a mask over boxes, in which later ops count: by ONNX's own op, or by a Loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from caffeforge.generated import hub
from caffeforge.runtime.array import Full
from caffeforge.runtime.builder import Builder, Operand
from caffeforge.runtime.graph import Graph, Origin, Value
from caffeforge.runtime.onnx_node import element_type
from caffeforge.runtime.onnx_out.bodies.body import Body
from caffeforge.runtime.onnx_out.bodies.repeated import Repeated
from caffeforge.runtime.refusal import Refused

LOWEST: Final = float(np.finfo(np.float32).min)  # a score that no box has
_FLOAT: Final = element_type("float32")
_BOOL: Final = element_type("bool")
_LEAST: Final = float(np.finfo(np.float32).tiny)
_ADAPTS: Final = 0.5  # above it a threshold falls


@dataclass(frozen=True)
class Limits:
    """Which boxes go.

    Attributes:
        threshold: one goes that overlaps a better one, which stays, by more than this part of both.
        above: those of lower scores go, or of this one.
        most: so many of a group stay.
        eta: the threshold is multiplied by it after each box that stays, while it is above 0.5.
    """

    threshold: float
    above: float
    most: int
    eta: float = 1.0


class Suppression(Protocol):
    """Returns float32 (groups, count): 1 for each box that stays, 0 for others.

    Boxes are (groups, count, 4): left, top, right, bottom, with their scores, which fall in each group. How
    many they are, a run may tell.
    """

    def __call__(self, body: Body, boxes: Value, scores: Value, limits: Limits) -> Value: ...


def by_op(body: Body, boxes: Value, scores: Value, limits: Limits) -> Value:
    """Suppress by NonMaxSuppression, which opset 10 brought.

    Raises:
        Refused: the threshold falls, or lies below 0.
    """
    if limits.eta < 1:
        raise Refused("NonMaxSuppression has no threshold that falls with each box that stays (nms_eta)")
    if limits.threshold < 0:
        raise Refused("NonMaxSuppression has no threshold below 0")
    groups, count = scores.shape[0], scores.dims[1]
    op = hub.NonMaxSuppression(
        max_output_boxes_per_class=limits.most,
        iou_threshold=min(limits.threshold, 1.0),
        score_threshold=limits.above,
    )
    kept = body.own_size("kept")
    found = body.open(op, boxes, body(hub.Unsqueeze(axes=(1,)), scores), dims=(kept, 3))
    group, rank = (body(hub.Gather(axis=1), found, Full((), place, "int64")) for place in (0, 2))
    places = body(hub.Add(), body(hub.Mul(), group, _length(body, scores)), rank)
    nothing = body.zeros(body.reshape(scores, -1))
    ones = body(hub.Cast(to=_FLOAT), body(hub.Equal(), places, places))
    mask = body(hub.ScatterElements(axis=0), nothing, places, ones)
    return body.reshape(mask, groups, count if isinstance(count, int) else -1)


def by_loop(body: Body, boxes: Value, scores: Value, limits: Limits) -> Value:
    """Suppress by a Loop over the boxes, of all groups at once."""
    groups, count = scores.shape[0], scores.dims[1]
    low, high = body.part(boxes, 0, 2), body.part(boxes, 2, 4)
    area = _area(body, body(hub.Sub(), high, low))
    scored = body(hub.Cast(to=_FLOAT), body(hub.Greater(), scores, Full((), limits.above)))
    starts: list[Operand] = [body.zeros(scores), Full((groups, 1), 0.0), Full((groups, 1), limits.threshold)]
    op = Repeated(_one_box(low, high, area, scored, limits), len(starts))
    last = [*((groups, count), (groups, 1), (groups, 1)), (count, groups, 1)]
    *_, kept = body.all_open(op, [_length(body, scores), *starts, low, high, area, scored], last)
    return body(hub.Squeeze(axes=(2,)), body(hub.Transpose(perm=(1, 0, 2)), kept))


def _one_box(low: Value, high: Value, area: Value, scored: Value, limits: Limits) -> Graph:
    """Return what is done for one box of each group: (step, states, what it reads) -> (states, who stays).

    The states are the largest overlap of each box with any that stays, how many stay, and the threshold.
    """
    groups, count = scored.dims
    step = Value("step", "int64", ())
    states = [
        Value("overlaps", "float32", (groups, count)),
        Value("number", "float32", (groups, 1)),
        Value("threshold", "float32", (groups, 1)),
    ]
    read = [
        Value(name, value.dtype, value.dims)
        for name, value in (("low", low), ("high", high), ("area", area), ("scored", scored))
    ]
    overlaps, number, threshold = states
    builder = Builder("each", Origin())
    body = Body(builder)
    at = body.reshape(step, 1)

    def own(value: Value) -> Value:
        return body(hub.Gather(axis=1), value, at)

    def true(value: Value) -> Value:
        return body(hub.Cast(to=_FLOAT), value)

    sides = body(hub.Sub(), body(hub.Min(), read[1], own(read[1])), body(hub.Max(), read[0], own(read[0])))
    common = _area(body, sides)
    whole = body(hub.Sub(), body(hub.Add(), read[2], own(read[2])), common)
    overlap = body(hub.Div(), common, body(hub.Max(), whole, Full((), _LEAST)))
    free = true(body(hub.Not(), body(hub.Greater(), own(overlaps), threshold)))
    room = true(body(hub.Less(), number, Full((), float(limits.most))))
    kept = body(hub.Mul(), body(hub.Mul(), free, room), own(read[3]))
    after = [
        body(hub.Max(), overlaps, body(hub.Mul(), overlap, kept)),
        body(hub.Add(), number, kept),
        _falling(body, threshold, kept, limits.eta),
    ]
    return Graph("each", [step, *states, *read], [*after, kept], builder.nodes)


def _falling(body: Body, threshold: Value, kept: Value, eta: float) -> Value:
    """Return the threshold after a box, of groups where it stays a smaller one."""
    if eta == 1:
        return body(hub.Identity(), threshold)
    high = body(hub.Greater(), threshold, Full((), _ADAPTS))
    falls = body(hub.And(), high, body(hub.Cast(to=_BOOL), kept))
    return body(hub.Where(), falls, body(hub.Mul(), threshold, Full((), eta)), threshold)


def _length(body: Body, scores: Value) -> Operand:
    """Return how many boxes a group has, an int64 scalar."""
    count = scores.dims[1]
    return Full((), count, "int64") if isinstance(count, int) else body.count(body.part(scores, 0, 1, 0))


def _area(body: Body, sides: Value) -> Value:
    """Return the areas of boxes with such sides (..., 2), 0 where one is negative."""
    return body(hub.ReduceProd(axes=(2,), keepdims=0), body(hub.Relu(), sides))
