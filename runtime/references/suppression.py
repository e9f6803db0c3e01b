"""Non-maximum suppression: of boxes that overlap too much the better one stays."""

from __future__ import annotations

import numpy as np

from caffeforge.runtime.array import NDArray


def suppressed(boxes: NDArray, threshold: float, *, end: float = 0.0, eta: float = 1.0) -> NDArray:
    """Return the indices of the boxes that stay.

    Args:
        boxes: (count, 4): left, top, right, bottom; the best first.
        threshold: a box goes that overlaps a better one, which stays, by more than this part of both.
        end: 1 if right and bottom name the last pixel, which then counts, 0 if they are its far edge.
        eta: the threshold is multiplied by it after each box that stays, while it is above 0.5.
    """
    left, top, right, bottom = boxes.T
    areas = (right - left + end).clip(0) * (bottom - top + end).clip(0)
    most = np.zeros(len(boxes), boxes.dtype)  # overlap with any box that stays
    kept = []
    at = 0
    while at < len(boxes):
        open_ = np.flatnonzero(most[at:] <= threshold)
        if not open_.size:
            break
        at += int(open_[0])
        kept.append(at)
        if eta < 1 and threshold > 0.5:
            threshold *= eta
        rest = slice(at + 1, None)
        wide = (np.minimum(right[rest], right[at]) - np.maximum(left[rest], left[at]) + end).clip(0)
        high = (np.minimum(bottom[rest], bottom[at]) - np.maximum(top[rest], top[at]) + end).clip(0)
        common = wide * high
        whole = areas[rest] + areas[at] - common
        overlap = np.divide(common, whole, out=np.zeros_like(common), where=common > 0)
        np.maximum(most[rest], overlap, out=most[rest])
        at += 1
    return np.array(kept, np.int64)
