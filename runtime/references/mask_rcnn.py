"""``caffe.MaskProposal`` and ``caffe.MaskDetection``: Mask R-CNN's boxes, in parts of the image."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.reference import reference
from caffeforge.runtime.references.suppression import suppressed


@reference(caffe_ops.MaskProposal)
def mask_proposal(op: caffe_ops.MaskProposal, operands: Sequence[NDArray | None]) -> Sequence[NDArray]:
    """Return float32 (images, post_nms_top_n, 4), the best first."""
    scores, deltas, anchors = operands
    assert scores is not None and deltas is not None and anchors is not None
    result = np.zeros((len(scores), op.post_nms_top_n, 4), np.float32)
    for found, own, moves, at in zip(result, scores[..., 1], deltas, anchors, strict=True):
        order = np.argsort(-own, kind="stable")[: op.pre_nms_top_n]
        boxes = moved(at[order], moves[order] * np.array(op.deviations, np.float32)).clip(0, 1)
        kept = _kept(boxes, op.nms_threshold)[: op.post_nms_top_n]
        found[: len(kept)] = boxes[kept]
    return [result]


@reference(caffe_ops.MaskDetection)
def mask_detection(op: caffe_ops.MaskDetection, operands: Sequence[NDArray | None]) -> Sequence[NDArray]:
    """Return float32 (images, limit, 6)."""
    rois, scores, deltas, info = operands
    assert rois is not None and scores is not None and deltas is not None and info is not None
    result = np.zeros((len(rois), op.limit, 6), np.float32)
    height, width = info[0, 4:6]
    for image, found in enumerate(result):
        window = info[image, 7:11] - np.array([0, 0, 1, 1], np.float32)
        window = window / (np.array([height, width, height, width], np.float32) - 1)
        classes = scores[image].argmax(1)
        own = scores[image].max(1)
        moves = deltas[image, np.arange(len(classes)), classes] * np.array(op.deviations, np.float32)
        boxes = moved(rois[image], moves)
        boxes = np.maximum(np.minimum(boxes, window[[2, 3, 2, 3]]), window[[0, 1, 0, 1]])
        good = np.flatnonzero((classes > 0) & (own > op.score_threshold))
        kept = []
        for each in dict.fromkeys(classes[good].tolist()):
            of = good[classes[good] == each]
            of = of[np.argsort(-own[of], kind="stable")]
            kept.extend(of[_kept(boxes[of], op.nms_threshold)[: op.limit]])
        best = np.array(kept, np.int64)[np.argsort(-own[kept], kind="stable")][: op.limit]
        found[: len(best)] = np.concatenate([boxes[best], classes[best, None], own[best, None]], 1)
    return [result]


def moved(boxes: NDArray, deltas: NDArray) -> NDArray:
    """Return boxes (count, 4) moved by parts of their size, and scaled by the exponent of the last two."""
    size = boxes[:, 2:] - boxes[:, :2]
    middle = boxes[:, :2] + (np.float32(0.5) + deltas[:, :2]) * size
    half = size * np.exp(deltas[:, 2:]) / 2
    return np.concatenate([middle - half, middle + half], 1)


def _kept(boxes: NDArray, threshold: float) -> NDArray:
    """Return the indices of the boxes that stay; one that overlaps by the threshold itself goes."""
    least = np.nextafter(np.float32(threshold), np.float32(-1))
    return suppressed(boxes[:, [1, 0, 3, 2]], float(least))
