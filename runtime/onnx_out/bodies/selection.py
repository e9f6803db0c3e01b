"""The body of ``caffe.SelectedBoxes``: NonMaxSuppression with a place for all that it may find."""

from __future__ import annotations

import numpy as np

from caffeforge.generated import hub
from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import Full
from caffeforge.runtime.builder import Builder
from caffeforge.runtime.graph import Value
from caffeforge.runtime.onnx_node import element_type
from caffeforge.runtime.onnx_out.bodies.body import Body
from caffeforge.runtime.onnx_out.bodies.suppression import Limits, Suppression, by_op
from caffeforge.runtime.onnx_out.bodies.survivors import padded
from caffeforge.runtime.refusal import Refused

_FLOAT = element_type("float32")


def selected_boxes(
    builder: Builder,
    op: caffe_ops.SelectedBoxes,
    boxes: Value,
    scores: Value,
    result: Value,
    *,
    suppress: Suppression = by_op,
) -> None:
    """Build float32 (images * classes * limit, 3), as ``references.selection`` does.

    Raises:
        Refused: the number of boxes is not known, or fewer than `limit` would be an error.
    """
    if op.full:
        raise Refused("a run of ONNX cannot fail where fewer boxes stay than are due")
    body = Body(builder)
    images, classes, count = scores.shape[:]
    groups = images * classes
    best, places = body.several(hub.TopK(K=count, axis=1), 2, body.reshape(scores, groups, count))
    starts = np.repeat(np.arange(images) * count, classes)[:, None]
    at = body(hub.Add(), places, body.array(starts))
    corners = _corners(op, body, body.reshape(boxes, images * count, 4))
    own = body(hub.Gather(axis=0), corners, at)
    mask = suppress(body, own, best, Limits(op.nms_threshold, op.score_threshold, op.limit))
    pairs = np.array([(image, kind) for image in range(images) for kind in range(classes)], np.float32)
    heads = body.array(np.repeat(pairs, count, 0))
    box = body.reshape(body(hub.Cast(to=_FLOAT), places), groups * count, 1)
    table = body(hub.Concat(axis=1), heads, box)
    found = padded(body, table, mask, groups * op.limit)
    body.give(result, hub.Reshape(shape=result.shape[:]), found)


def _corners(op: caffe_ops.SelectedBoxes, body: Body, boxes: Value) -> Value:
    """Return boxes (count, 4) as two corners, the lesser coordinates first."""
    first, second = body.part(boxes, 0, 2), body.part(boxes, 2, 4)
    if op.centers:
        half = body(hub.Div(), second, Full((), 2.0))
        first, second = body(hub.Sub(), first, half), body(hub.Add(), first, half)
    return body(hub.Concat(axis=1), body(hub.Min(), first, second), body(hub.Max(), first, second))
