"""Suppression among boxes in the order in which they stand, not in that of their scores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from caffeforge.runtime.array import NDArray

# (one box, others): how much each of the others overlaps the one, a part of both.
Overlap = Callable[[int, NDArray], NDArray]


def survivors(scores: NDArray, classes: NDArray, overlap: Overlap, threshold: np.float32) -> NDArray:
    """Return the indices of the boxes that stay, ascending.

    Each box that is still there meets those behind it of its class. Of two that overlap by more than the
    threshold the one of the lower score goes, of equal scores the later; one that goes meets no more.

    Args:
        scores: (count,).
        classes: (count,), whole numbers.
        overlap: of the boxes, by their indices.
        threshold: a part of both boxes.
    """
    there = np.ones(len(scores), bool)
    for at in range(len(scores)):
        if not there[at]:
            continue
        behind = at + 1 + np.flatnonzero(there[at + 1 :] & (classes[at + 1 :] == classes[at]))
        met = behind[overlap(at, behind) > threshold]
        better = np.flatnonzero(scores[met] > scores[at])
        if better.size:
            there[at] = False
            met = met[: better[0]]
        there[met] = False
    return np.flatnonzero(there)


def pixel_overlap(boxes: NDArray) -> Overlap:
    """Return the overlap of boxes (count, 4) of left, top, right, bottom.

    The last pixel counts in the area of a box, and not in what two have in common.
    """
    left, top, right, bottom = boxes.T
    areas = (right - left + 1) * (bottom - top + 1)

    def overlap(one: int, others: NDArray) -> NDArray:
        wide = np.minimum(right[one], right[others]) - np.maximum(left[one], left[others])
        high = np.minimum(bottom[one], bottom[others]) - np.maximum(top[one], top[others])
        common = wide * high
        part: NDArray = common / (areas[one] + areas[others] - common)
        return np.where((wide > 0) & (high > 0), part, -np.inf)

    return overlap


def fixed_rows(found: NDArray, count: int) -> NDArray:
    """Return the first `count` rows of (rows, columns), float32; where there are fewer, zeros follow."""
    rows = np.zeros((count, found.shape[1]), np.float32)
    rows[: len(found)] = found[:count]
    return rows
