"""Permutations of axes as exchanges of two neighbouring blocks of axes, which Caffe can compute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import NamedTuple

Perm = tuple[int, ...]


class Swap(NamedTuple):
    """An array of shape (before, first, second, behind) becomes (before, second, first, behind)."""

    before: int
    first: int
    second: int
    behind: int


def real_axes(shape: Sequence[int], perm: Sequence[int]) -> tuple[int, ...]:
    """Return the axes that matter: all but those of size 1, which move for free.

    The batch, the first axis, matters where it stays the first: its size may be another when the net runs.
    """
    return tuple(axis for axis, size in enumerate(shape) if size != 1 or (axis == 0 and perm[0] == 0))


def reduced(shape: Sequence[int], perm: Sequence[int]) -> Perm:
    """Return `perm` over its real axes alone, counted anew."""
    axes = real_axes(shape, perm)
    return tuple(axes.index(axis) for axis in perm if axis in axes)


def single(sizes: Sequence[int], perm: Perm) -> Swap | None:
    """Return the exchange that `perm` is, None if it is none or more than one."""
    for begin, middle, end in _cuts(len(perm)):
        if perm == _exchange(len(perm), begin, middle, end):
            borders = (0, begin, middle, end, len(perm))
            return Swap(*(prod(sizes[a:b]) for a, b in pairwise(borders)))
    return None


def first_of(perm: Perm) -> Perm:
    """Return the first of the fewest exchanges that make up `perm`, `perm` itself of one axis or none."""
    best: tuple[int, Perm] | None = None
    for cut in _cuts(len(perm)):
        exchange = _exchange(len(perm), *cut)
        count = _distances(len(perm))[after(exchange, perm)]
        if best is None or count < best[0]:
            best = (count, exchange)
    return perm if best is None else best[1]


def after(first: Perm, perm: Perm) -> Perm:
    """Return what is left of `perm` once `first` is done."""
    return tuple(first.index(axis) for axis in perm)


def _cuts(rank: int) -> Iterator[tuple[int, int, int]]:
    for begin in range(rank):
        for middle in range(begin + 1, rank):
            for end in range(middle + 1, rank + 1):
                yield begin, middle, end


def _exchange(rank: int, begin: int, middle: int, end: int) -> Perm:
    axes = tuple(range(rank))
    return axes[:begin] + axes[middle:end] + axes[begin:middle] + axes[end:]


@lru_cache(maxsize=8)
def _distances(rank: int) -> dict[Perm, int]:
    """Return how many exchanges make up each permutation."""
    start = tuple(range(rank))
    found = {start: 0}
    border = [start]
    exchanges = [_exchange(rank, *cut) for cut in _cuts(rank)]
    while border:
        reached = []
        for perm in border:
            for exchange in exchanges:
                other = tuple(perm[axis] for axis in exchange)
                if other not in found:
                    found[other] = found[perm] + 1
                    reached.append(other)
        border = reached
    return found
