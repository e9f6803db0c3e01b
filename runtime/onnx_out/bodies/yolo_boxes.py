"""The body of ``caffe.YoloDetectionOutput``: the boxes of MobileNet-YOLO's last layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caffeforge.generated import hub
from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import Full, NDArray
from caffeforge.runtime.builder import Builder
from caffeforge.runtime.graph import Value
from caffeforge.runtime.onnx_node import element_type
from caffeforge.runtime.onnx_out.bodies.body import Body
from caffeforge.runtime.onnx_out.bodies.suppression import LOWEST, Limits, Suppression, by_op
from caffeforge.runtime.refusal import Refused

_FLOAT = element_type("float32")
_NOTHING = np.array([[0, -1, -1, -1, -1, -1, -1]], np.float32)  # the row where nothing is found


def yolo_detection_output(
    builder: Builder,
    op: caffe_ops.YoloDetectionOutput,
    maps: Sequence[Value],
    result: Value,
    *,
    suppress: Suppression = by_op,
) -> None:
    """Build float32 (1, 1, found, 7), as ``references.yolo_boxes`` does, in its order.

    Raises:
        Refused: the size of a map is not known, or does not fit the anchors.
    """
    body = Body(builder)
    count = len(op.masks) // len(maps)
    pairs = np.reshape(op.anchors, (-1, 2))
    masks = np.reshape(op.masks, (len(maps), count))
    found = [
        _of_map(op, body, data, pairs[mask], stride)
        for data, mask, stride in zip(maps, masks, op.strides, strict=False)
    ]
    boxes, scores = (body(hub.Concat(axis=0), *each) for each in zip(*found, strict=True))
    if op.exclusive:
        labels = body(hub.ArgMax(axis=1, keepdims=0), scores)
        scores = body(hub.ReduceMax(axes=(1,), keepdims=0), scores)
    flat = body.reshape(scores, -1)
    best, places = body.several(hub.TopK(K=flat.shape[0], axis=0), 2, flat)  # of equal ones the first
    good = (
        body.at_least(best, op.score_threshold)
        if op.exclusive
        else body(hub.Greater(), best, Full((), op.score_threshold))
    )
    rank = body.chosen(good)
    own, at = (body(hub.Gather(axis=0), each, rank) for each in (best, places))
    if op.exclusive:
        label = body(hub.Gather(axis=0), labels, at)
    else:
        each = at
        at = body(hub.Div(), each, Full((), op.num_classes, "int64"))
        label = body(hub.Sub(), each, body(hub.Mul(), at, Full((), op.num_classes, "int64")))
    taken = body(hub.Gather(axis=0), boxes, at)
    # What overlaps by the threshold itself goes too: by more than the number before it.
    threshold = float(np.nextafter(np.float32(op.nms_threshold), np.float32(-1)))
    mask = suppress(
        body,
        body(hub.Unsqueeze(axes=(0,)), taken),
        body(hub.Unsqueeze(axes=(0,)), own),
        Limits(threshold, LOWEST, flat.shape[0]),
    )
    table = body(hub.Concat(axis=1), _heads(body, label), body(hub.Unsqueeze(axes=(1,)), own), taken)
    _give_rows(body, table, body.reshape(mask, -1), result)


def _of_map(
    op: caffe_ops.YoloDetectionOutput, body: Body, data: Value, anchors: NDArray, stride: float
) -> tuple[Value, Value]:
    """Return the boxes (cells * anchors, 4) of a map and the scores (cells * anchors, classes)."""
    images, channels, rows, columns = data.shape[:]
    if images != 1 or channels != len(anchors) * (5 + op.num_classes) or rows != columns:
        raise Refused(
            f"{len(anchors)} boxes of {op.num_classes} classes need maps [1, "
            f"{len(anchors) * (5 + op.num_classes)}, rows, as many columns], one is {[*data.shape[:]]}"
        )
    middle, wide, objects, values = cell_boxes(body, data, anchors, op.num_classes, stride)
    half = body(hub.Div(), wide, Full((), 2.0))
    boxes = body(hub.Concat(axis=1), body(hub.Sub(), middle, half), body(hub.Add(), middle, half))
    sure = body(hub.Softmax(axis=1), values) if op.exclusive else body.sigmoid(values)
    return boxes, body(hub.Mul(), objects, sure)


def cell_boxes(
    body: Body, data: Value, anchors: NDArray, classes: int, stride: float
) -> tuple[Value, Value, Value, Value]:
    """Return what ``references.yolo_boxes.cell_boxes`` does, by cell, then box, in rows (boxes, ...)."""
    rows, columns = data.shape[2:]
    count = rows * columns * len(anchors)
    cells = body.reshape(data, len(anchors), 5 + classes, rows * columns)
    cells = body.reshape(body(hub.Transpose(perm=(2, 0, 1)), cells), count, 5 + classes)
    y, x = np.mgrid[:rows, :columns].astype(np.float32)
    corners = np.repeat(np.stack([x, y], -1).reshape(-1, 2), len(anchors), 0)
    sides = np.array([[columns, rows]], np.float32)
    at = body(hub.Add(), body.array(corners), body.sigmoid(body.part(cells, 0, 2)))
    middle = body(hub.Div(), at, body.array(sides))
    units = body.array(sides * np.float32(stride))
    shapes = body.array(np.tile(anchors.astype(np.float32), (rows * columns, 1)))
    wide = body(hub.Div(), body(hub.Mul(), body(hub.Exp(), body.part(cells, 2, 4)), shapes), units)
    return middle, wide, body.sigmoid(body.part(cells, 4, 5)), body.part(cells, 5, 5 + classes)


def _heads(body: Body, label: Value) -> Value:
    """Return image 0 and class + 1 of each row, (rows, 2)."""
    kinds = body(hub.Cast(to=_FLOAT), body(hub.Unsqueeze(axes=(1,)), label))
    return body(hub.Concat(axis=1), body.zeros(kinds), body(hub.Add(), kinds, Full((), 1.0)))


def _give_rows(body: Body, table: Value, mask: Value, result: Value) -> None:
    """Give the rows of which a mask says so, or one that says that there are none."""
    any_ = body(hub.ReduceMax(axes=(0,), keepdims=1), body(hub.Concat(axis=0), Full((1,), 0.0), mask))
    mask = body(hub.Concat(axis=0), mask, body(hub.Sub(), Full((), 1.0), any_))
    table = body(hub.Concat(axis=0), table, body.array(_NOTHING))
    rows = body(hub.Gather(axis=0), table, body.chosen(mask, body.size(result.dims[2], "found")))
    body.give(result, hub.Reshape(shape=(1, 1, -1, 7)), rows)
