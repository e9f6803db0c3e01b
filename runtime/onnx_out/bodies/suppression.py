"""Non-maximum suppression as a mask over boxes, in which later ops count."""

from __future__ import annotations

from typing import Final

import numpy as np

from caffeforge.generated import hub
from caffeforge.runtime.array import Full
from caffeforge.runtime.graph import Value
from caffeforge.runtime.onnx_node import element_type
from caffeforge.runtime.onnx_out.bodies.body import Body

LOWEST: Final = float(np.finfo(np.float32).min)  # a score that no box has
FLOAT: Final = element_type("float32")


def suppressed(
    body: Body, boxes: Value, scores: Value, threshold: float, *, above: float, most: int
) -> Value:
    """Return float32 (groups, count): 1 for each box that stays, 0 for others.

    Args:
        body: applies ops.
        boxes: (groups, count, 4): left, top, right, bottom, the best first in each group.
        scores: (groups, count), falling in each group.
        threshold: a box goes that overlaps a better one, which stays, by more than this part of both.
        above: boxes of lower scores, or of this one, go.
        most: so many boxes of a group stay.
    """
    groups, count = scores.shape
    op = hub.NonMaxSuppression(
        max_output_boxes_per_class=most, iou_threshold=min(threshold, 1.0), score_threshold=above
    )
    kept = body.own_size("kept")
    found = body.open(op, boxes, body.reshape(scores, groups, 1, count), dims=(kept, 3))
    group, rank = (body(hub.Gather(axis=1), found, Full((), place, "int64")) for place in (0, 2))
    places = body(hub.Add(), body(hub.Mul(), group, Full((), count, "int64")), rank)
    return marked(body, places, groups, count)


def marked(body: Body, places: Value, groups: int, count: int) -> Value:
    """Return float32 (groups, count) of 0, with 1 at `places`, which count through all of it."""
    ones = body(hub.Cast(to=FLOAT), body(hub.Equal(), places, places))
    mask = body(hub.ScatterElements(axis=0), Full((groups * count,), 0.0), places, ones)
    return body.reshape(mask, groups, count)
