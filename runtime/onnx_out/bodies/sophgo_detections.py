"""Bodies of Sophgo's detectors: ``caffe.RegionsAbove``, ``caffe.FrcnDetection`` and ``caffe.YoloDetection``.

Boxes above a threshold are picked first, so that only these meet; results are padded with zeros.
"""

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
from caffeforge.runtime.onnx_out.bodies.survivors import (
    Boxes,
    Overlap,
    by_middles,
    by_pixels,
    padded,
    survivors,
)
from caffeforge.runtime.references.region_detections import anchor_shapes
from caffeforge.runtime.references.yolo_detections import BOXES, STEEPEST
from caffeforge.runtime.refusal import Refused

_FLOAT = element_type("float32")
_DOUBLE = element_type("float64")


def regions_above(
    builder: Builder, op: caffe_ops.RegionsAbove, scores: Value, deltas: Value, rois: Value
) -> None:
    """Build float32 (images, 1, keep_top_k, 5), as ``references.region_detections`` does, in its order.

    Raises:
        Refused: the size of the map is not known, or does not fit the nine anchors.
    """
    body = Body(builder)
    shapes = anchor_shapes(op.base_size)
    images, _, rows, columns = scores.shape[:]
    for value, each in ((scores, 2), (deltas, 4)):
        due = (images, each * len(shapes), rows, columns)
        if value.shape[:] != due:
            raise Refused(f"{len(shapes)} anchors need {[*due]}, {value!r} is given")
    cells = rows * columns
    count = len(shapes) * cells
    middle = np.float32((op.base_size - 1) / 2)
    y, x = np.mgrid[:rows, :columns].astype(np.float32) * np.float32(op.stride) + middle
    corners = np.tile(np.stack([x, y], -1).reshape(-1, 2), (len(shapes), 1))
    anchors = np.concatenate([corners, np.repeat(shapes, cells, 0)], 1)
    own = body.reshape(body.part(scores, len(shapes), 2 * len(shapes), 1), images, count)
    moves = body.reshape(deltas, images, len(shapes), 4, cells)
    moves = body.reshape(body(hub.Transpose(perm=(0, 1, 3, 2)), moves), images, count, 4)
    found = []
    for image in range(images):
        told = body.reshape(body.part(own, image, image + 1, 0), count)
        at = body.chosen(body.at_least(told, op.score_threshold))
        places = body(hub.Gather(axis=0), body.array(anchors), at)
        moved = body(hub.Gather(axis=0), body.reshape(body.part(moves, image, image + 1, 0), count, 4), at)
        boxes = _moved(body, places, moved, op.image_size)
        kept = _survivors(body, boxes, body(hub.Gather(axis=0), told, at), None, op.nms_threshold)
        index = body(hub.Add(), body.zeros(body.part(boxes, 0, 1)), Full((), float(image)))
        found.append(padded(body, body(hub.Concat(axis=1), index, boxes), kept, op.keep_top_k))
    _give(body, found, rois)


def _moved(body: Body, places: Value, moves: Value, image: Sequence[int]) -> Value:
    """Return boxes (count, 4) from places (x, y, width, height), within the image; float64 in between."""
    size = body.part(places, 2, 4)
    middle = body(hub.Mul(), size, body.part(moves, 0, 2))
    middle = body(hub.Add(), body.part(places, 0, 2), middle)
    wide = body(hub.Mul(), size, body(hub.Exp(), body.part(moves, 2, 4)))
    half = body(hub.Div(), body(hub.Cast(to=_DOUBLE), wide), Full((), 2.0, "float64"))
    middle = body(hub.Cast(to=_DOUBLE), middle)
    last = body.array(np.maximum(np.array([[image[1], image[0]]], np.float64) - 1, 0))
    ends = [body(op, middle, half) for op in (hub.Sub(), hub.Add())]
    inside = [body(hub.Min(), body(hub.Max(), end, Full((), 0.0, "float64")), last) for end in ends]
    return body(hub.Cast(to=_FLOAT), body(hub.Concat(axis=1), *inside))


