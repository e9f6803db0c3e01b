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
    middle, wide, objects, values = cell_boxes(data, anchors, op.num_classes, stride)
    boxes = np.concatenate([middle - wide / 2, middle + wide / 2], -1)
    scores = objects * (exclusive(values) if op.exclusive else sigmoid(values))
    if op.exclusive:
        best = scores == scores.max(-1, keepdims=True)
        kept = best & (np.cumsum(best, -1) == 1) & (scores >= np.float32(op.score_threshold))
    else:
        kept = scores > np.float32(op.score_threshold)
    places = np.nonzero(kept)
    found = np.zeros((len(places[0]), 7), np.float32)
    found[:, 1], found[:, 2], found[:, 3:] = places[3] + 1, scores[kept], boxes[places[:3]]
    return found


def cell_boxes(
    data: NDArray, anchors: NDArray, classes: int, stride: float
) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Return what a map of one image says, by cell, then box: float32 (rows, columns, boxes, ...).

    Args:
        data: (1, boxes * (5 + classes), rows, columns): x, y, width, height, object and classes of each box.
        anchors: (boxes, 2), width and height in units.
        classes: how many there are.
        stride: the units of a cell.

    Returns:
        The middle (x, y) and the size (width, height) in parts of the map, the object's score of one element,
        the values of the classes.
    """
    rows, columns = data.shape[2:]
    cells = data.reshape(len(anchors), 5 + classes, rows, columns).transpose(2, 3, 0, 1).astype(np.float32)
    y, x = np.mgrid[:rows, :columns].astype(np.float32)[..., None]
    middle = np.stack([(x + sigmoid(cells[..., 0])) / columns, (y + sigmoid(cells[..., 1])) / rows], -1)
    units = np.array([columns * stride, rows * stride], np.float32)
    wide = np.exp(cells[..., 2:4]) * anchors.astype(np.float32) / units
    return middle, wide, sigmoid(cells[..., 4:5]), cells[..., 5:]


def exclusive(values: NDArray) -> NDArray:
    """Return the scores of classes, the last axis, of which one is there: softmax."""
    powers = np.exp(values - values.max(-1, keepdims=True))
    scores: NDArray = powers / powers.sum(-1, keepdims=True)
    return scores


def sigmoid(values: NDArray) -> NDArray:
    """Return float32 sigmoids."""
    with np.errstate(over="ignore"):  # of exp: the result is 0 then
        result: NDArray = np.float32(1) / (np.float32(1) + np.exp(-values))
    return result
