"""``caffe.PartSortedProposal``: Faster R-CNN's regions as Synopsys' Caffe finds them."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heapreplace

import numpy as np

from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.reference import reference
from caffeforge.runtime.references.proposals import all_boxes, anchors, check_shapes
from caffeforge.runtime.references.suppression import suppressed


@reference(caffe_ops.PartSortedProposal)
def part_sorted_proposal(
    op: caffe_ops.PartSortedProposal, operands: Sequence[NDArray | None]
) -> Sequence[NDArray]:
    """Return float32 (found, 5): 0, left, top, right, bottom in pixels; and (found), their scores.

    Raises:
        GraphError: there is not one score and box of one image for each anchor.
    """
    scores, deltas, info = operands
    assert scores is not None and deltas is not None and info is not None
    shapes = anchors(op.base_size, op.ratios, op.scales)
    count, (rows, columns) = len(shapes), scores.shape[2:]
    check_shapes("caffe.PartSortedProposal", 1, count, scores, deltas)
    height, width, scale = info.reshape(-1)[:3]
    boxes = all_boxes(shapes, op.stride, deltas[0], (int(height), int(width)))
    boxes = boxes.reshape(rows * columns, count, 4).transpose(1, 0, 2).reshape(-1, 4).astype(np.float32)
    own = scores[0, count:].reshape(-1)
    large = (boxes[:, 2:] - boxes[:, :2] + 1 >= np.float32(op.min_size) * scale).all(1)
    large[-1] = True
    boxes, own = boxes[large], own[large]
    order = part_sorted(own, op.sorted)
    kept = order[suppressed(boxes[order], op.nms_threshold, end=1.0)[: op.count]]
    rois = np.concatenate([np.zeros((len(kept), 1), np.float32), boxes[kept]], 1)
    return [rois, own[kept].astype(np.float32)]


def part_sorted(scores: NDArray, count: int) -> NDArray:
    """Return the order of scores of which the best ``count`` are sorted, of equal ones the later first.

    The others stay where they are. Where one behind the first ``count`` is better than the worst of the best
    so far, that worst takes its place.
    """
    pairs = list(zip(scores.tolist(), range(len(scores)), strict=True))
    best, rest = pairs[:count], pairs[count:]
    heapify(best)
    others = [heapreplace(best, pair) if pair > best[0] else pair for pair in rest]
    return np.array([place for _, place in sorted(best, reverse=True) + others], np.int64)
