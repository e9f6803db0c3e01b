"""``caffe.PaddedProposal``: Faster R-CNN's regions as Cambricon's Caffe finds them, always as many."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.reference import reference
from caffeforge.runtime.references.proposals import anchors, check_shapes
from caffeforge.runtime.references.suppression import suppressed


@reference(caffe_ops.PaddedProposal)
def padded_proposal(op: caffe_ops.PaddedProposal, operands: Sequence[NDArray | None]) -> Sequence[NDArray]:
    """Return float32 (count, 5), the best first: 0, left, top, right, bottom in pixels; zeros behind.

    Raises:
        GraphError: the scores and deltas are not those of the anchors.
    """
    scores, deltas, info = operands
    assert scores is not None and deltas is not None and info is not None
    shapes = first_boxes(op)
    count, (rows, columns) = len(shapes), scores.shape[2:]
    check_shapes("caffe.PaddedProposal", 1, count, scores, deltas)
    given = info.reshape(-1)[:3]
    height, width, scale = given if given[0] != 0 else np.array(op.image, np.float32)
    boxes = _boxes(op, shapes, deltas[0].reshape(count, 4, rows, columns))
    boxes[:, :2] = np.maximum(boxes[:, :2], 0)
    boxes[:, 2:] = np.minimum(boxes[:, 2:], np.array([width - 1, height - 1], np.float32))
    own = scores[0, count:].reshape(-1)
    large = (boxes[:, 2:] - boxes[:, :2] + 1 >= np.array(op.least) * scale).all(1)
    boxes, own = boxes[large], own[large]
    boxes = boxes[np.argsort(-own, kind="stable")[: op.pre_nms_top_n]]
    kept = suppressed(boxes, op.nms_threshold, end=1.0)[: op.count]
    result = np.zeros((op.count, 5), np.float32)
    result[: len(kept), 1:] = boxes[kept]
    return [result]


def first_boxes(op: caffe_ops.PaddedProposal) -> NDArray:
    """Return the anchors (count, 4) of the first cell."""
    if not op.ratios:
        return anchors(16, (0.5, 1.0, 2.0), (8.0, 16.0, 32.0))
    middle, found = (op.base_size - 1) / 2, []
    if op.rounded:
        for root in np.sqrt(np.array(op.ratios, np.float32)):  # 16 by 0.5 depends on its last digit
            wide = int(op.base_size / root + np.float32(0.5))
            high = int(wide * root * root + np.float32(0.5))
            found += [((wide * scale - 1) / 2, (high * scale - 1) / 2) for scale in op.scales]
    else:
        half = op.base_size / 2
        found = [
            (half / np.sqrt(r) * scale, half * np.sqrt(r) * scale) for scale in op.scales for r in op.ratios
        ]
    return np.array([[middle - x, middle - y, middle + x, middle + y] for x, y in found])


def _boxes(op: caffe_ops.PaddedProposal, shapes: NDArray, deltas: NDArray) -> NDArray:
    """Return the regions (count, 4), by anchor, then cell; deltas: (anchors, 4, rows, columns)."""
    rows, columns = deltas.shape[2:]
    y, x = np.mgrid[:rows, :columns] * op.stride
    places = shapes[:, None, None] + np.stack([x, y, x, y], -1)
    size = places[..., 2:] - places[..., :2] + 1
    moved = deltas.transpose(0, 2, 3, 1).astype(np.float64)
    middle = (places[..., :2] + places[..., 2:] + 1) / 2 + moved[..., :2] * size
    half = np.exp(moved[..., 2:]) * size / 2
    return np.concatenate([middle - half, middle + half], -1).reshape(-1, 4).astype(np.float32)
