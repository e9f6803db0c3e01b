"""``caffe.Proposal``: Faster R-CNN's regions, from what a net says of anchors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.reference import reference
from caffeforge.runtime.references.suppression import suppressed


@reference(caffe_ops.Proposal)
def proposal(op: caffe_ops.Proposal, operands: Sequence[NDArray | None]) -> Sequence[NDArray]:
    """Return float32 (found, 5): image, left, top, right, bottom in pixels; and (found), their scores.

    They stand image by image, the best first.

    Raises:
        GraphError: there is not one score and box for each anchor, or several images have several sizes.
    """
    scores, deltas, info = operands
    assert scores is not None and deltas is not None and info is not None
    shapes = anchors(op.base_size, op.ratios, op.scales)
    images = len(scores)
    check_shapes("caffe.Proposal", images, len(shapes), scores, deltas)
    if images > 1 and len(info) > 1:
        raise GraphError("one row tells the size of all images", where="caffe.Proposal")
    size = info.reshape(-1)[:3]
    found = [_of_image(op, shapes, scores[image], deltas[image], size) for image in range(images)]
    indices = np.repeat(np.arange(images), [len(boxes) for boxes, _ in found])
    rois = np.concatenate([indices[:, None], np.concatenate([boxes for boxes, _ in found])], 1)
    return [rois.astype(np.float32), np.concatenate([own for _, own in found]).astype(np.float32)]


def _of_image(
    op: caffe_ops.Proposal, shapes: NDArray, scores: NDArray, deltas: NDArray, info: NDArray
) -> tuple[NDArray, NDArray]:
    """Return the boxes (found, 4) of one image and their scores, the best first."""
    height, width, scale = info
    own = scores[len(shapes) :].transpose(1, 2, 0).reshape(-1)
    boxes = all_boxes(shapes, op.stride, deltas, (height, width))
    large = (boxes[:, 2:] - boxes[:, :2] + 1 >= op.min_size * scale).all(1)
    boxes, own = boxes[large], own[large]
    order = np.argsort(-own, kind="stable")[: op.pre_nms_top_n if op.pre_nms_top_n > 0 else None]
    boxes, own = boxes[order], own[order]
    kept = suppressed(boxes, op.nms_threshold, end=1.0)[
        : op.post_nms_top_n if op.post_nms_top_n > 0 else None
    ]
    return boxes[kept], own[kept]


def check_shapes(where: str, images: int, count: int, scores: NDArray, deltas: NDArray) -> None:
    """Refuse what is not two scores and four deltas of each of `count` anchors at each place of the images.

    Raises:
        GraphError: naming the shapes.
    """
    rows, columns = scores.shape[2:]
    due = [(images, each * count, rows, columns) for each in (2, 4)]
    if [scores.shape, deltas.shape] != due:
        raise GraphError(
            f"{count} anchors need scores {list(due[0])} and deltas {list(due[1])}; there are "
            f"{list(scores.shape)} and {list(deltas.shape)}",
            where=where,
        )


def all_boxes(shapes: NDArray, stride: int, deltas: NDArray, size: tuple[float, float]) -> NDArray:
    """Return the regions (cells * anchors, 4), by cell, then anchor, cut to an image of (height, width)."""
    moved = deltas.transpose(1, 2, 0).reshape(-1, 4)
    boxes = _moved(_at_all_places(shapes, stride, *deltas.shape[1:]), moved)
    boxes[:, 0::2] = boxes[:, 0::2].clip(0, size[1] - 1)
    boxes[:, 1::2] = boxes[:, 1::2].clip(0, size[0] - 1)
    return boxes


def anchors(base: int, ratios: Sequence[float], scales: Sequence[float]) -> NDArray:
    """Return the boxes (count, 4) around the first cell; for each ratio all scales, sides in whole pixels.

    The box of each ratio (height by width) has the base's area; its sides are rounded before it is scaled.
    """
    middle = (base - 1) / 2
    boxes = []
    for ratio in ratios:
        wide = np.round(np.sqrt(base * base / ratio))
        high = np.round(wide * ratio)
        for scale in scales:
            half = np.array([wide * scale - 1, high * scale - 1]) / 2
            boxes.append([*(middle - half), *(middle + half)])
    return np.array(boxes)


def _at_all_places(shapes: NDArray, stride: int, rows: int, columns: int) -> NDArray:
    """Return the anchors of all cells, row by row."""
    x, y = np.meshgrid(np.arange(columns) * stride, np.arange(rows) * stride)
    places = np.stack([x, y, x, y], -1).reshape(-1, 1, 4)
    moved: NDArray = (places + shapes).reshape(-1, 4)
    return moved


def _moved(boxes: NDArray, deltas: NDArray) -> NDArray:
    """Return boxes moved by parts of their size, and scaled by the exponent of the last two."""
    size = boxes[:, 2:] - boxes[:, :2] + 1
    middle = boxes[:, :2] + size / 2 + deltas[:, :2] * size
    half = np.exp(deltas[:, 2:].astype(np.float64)) * size / 2
    return np.concatenate([middle - half, middle + half], 1)
