"""Default boxes of detectors: how many there are at a place, and of which ratios."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


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


class Suppression(Protocol):
    """What SSD's NonMaximumSuppressionParameter says; a field that is None is absent."""

    @property
    def top_k(self) -> int | None: ...


def candidates(suppression: Suppression) -> int:
    """Return how many boxes of a class are looked at, -1 for all."""
    return -1 if suppression.top_k is None else suppression.top_k