def frcn_detection(
    builder: Builder, op: caffe_ops.FrcnDetection, deltas: Value, scores: Value, rois: Value, boxes: Value
) -> None:
    """Build float32 (images, 1, keep_top_k, 6), as ``references.region_detections`` does, in its order.

    Raises:
        Refused: the number of regions is not known, or does not fit the scores.
    """
    body = Body(builder)
    images, _, count, _ = rois.shape[:]
    pairs = count * (op.num_classes - 1)
    for value, each in ((scores, 1), (deltas, 4)):
        due = images * count * op.num_classes * each
        if np.prod(value.shape[:]) != due:
            raise Refused(
                f"{value.name} has {np.prod(value.shape[:])} numbers, {count} regions of {images} images and "
                f"{op.num_classes} classes need {due}"
            )
    own = body.part(body.reshape(scores, images, count, op.num_classes), 1, op.num_classes)
    moves = body.part(body.reshape(deltas, images, count, op.num_classes, 4), 1, op.num_classes, 2)
    labels = np.tile(np.arange(1, op.num_classes, dtype=np.float32), count)[:, None]
    found = []
    for image in range(images):
        told = body.reshape(body.part(own, image, image + 1, 0), pairs)
        at = body.chosen(body(hub.Greater(), told, Full((), op.score_threshold)))
        regions = body.reshape(body.part(body.part(rois, image, image + 1, 0), 1, 5), count, 4)
        region = body(hub.Div(), at, Full((), op.num_classes - 1, "int64"))
        moved = body(hub.Gather(axis=0), body.reshape(body.part(moves, image, image + 1, 0), pairs, 4), at)
        table = _moved_regions(body, body(hub.Gather(axis=0), regions, region), moved)
        score = body(hub.Gather(axis=0), told, at)
        label = body(hub.Gather(axis=0), body.array(labels), at)
        kept = _survivors(body, table, score, label, op.nms_threshold)
        table = body(hub.Concat(axis=1), table, label, body(hub.Unsqueeze(axes=(1,)), score))
        found.append(padded(body, table, kept, op.keep_top_k))
    _give(body, found, boxes)


def _moved_regions(body: Body, regions: Value, moves: Value) -> Value:
    """Return the boxes (count, 4) of regions (count, 4) by as many deltas."""
    low = body.part(regions, 0, 2)
    size = body(hub.Add(), body(hub.Sub(), body.part(regions, 2, 4), low), Full((), 1.0))
    middle = body(hub.Mul(), body.part(moves, 0, 2), size)
    middle = body(hub.Add(), middle, body(hub.Add(), low, body(hub.Div(), size, Full((), 2.0))))
    half = body(hub.Mul(), body(hub.Exp(), body.part(moves, 2, 4)), size)
    half = body(hub.Div(), half, Full((), 2.0))
    return body(hub.Concat(axis=1), body(hub.Sub(), middle, half), body(hub.Add(), middle, half))


def yolo_detection(
    builder: Builder, op: caffe_ops.YoloDetection, features: Sequence[Value], boxes: Value
) -> None:
    """Build float32 (images, 1, keep_top_k, 6), as ``references.yolo_detections`` does, in its order.

    Raises:
        Refused: the size of a map is not known, or has not three boxes in each cell.
    """
    body = Body(builder)
    depth = 5 + op.num_classes
    if len(op.anchors) != 2 * BOXES * len(features):
        raise Refused(f"{len(features)} maps need six numbers of anchors each, there are {len(op.anchors)}")
    listed, constants = [], []
    for feature, anchors in zip(features, np.reshape(op.anchors, (-1, BOXES, 2)), strict=True):
        images, channels, rows, columns = feature.shape[:]
        if channels != BOXES * depth:
            raise Refused(f"three boxes of {op.num_classes} classes need {BOXES * depth} channels")
        cells = body.reshape(feature, images, BOXES, depth, rows * columns)
        cells = body(hub.Transpose(perm=(0, 3, 1, 2)), cells)
        listed.append(body.reshape(cells, images, rows * columns * BOXES, depth))
        constants.append(_cells(rows, columns, anchors))
    told, given = body(hub.Concat(axis=1), *listed), np.concatenate(constants)
    found = []
    for image in range(features[0].shape[0]):
        cells = body.reshape(body.part(told, image, image + 1, 0), len(given), depth)
        kept, rows_of = _of_image(op, body, cells, given)
        found.append(padded(body, rows_of, kept, op.keep_top_k))
    _give(body, found, boxes)


