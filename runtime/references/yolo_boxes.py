"""``caffe.YoloDetectionOutput``: the boxes that YOLO's maps tell of, as MobileNet-YOLO's Caffe finds them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.reference import reference
from caffeforge.runtime.references.suppression import suppressed


@reference(caffe_ops.YoloDetectionOutput)
def yolo_detection_output(
    op: caffe_ops.YoloDetectionOutput, operands: Sequence[NDArray | None]
) -> Sequence[NDArray]:
    """Return float32 (1, 1, found, 7): 0, class + 1, score, left, top, right, bottom; the best first.

    Raises:
        GraphError: the maps do not fit the anchors and classes.
    """
    maps = [each for each in operands if each is not None]
    count = len(op.masks) // len(maps)
    found = []
    for index, each in enumerate(maps):
        masks = op.masks[index * count : (index + 1) * count]
        found.append(_of_map(op, each, np.reshape(op.anchors, (-1, 2))[list(masks)], op.strides[index]))
    rows = np.concatenate(found)
    if not len(rows):
        return [np.array([0, -1, -1, -1, -1, -1, -1], np.float32).reshape(1, 1, 1, 7)]
    rows = rows[np.argsort(-rows[:, 2], kind="stable")]
    # What overlaps by the threshold itself goes too: by more than the number before it.
    threshold = np.nextafter(np.float32(op.nms_threshold), np.float32(-1))
    return [rows[suppressed(rows[:, 3:], float(threshold))][None, None]]


def _of_map(op: caffe_ops.YoloDetectionOutput, data: NDArray, anchors: NDArray, stride: float) -> NDArray:
    """Return the rows (found, 7) of one map; `anchors` are those of a cell's boxes, (boxes, 2)."""
    size = 5 + op.num_classes
    images, channels, rows, columns = data.shape
    if images != 1 or channels != len(anchors) * size or rows != columns:
        raise GraphError(
            f"{len(anchors)} boxes of {op.num_classes} classes need maps [1, {len(anchors) * size}, rows, "
            f"columns] with as many rows as columns; one is {list(data.shape)}",
            where="caffe.YoloDetectionOutput",
        )
    # By cell, then box.
    cells = data.reshape(len(anchors), size, rows, columns).transpose(2, 3, 0, 1).astype(np.float32)
    y, x = np.mgrid[:rows, :columns].astype(np.float32)[..., None]
    middle = np.stack([x + _sigmoid(cells[..., 0]), y + _sigmoid(cells[..., 1])], -1) / columns
    half = np.exp(cells[..., 2:4]) * anchors.astype(np.float32) / np.float32(columns * stride) / 2
    boxes = np.concatenate([middle - half, middle + half], -1)
    scores = _sigmoid(cells[..., 4:5]) * _classes(cells[..., 5:], op.exclusive)
    if op.exclusive:
        best = scores == scores.max(-1, keepdims=True)
        kept = best & (np.cumsum(best, -1) == 1) & (scores >= np.float32(op.score_threshold))
    else:
        kept = scores > np.float32(op.score_threshold)
    places = np.nonzero(kept)
    found = np.zeros((len(places[0]), 7), np.float32)
    found[:, 1], found[:, 2], found[:, 3:] = places[3] + 1, scores[kept], boxes[places[:3]]
    return found


def _classes(values: NDArray, exclusive: bool) -> NDArray:
    """Return the scores of classes, the last axis."""
    if not exclusive:
        return _sigmoid(values)
    powers = np.exp(values - values.max(-1, keepdims=True))
    scores: NDArray = powers / powers.sum(-1, keepdims=True)
    return scores


def _sigmoid(values: NDArray) -> NDArray:
    with np.errstate(over="ignore"):  # of exp: the result is 0 then
        result: NDArray = np.float32(1) / (np.float32(1) + np.exp(-values))
    return result
