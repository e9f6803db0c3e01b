"""The bodies of ``caffe.MaskProposal`` and ``caffe.MaskDetection``: Mask R-CNN's boxes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caffeforge.generated import hub
from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import Full
from caffeforge.runtime.builder import Builder
from caffeforge.runtime.graph import Value
from caffeforge.runtime.onnx_node import element_type
from caffeforge.runtime.onnx_out.bodies.body import Body
from caffeforge.runtime.onnx_out.bodies.suppression import LOWEST, Limits, Suppression, by_op
from caffeforge.runtime.onnx_out.bodies.survivors import padded
from caffeforge.runtime.refusal import Refused

_FLOAT = element_type("float32")


def mask_proposal(
    builder: Builder,
    op: caffe_ops.MaskProposal,
    scores: Value,
    deltas: Value,
    anchors: Value,
    result: Value,
    *,
    suppress: Suppression = by_op,
) -> None:
    """Build float32 (images, post_nms_top_n, 4), as ``references.mask_rcnn`` does, in its order.

    Raises:
        Refused: the number of boxes or images is not known, or no box is kept.
    """
    if op.pre_nms_top_n < 1:
        raise Refused("it keeps no box at all")
    body = Body(builder)
    images, count, _ = scores.shape[:]
    taken = min(op.pre_nms_top_n, count)
    own = body.reshape(body.part(scores, 1, 2), images, count)
    best, places = body.several(hub.TopK(K=taken, axis=1), 2, own)  # of equal ones the first
    at = body(hub.Add(), places, body.array(np.arange(images)[:, None] * count))
    told, moves = (
        body(hub.Gather(axis=0), body.reshape(each, images * count, 4), at) for each in (anchors, deltas)
    )
    boxes = body(hub.Clip(min=0.0, max=1.0), _moved(op.deviations, body, told, moves))
    limits = _limits(op.nms_threshold, LOWEST, op.post_nms_top_n)
    mask = suppress(body, _of_area(body, boxes), best, limits)
    found = [
        padded(
            body,
            body.reshape(body.part(boxes, image, image + 1, 0), taken, 4),
            body.part(mask, image, image + 1, 0),
            op.post_nms_top_n,
        )
        for image in range(images)
    ]
    body.give(result, hub.Concat(axis=0), *found)


def mask_detection(
    builder: Builder,
    op: caffe_ops.MaskDetection,
    rois: Value,
    scores: Value,
    deltas: Value,
    info: Value,
    result: Value,
    *,
    suppress: Suppression = by_op,
) -> None:
    """Build float32 (images, limit, 6), as ``references.mask_rcnn`` does, in its order.

    Raises:
        Refused: the number of boxes or images is not known.
    """
    body = Body(builder)
    images, _, classes = scores.shape[:]
    sides = body(hub.Sub(), _tiled(body, body.part(body.part(info, 0, 1, 0), 4, 6)), Full((), 1.0))
    windows = body(hub.Sub(), body.part(info, 7, 11), body.array(np.array([[0, 0, 1, 1]], np.float32)))
    windows = body(hub.Div(), windows, sides)  # (images, 4)
    found = []
    for image in range(images):
        own = [body.part(each, image, image + 1, 0) for each in (rois, scores, deltas, windows)]
        boxes, labels, sure = _of_image(op, body, own)
        found.append(_best(op, body, boxes, labels, sure, classes, suppress))
    body.give(result, hub.Concat(axis=0), *found)


def _of_image(op: caffe_ops.MaskDetection, body: Body, own: Sequence[Value]) -> tuple[Value, Value, Value]:
    """Return the boxes (count, 4) of an image, their classes, int64, and their scores, LOWEST if too low."""
    rois, scores, deltas, window = own
    _, count, classes = scores.shape[:]
    scores = body.reshape(scores, count, classes)
    labels = body(hub.ArgMax(axis=1, keepdims=0), scores)
    sure = body(hub.ReduceMax(axes=(1,), keepdims=0), scores)
    at = body(hub.Add(), labels, body.array(np.arange(count) * classes))
    moves = body(hub.Gather(axis=0), body.reshape(deltas, count * classes, 4), at)
    boxes = _moved(op.deviations, body, body.reshape(rois, count, 4), moves)
    low, high = _tiled(body, body.part(window, 0, 2)), _tiled(body, body.part(window, 2, 4))
    boxes = body(hub.Max(), body(hub.Min(), boxes, high), low)
    good = body(hub.Greater(), sure, Full((), op.score_threshold))
    good = body(hub.And(), good, body(hub.Greater(), labels, Full((), 0, "int64")))
    return boxes, labels, body(hub.Where(), good, sure, Full((), LOWEST))


def _best(
    op: caffe_ops.MaskDetection,
    body: Body,
    boxes: Value,
    labels: Value,
    sure: Value,
    classes: int,
    suppress: Suppression,
) -> Value:
    """Return the rows (1, limit, 6) of an image; classes stand in the order in which they appear first."""
    count = boxes.shape[0]
    kinds = body.array(np.arange(classes)[:, None])
    of_class = body(hub.Equal(), body(hub.Unsqueeze(axes=(0,)), labels), kinds)
    scores = body(hub.Where(), of_class, body(hub.Unsqueeze(axes=(0,)), sure), Full((), LOWEST))
    there = body(hub.Cast(to=_FLOAT), body(hub.Greater(), scores, Full((), LOWEST)))
    first = body(hub.Mul(), there, body.array(count - np.arange(count, dtype=np.float32)))
    _, order = body.several(hub.TopK(K=classes, axis=0), 2, body(hub.ReduceMax(axes=(1,), keepdims=0), first))
    scores = body(hub.Gather(axis=0), scores, order)
    best, places = body.several(hub.TopK(K=count, axis=1), 2, scores)
    sorted_ = body(hub.Gather(axis=0), boxes, places)  # (classes, count, 4)
    mask = suppress(body, _of_area(body, sorted_), best, _limits(op.nms_threshold, LOWEST, op.limit))
    kept = body(hub.Greater(), mask, Full((), 0.0))
    flat = body.reshape(body(hub.Where(), kept, best, Full((), LOWEST)), classes * count)
    taken = min(op.limit, classes * count)
    score, rank = body.several(hub.TopK(K=taken, axis=0), 2, flat)
    place = body(hub.Gather(axis=0), body.reshape(places, classes * count), rank)
    label = body(hub.Cast(to=_FLOAT), body(hub.Gather(axis=0), labels, place))
    columns = [body(hub.Unsqueeze(axes=(1,)), each) for each in (label, score)]
    table = body(hub.Concat(axis=1), body(hub.Gather(axis=0), boxes, place), *columns)
    found = body(hub.Cast(to=_FLOAT), body(hub.Greater(), score, Full((), LOWEST)))
    return padded(body, table, found, op.limit)


def _moved(deviations: Sequence[float], body: Body, boxes: Value, deltas: Value) -> Value:
    """Return boxes (..., 4) moved by parts of their size, and scaled by the exponent of the last two."""
    deltas = body(hub.Mul(), deltas, body.array(np.array(deviations, np.float32)))
    low = body.part(boxes, 0, 2)
    size = body(hub.Sub(), body.part(boxes, 2, 4), low)
    middle = body(hub.Mul(), body(hub.Add(), Full((), 0.5), body.part(deltas, 0, 2)), size)
    middle = body(hub.Add(), low, middle)
    half = body(hub.Mul(), size, body(hub.Exp(), body.part(deltas, 2, 4)))
    half = body(hub.Div(), half, Full((), 2.0))
    return body(
        hub.Concat(axis=-1 + boxes.rank), body(hub.Sub(), middle, half), body(hub.Add(), middle, half)
    )


def _of_area(body: Body, boxes: Value) -> Value:
    """Return boxes by their edges, none with an end before its begin: such ones are empty."""
    low, high = body.part(boxes, 0, 2), body.part(boxes, 2, 4)
    return body(hub.Concat(axis=2), low, body(hub.Max(), low, high))


def _limits(threshold: float, above: float, most: int) -> Limits:
    """Return limits of which a box goes that overlaps by the threshold itself."""
    return Limits(float(np.nextafter(np.float32(threshold), np.float32(-1))), above, most)


def _tiled(body: Body, pair: Value) -> Value:
    """Return two numbers (1, 2), twice."""
    return body(hub.Concat(axis=1), pair, pair)
