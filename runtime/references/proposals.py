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
    """Return float32 (found, 5), the best first: 0, left, top, right, bottom in pixels; and their scores.

    Raises:
        GraphError: there is more than one image, or not one score and box for each anchor.
    """
    scores, deltas, info = operands
    assert scores is not None and deltas is not None and info is not None
    shapes = anchors(op.base_size, op.ratios, op.scales)
    rows, columns = scores.shape[2:]
    if scores.shape != (1, 2 * len(shapes), rows, columns) or deltas.shape != (
        1,
        4 * len(shapes),
        rows,
        columns,
    ):
        raise GraphError(
            f"{len(shapes)} anchors of one image need scores [1, {2 * len(shapes)}, rows, columns] and "
            f"deltas [1, {4 * len(shapes)}, rows, columns]; there are {list(scores.shape)} and "
            f"{list(deltas.shape)}",
            where="caffe.Proposal",
        )
    height, width, scale = info.reshape(-1)[:3]
    own = scores[0, len(shapes) :].transpose(1, 2, 0).reshape(-1)
    moved = deltas[0].transpose(1, 2, 0).reshape(-1, 4)
    boxes = _moved(_at_all_places(shapes, op.stride, rows, columns), moved)
    boxes[:, 0::2] = boxes[:, 0::2].clip(0, width - 1)
    boxes[:, 1::2] = boxes[:, 1::2].clip(0, height - 1)
    large = (boxes[:, 2:] - boxes[:, :2] + 1 >= op.min_size * scale).all(1)
    boxes, own = boxes[large], own[large]
    order = np.argsort(-own, kind="stable")[: op.pre_nms_top_n if op.pre_nms_top_n > 0 else None]
    boxes, own = boxes[order], own[order]
    kept = suppressed(boxes, op.nms_threshold, end=1.0)[
        : op.post_nms_top_n if op.post_nms_top_n > 0 else None
    ]
    rois = np.concatenate([np.zeros((len(kept), 1)), boxes[kept]], 1)
    return [rois.astype(np.float32), own[kept].astype(np.float32)]


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
