"""Default boxes of detectors: how many there are at a place, of which ratios, and where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from caffeforge.runtime.array import Array, Dense

Ints = Sequence[int]


def prior_ratios(given: Sequence[float], flip: bool) -> tuple[float, ...]:
    """Return the ratios of SSD's default boxes: 1, then those given, none of them twice."""
    ratios = [1.0]
    for one in given:
        if all(abs(one - ratio) >= 1e-6 for ratio in ratios):
            ratios += [one, 1.0 / one] if flip else [one]
    return tuple(ratios)


def prior_count(
    min_sizes: Sequence[float], max_sizes: Sequence[float], given: Sequence[float], flip: bool
) -> int:
    """Return the number of SSD's default boxes at one place."""
    return len(prior_ratios(given, flip)) * len(min_sizes) + len(max_sizes)


def prior_boxes(
    cells: Ints,
    image: Ints,
    min_sizes: Sequence[float],
    max_sizes: Sequence[float],
    given: Sequence[float],
    flip: bool,
    clip: bool,
    variances: Sequence[float],
    steps: Sequence[float],
    offset: float,
) -> Array:
    """Return SSD's default boxes as parts of the image, and their variances, float32 (1, 2, boxes * 4).

    `cells`: height and width of the feature map; `image`: of the image; the rest is as in ``caffe.PriorBox``.
    """
    (rows, columns), (height, width) = cells, image
    down, right = steps or (height / rows, width / columns)
    across = (np.arange(columns) + offset) * right
    along = (np.arange(rows) + offset) * down
    sizes = np.array(list(_sizes(min_sizes, max_sizes, prior_ratios(given, flip)[1:])))
    middles = np.stack(np.meshgrid(across, along), -1)[:, :, None]  # (rows, columns, 1, x and y)
    corners = np.concatenate([middles - sizes / 2, middles + sizes / 2], -1)
    boxes = (corners / [width, height, width, height]).astype(np.float32).reshape(-1)
    if clip:
        boxes = boxes.clip(0, 1)
    return Dense(np.stack([boxes, np.resize(np.array(variances, np.float32), boxes.shape)])[None])


def _sizes(
    min_sizes: Sequence[float], max_sizes: Sequence[float], ratios: Sequence[float]
) -> Iterator[tuple[float, float]]:
    """Yield width and height of each box at one place, in pixels."""
    for index, least in enumerate(min_sizes):
        yield least, least
        if max_sizes:
            side = (least * max_sizes[index]) ** 0.5
            yield side, side
        for ratio in ratios:
            yield least * ratio**0.5, least / ratio**0.5


class Suppression(Protocol):
    """What SSD's NonMaximumSuppressionParameter says; a field that is None is absent."""

    @property
    def top_k(self) -> int | None: ...


def candidates(suppression: Suppression) -> int:
    """Return how many boxes of a class are looked at, -1 for all."""
    return -1 if suppression.top_k is None else suppression.top_k
