"""``caffe.SelectedBoxes``: ONNX's NonMaxSuppression with a place for all that it may find."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.reference import reference
from caffeforge.runtime.references.suppression import suppressed


@reference(caffe_ops.SelectedBoxes)
def selected_boxes(op: caffe_ops.SelectedBoxes, operands: Sequence[NDArray | None]) -> Sequence[NDArray]:
    """Return float32 (images * classes * limit, 3).

    Raises:
        GraphError: fewer boxes stay than there must be.
    """
    boxes, scores = operands
    assert boxes is not None and scores is not None
    result = np.zeros((len(boxes) * scores.shape[1] * op.limit, 3), np.float32)
    count = 0
    for image, of in enumerate(boxes):
        corners = _corners(of, op.centers)
        for kind, own in enumerate(scores[image]):
            good = np.flatnonzero(own > np.float32(op.score_threshold))
            good = good[np.argsort(-own[good], kind="stable")]
            stay = good[suppressed(corners[good], op.nms_threshold)[: op.limit]]
            if op.full and len(stay) < op.limit:
                raise GraphError(f"{op.limit} boxes are due, {len(stay)} stay", where="caffe.SelectedBoxes")
            rows = result[count : count + len(stay)]
            rows[:, 0], rows[:, 1], rows[:, 2] = image, kind, stay
            count += len(stay)
    return [result]


def _corners(boxes: NDArray, centers: bool) -> NDArray:
    """Return boxes (count, 4) as two corners, the lesser coordinates first."""
    first, second = boxes[:, :2], boxes[:, 2:]
    if centers:
        first, second = first - second / 2, first + second / 2
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], 1)