def _cells(rows: int, columns: int, anchors: NDArray) -> NDArray:
    """Return float32 (cells * boxes, 6): x and y of the cell, columns and rows, the sides of the anchor."""
    y, x = np.mgrid[:rows, :columns]
    places = np.stack([x, y, np.full_like(x, columns), np.full_like(y, rows)], -1).reshape(-1, 4)
    found = [np.repeat(places, len(anchors), 0), np.tile(anchors, (rows * columns, 1))]
    return np.concatenate(found, 1).astype(np.float32)


def _of_image(op: caffe_ops.YoloDetection, body: Body, cells: Value, given: NDArray) -> tuple[Value, Value]:
    """Return which boxes of an image stay, (1, found), and the rows (found, 6) of all above the threshold."""
    count, depth = cells.shape[:]
    sure = body.sigmoid(body.reshape(body.part(cells, 4, 5), count))
    at = body.chosen(body.at_least(sure, op.score_threshold))
    likely = _likely(body, body.part(body(hub.Gather(axis=0), cells, at), 5, depth))
    score = body(
        hub.Mul(), body(hub.Gather(axis=0), sure, at), body(hub.ReduceMax(axes=(1,), keepdims=0), likely)
    )
    enough = body.at_least(score, op.score_threshold)
    enough = body(hub.And(), enough, body(hub.Greater(), score, Full((), 0.0)))
    good = body.chosen(enough)
    score = body(hub.Gather(axis=0), score, good)
    label = body(hub.Gather(axis=0), body(hub.ArgMax(axis=1, keepdims=1), likely), good)
    label = body(hub.Cast(to=_FLOAT), label)
    at = body(hub.Gather(axis=0), at, good)
    told, place = (body(hub.Gather(axis=0), each, at) for each in (cells, body.array(given)))
    middle = body(hub.Add(), body.sigmoid(body.part(told, 0, 2)), body.part(place, 0, 2))
    middle = body(hub.Div(), middle, body.part(place, 2, 4))
    size = body(hub.Mul(), body(hub.Exp(), body.part(told, 2, 4)), body.part(place, 4, 6))
    size = body(hub.Div(), size, body.array(np.array([op.image_size[::-1]], np.float32)))
    half = body(hub.Div(), size, Full((), 2.0))
    low, high = body(hub.Sub(), middle, half), body(hub.Add(), middle, half)
    area = body(hub.ReduceProd(axes=(1,), keepdims=0), size)
    kept = _meet(body, [low, high, area, score, label], by_middles(op.nms_threshold))
    table = body(hub.Concat(axis=1), middle, size, label, body(hub.Unsqueeze(axes=(1,)), score))
    return kept, table


def _likely(body: Body, scores: Value) -> Value:
    """Return the softmax of scores (count, classes), in which those far below 0 are drawn together."""
    least = body(hub.ReduceMin(axes=(1,), keepdims=1), scores)
    below = body(hub.Sub(), scores, body(hub.ReduceMax(axes=(1,), keepdims=1), scores))
    steepest = Full((), float(STEEPEST))
    drawn = body(hub.Mul(), body(hub.Div(), below, least), steepest)
    exponents = body(hub.Exp(), body(hub.Where(), body(hub.Less(), least, steepest), drawn, below))
    return body(hub.Div(), exponents, body(hub.ReduceSum(axes=(1,), keepdims=1), exponents))


def _survivors(body: Body, boxes: Value, score: Value, label: Value | None, threshold: float) -> Value:
    """Return which boxes (found, 4) in pixels stay, (1, found)."""
    low, high = body.part(boxes, 0, 2), body.part(boxes, 2, 4)
    sides = body(hub.Add(), body(hub.Sub(), high, low), Full((), 1.0))
    area = body(hub.ReduceProd(axes=(1,), keepdims=0), sides)
    parts = [low, high, area, score] if label is None else [low, high, area, score, label]
    return _meet(body, parts, by_pixels(threshold))


def _meet(body: Body, parts: Sequence[Value], overlap: Overlap) -> Value:
    """Return which boxes of one image stay, (1, found); classes are (found, 1)."""
    low, high, area, score = (body(hub.Unsqueeze(axes=(0,)), part) for part in parts[:4])
    label = body(hub.Transpose(perm=(1, 0)), parts[4]) if len(parts) > 4 else None
    return survivors(body, Boxes(low, high, area, score, label), overlap)


def _give(body: Body, images: Sequence[Value], result: Value) -> None:
    """Give the rows (1, count, columns) of each image as (images, 1, count, columns)."""
    body.give(result, hub.Reshape(shape=result.shape[:]), body(hub.Concat(axis=0), *images))
