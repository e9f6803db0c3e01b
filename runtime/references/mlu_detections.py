"""Cambricon's Caffe on the CPU finds these: ``DetectionOut``, ``Yolov3Detection``, ``ImageDetect``.

The rows stand in the order in which that program writes them, which is not that of the scores.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.reference import reference
from caffeforge.runtime.references.suppression import suppressed
from caffeforge.runtime.references.yolo_boxes import cell_boxes, exclusive, sigmoid

_HEAD = 64  # numbers before the boxes of Yolov3Detection
_ANCHORS = 3  # of a cell, in Yolov3Detection


@reference(caffe_ops.DetectionOut)
def detection_out(op: caffe_ops.DetectionOut, operands: Sequence[NDArray | None]) -> Sequence[NDArray]:
    """Return float32 (1, 1, found, 7): 0, class, score, x, y, width, height."""
    (data,) = operands
    assert data is not None
    anchors = np.reshape(op.anchors, (-1, 2))
    middle, wide, objects, values = cell_boxes(data, anchors, op.num_classes, 1.0)
    scores = objects * exclusive(values)
    best = scores.max(-1)
    kept = best >= np.float32(op.score_threshold)
    rows = np.zeros((np.count_nonzero(kept), 7), np.float32)
    rows[:, 1], rows[:, 2] = scores[kept].argmax(-1), best[kept]
    rows[:, 3:5], rows[:, 5:] = middle[kept], wide[kept]
    low, high = middle[kept] - wide[kept] / 2, middle[kept] + wide[kept] / 2
    # Only what lies in the image counts. What overlaps by the threshold itself goes too.
    boxes = np.concatenate([np.maximum(low, 0), np.minimum(high, 1)], -1)
    threshold = np.nextafter(np.float32(op.nms_threshold), np.float32(-1))
    return [rows[suppressed(boxes, float(threshold))][None, None]]


@reference(caffe_ops.Yolov3Detection)
def yolov3_detection(op: caffe_ops.Yolov3Detection, operands: Sequence[NDArray | None]) -> Sequence[NDArray]:
    """Return float32 (1, 64 + 7 * most, 1, 1): the number of boxes, then their rows.

    Raises:
        GraphError: there are more boxes than it has room for.
    """
    maps = [each for each in operands if each is not None]
    anchors = np.reshape(op.anchors, (len(maps), _ANCHORS, 2))
    boxes, scores = zip(
        *(_in_pixels(op, data, own) for data, own in zip(maps, anchors, strict=True)), strict=True
    )
    rows = _by_class(op, np.concatenate(boxes), np.concatenate(scores))
    if len(rows) > op.most:
        raise GraphError(
            f"there are {len(rows)} boxes, and room for {op.most}: the program would write beyond its result",
            where="caffe.Yolov3Detection",
            hint="give num_box a larger value",
        )
    result = np.full(_HEAD + 7 * op.most, -1, np.float32)
    result[0] = len(rows)
    result[_HEAD : _HEAD + rows.size] = rows.reshape(-1)
    return [result.reshape(1, -1, 1, 1)]


def _in_pixels(op: caffe_ops.Yolov3Detection, data: NDArray, anchors: NDArray) -> tuple[NDArray, NDArray]:
    """Return the boxes (found, 4) of a map in pixels, and their scores (found, classes), 0 where too low."""
    cells = data.shape[3]
    stride = op.image_size[1] // cells
    middle, wide, objects, values = cell_boxes(data, anchors, op.num_classes, 1.0)
    middle, half = middle * (cells * stride), wide * cells / 2  # anchors are pixels already
    kept = objects[..., 0] > np.float32(op.score_threshold)
    scores = objects[kept] * sigmoid(values[kept])
    scores[scores <= np.float32(op.score_threshold)] = 0
    return np.concatenate([middle - half, middle + half], -1)[kept], scores


def _by_class(op: caffe_ops.Yolov3Detection, boxes: NDArray, scores: NDArray) -> NDArray:
    """Return the rows (found, 7) of the boxes that stay, in the order that the last class gives them."""
    order = np.arange(len(boxes))
    for label in range(op.num_classes):
        order = order[np.argsort(-scores[order, label], kind="stable")]
        live = order[scores[order, label] > 0]
        gone = np.ones(len(live), bool)
        gone[suppressed(boxes[live], op.nms_threshold, end=1.0)] = False
        scores[live[gone], label] = 0
    places, labels = np.nonzero(scores[order])
    rows = np.zeros((len(places), 7), np.float32)
    rows[:, 1], rows[:, 2] = labels, scores[order][places, labels]
    height, width = op.image_size
    rows[:, 3:] = boxes[order][places] / np.array([width, height, width, height], np.float32)
    return rows


@reference(caffe_ops.ImageDetect)
def image_detect(op: caffe_ops.ImageDetect, operands: Sequence[NDArray | None]) -> Sequence[NDArray]:
    """Return float32 (1, regions * classes, 1, 6): left, top, right, bottom, class, score; zeros behind."""
    deltas, scores, rois = operands
    assert deltas is not None and scores is not None and rois is not None
    count = len(deltas)
    boxes = _moved(op, deltas.reshape(count, op.num_classes, 4), rois.reshape(count, 5)[:, 1:] / op.scale)
    own = scores.reshape(count, op.num_classes)
    rows = [
        [*boxes[index, label], label, own[index, label]]
        for label in range(op.num_classes)
        for index in _survivors(op, boxes[:, label], own[:, label])
    ]
    result = np.zeros((count * op.num_classes, 6), np.float32)
    if rows:
        result[: len(rows)] = rows
    return [result[None, :, None]]


def _moved(op: caffe_ops.ImageDetect, deltas: NDArray, regions: NDArray) -> NDArray:
    """Return the boxes (regions, classes, 4) in pixels, within the image."""
    size = (regions[:, 2:] - regions[:, :2] + 1)[:, None]
    middle = regions[:, None, :2] + size / 2 + size * deltas[..., :2]
    half = np.exp(deltas[..., 2:]) * size / 2
    low, high = np.maximum(middle - half, 0), middle + half
    edges = np.array(op.image_size[::-1], np.float32)
    return np.concatenate([low, np.where(high < edges, high, edges - 1)], -1)


def _survivors(op: caffe_ops.ImageDetect, boxes: NDArray, scores: NDArray) -> list[int]:
    """Return the indices of one class's boxes that stay; each meets those behind it, dropped ones too."""
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    use, found = np.ones(len(boxes), bool), []
    for index in range(len(boxes)):
        if not use[index]:
            continue
        rest = slice(index + 1, None)
        # Whole pixels: the program cuts the sides of what two boxes share.
        sides = np.minimum(boxes[rest, 2:], boxes[index, 2:]) - np.maximum(boxes[rest, :2], boxes[index, :2])
        common = np.trunc(sides).clip(0).prod(-1)
        whole = areas[rest] + areas[index] - common
        with np.errstate(divide="ignore", invalid="ignore"):
            near = np.flatnonzero(~(common / whole < op.nms_threshold)) + index + 1
        better = np.flatnonzero(scores[near] > scores[index])
        if better.size:
            use[index] = False
            near = near[: better[0]]
        use[near] = False
        if use[index] and scores[index] > op.score_threshold:
            found.append(index)
    return found
