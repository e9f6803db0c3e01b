"""``caffe.RegionsAbove`` and ``caffe.FrcnDetection``: both ends of a Faster R-CNN."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.reference import reference
from caffeforge.runtime.references.survivors import fixed_rows, pixel_overlap, survivors

SCALES = (8, 16, 32)
RATIOS = (0.5, 1, 2)  # height by width


@reference(caffe_ops.RegionsAbove)
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def regions_above(op: caffe_ops.RegionsAbove, operands: Sequence[NDArray | None]) -> Sequence[NDArray]:
    """Return float32 (images, 1, keep_top_k, 5): image, left, top, right, bottom in pixels; zeros behind.

    Raises:
        GraphError: there is not one score and box for each anchor.
    """
    scores, deltas = operands
    assert scores is not None and deltas is not None
    shapes = anchor_shapes(op.base_size)
    images, _, rows, columns = scores.shape
    if scores.shape[1] != 2 * len(shapes) or deltas.shape != (images, 4 * len(shapes), rows, columns):
        raise GraphError(
            f"{len(shapes)} anchors need scores [images, {2 * len(shapes)}, rows, columns] and as many times "
            f"{4 * len(shapes)} deltas; there are {list(scores.shape)} and {list(deltas.shape)}",
            where="caffe.RegionsAbove",
        )
    middle = np.float32((op.base_size - 1) / 2)
    y, x = np.mgrid[:rows, :columns].astype(np.float32) * np.float32(op.stride) + middle
    own = scores[:, len(shapes) :]
    moves = deltas.reshape(images, len(shapes), 4, rows, columns)
    found = []
    for image in range(images):
        shape, row, column = np.nonzero(own[image] >= np.float32(op.score_threshold))
        places = np.stack([x[row, column], y[row, column], *shapes[shape].T], 1)
        boxes = _moved(places, moves[image, shape, :, row, column], op.image_size)
        confidence = own[image, shape, row, column]
        one_class = np.zeros(len(boxes), np.int64)
        kept = survivors(confidence, one_class, pixel_overlap(boxes), np.float32(op.nms_threshold))
        rows_found = np.insert(boxes[kept], 0, image, 1)
        found.append(fixed_rows(rows_found, op.keep_top_k))
    return [np.stack(found)[:, None]]


def anchor_shapes(base: int) -> NDArray:
    """Return width and height (9, 2), float32: for each ratio all scales; sides are rounded, halves up.

    The shape of each ratio has the base's area, and is rounded before it is scaled.
    """
    sides = []
    for ratio in RATIOS:
        wide = np.floor(np.sqrt(base * base / ratio) + 0.5)
        high = np.floor(wide * ratio + 0.5)
        sides += [[wide * scale, high * scale] for scale in SCALES]
    return np.array(sides, np.float32)


def _moved(places: NDArray, deltas: NDArray, image: Sequence[int]) -> NDArray:
    """Return boxes (count, 4) from places (x, y, width, height) and deltas, within the image, float32."""
    middle = places[:, :2] + places[:, 2:] * deltas[:, :2]
    half = (places[:, 2:] * np.exp(deltas[:, 2:])).astype(np.float64) / 2
    last = np.array([image[1], image[0]]) - 1
    ends = [middle - half, middle + half]
    return np.concatenate([end.clip(0, np.maximum(last, 0)) for end in ends], 1).astype(np.float32)


@reference(caffe_ops.FrcnDetection)
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def frcn_detection(op: caffe_ops.FrcnDetection, operands: Sequence[NDArray | None]) -> Sequence[NDArray]:
    """Return float32 (images, 1, keep_top_k, 6): left, top, right, bottom, class, score; zeros behind.

    The rows stand by region, then class.

    Raises:
        GraphError: there are not a score and a box of each region for each class.
    """
    deltas, scores, rois = operands
    assert deltas is not None and scores is not None and rois is not None
    images, _, count, _ = rois.shape
    if scores.size != images * count * op.num_classes or deltas.size != 4 * scores.size:
        raise GraphError(
            f"{images * count} regions and {op.num_classes} classes need a score for each of both "
            f"and four times as many deltas; there are {scores.size} and {deltas.size}",
            where="caffe.FrcnDetection",
        )
    moves = deltas.reshape(images, count, op.num_classes, 4)
    own = scores.reshape(images, count, op.num_classes)
    found = []
    for image in range(images):
        boxes = _moved_regions(rois[image, 0, :, 1:], moves[image])
        region, label = np.nonzero(own[image, :, 1:] > np.float32(op.score_threshold))
        label += 1
        boxes, confidence = boxes[region, label], own[image, region, label]
        kept = survivors(confidence, label, pixel_overlap(boxes), np.float32(op.nms_threshold))
        rows = np.concatenate([boxes, label[:, None], confidence[:, None]], 1)[kept]
        found.append(fixed_rows(rows, op.keep_top_k))
    return [np.stack(found)[:, None]]


def _moved_regions(regions: NDArray, deltas: NDArray) -> NDArray:
    """Return the boxes (count, classes, 4) of regions (count, 4) by deltas (count, classes, 4)."""
    size = (regions[:, 2:] - regions[:, :2] + 1)[:, None]
    middle = deltas[..., :2] * size + (regions[:, None, :2] + size / 2)
    half = np.exp(deltas[..., 2:]) * size / 2
    return np.concatenate([middle - half, middle + half], -1)
