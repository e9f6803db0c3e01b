"""How far a result is from its reference, measured in float64, and how far it may be."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import CaffeforgeError

_BLOCK: Final = 1 << 20  # elements that are held in float64 at a time
_FLOOR: Final = 1e-3  # a smaller part of the scale counts as this in max_rel
_VARIES: Final = 1e-6  # part of the scale


@dataclass(frozen=True)
class Difference:
    """A result against its reference.

    Where one of the two is NaN or infinite and the other not the same, both maxima are infinite and the
    SNR is minus infinity; where both are the same, the element counts as equal.

    Attributes:
        max_abs: max |result - reference|.
        max_rel: max |result - reference| / |reference|; |reference| below scale / 1000
            counts as that.
        cosine: of the angle between the two, 1 for equal direction.
        snr_db: 10 log10(sum reference^2 / sum (result - reference)^2), infinite if they are equal.
        scale: max |reference| over its finite elements.
        elements: how many there are.
        varies: whether the reference differs from position to position (standard deviation over 1e-6 of
            the scale); a reference that does not would agree with much that is wrong.
    """

    max_abs: float
    max_rel: float
    cosine: float
    snr_db: float
    scale: float
    elements: int
    varies: bool

    @property
    def relative(self) -> float:
        """max_abs as a part of the scale; infinite if the reference is zero and the result is not."""
        if self.max_abs == 0:
            return 0.0
        return self.max_abs / self.scale if self.scale else math.inf


@dataclass(frozen=True)
class Tolerance:
    """The error that is accepted: `relative` times the largest magnitude of the reference."""

    relative: float

    def accepts(self, difference: Difference) -> bool:
        return difference.relative <= self.relative


# What sums in another order may cost after a deep net. Integers and booleans must be equal.
_RELATIVE: Final[Mapping[str, float]] = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}


def tolerance(reference: str, result: str) -> Tolerance:
    """Return the tolerance for two element types: that of the coarser one, none if one is not floating."""
    if reference not in _RELATIVE or result not in _RELATIVE:
        return Tolerance(0.0)
    return Tolerance(max(_RELATIVE[reference], _RELATIVE[result]))


def compare(reference: NDArray, result: NDArray) -> Difference:
    """Measure `result` against `reference`, of equal shapes and any real element types.

    Raises:
        CaffeforgeError: the shapes differ.
    """
    if reference.shape != result.shape:
        raise CaffeforgeError(
            f"the result has shape {list(result.shape)}, the reference {list(reference.shape)}"
        )
    scale = max((_largest(r) for r, _ in _blocks(reference, result)), default=0.0)
    sums = _Sums(scale)
    for r, s in _blocks(reference, result):
        sums.add(r, s)
    return sums.difference(reference.size)


def _blocks(reference: NDArray, result: NDArray) -> Iterator[tuple[NDArray, NDArray]]:
    a, b = reference.reshape(-1), result.reshape(-1)
    for start in range(0, a.size, _BLOCK):
        yield a[start : start + _BLOCK].astype(np.float64), b[start : start + _BLOCK].astype(np.float64)


def _largest(block: NDArray) -> float:
    return float(np.max(np.abs(block), where=np.isfinite(block), initial=0.0))


def _dot(a: NDArray, b: NDArray) -> float:
    """Return the sum of products; not by BLAS: its threads and PyTorch's slow each other down, 10 times."""
    return float(np.einsum("i,i->", a, b))


class _Sums:
    """What one pass over the elements adds up; only finite pairs enter the sums."""

    def __init__(self, scale: float) -> None:
        self.scale = scale
        self.max_abs = self.max_rel = 0.0
        self.reference2 = self.result2 = self.product = self.error2 = 0.0
        self.first: float | None = None  # variance is taken from here: rounding of plain sums nears _VARIES
        self.shifted = self.shifted2 = 0.0
        self.count = 0

    def add(self, r: NDArray, s: NDArray) -> None:
        finite = np.isfinite(r) & np.isfinite(s)
        if not finite.all():
            same = (r == s) | (np.isnan(r) & np.isnan(s))
            if not (finite | same).all():
                self.max_abs = self.max_rel = math.inf
            r, s = r[finite], s[finite]
        if not r.size:
            return
        error = np.abs(s - r)
        self.max_abs = max(self.max_abs, float(error.max()))
        if self.scale:
            relative = error / np.maximum(np.abs(r), _FLOOR * self.scale)
            self.max_rel = max(self.max_rel, float(relative.max()))
        self.error2 += _dot(error, error)
        self.reference2 += _dot(r, r)
        self.result2 += _dot(s, s)
        self.product += _dot(r, s)
        if self.first is None:
            self.first = float(r[0])
        shifted = r - self.first
        self.shifted += float(shifted.sum())
        self.shifted2 += _dot(shifted, shifted)
        self.count += r.size

    def difference(self, elements: int) -> Difference:
        mean = self.shifted / max(1, self.count)
        deviation = math.sqrt(max(0.0, self.shifted2 / max(1, self.count) - mean * mean))
        max_rel = math.inf if self.max_abs and not self.scale else self.max_rel
        return Difference(
            max_abs=self.max_abs,
            max_rel=max_rel,
            cosine=self._cosine(),
            snr_db=self._snr_db(),
            scale=self.scale,
            elements=elements,
            varies=deviation > _VARIES * self.scale,
        )

    def _cosine(self) -> float:
        norms = math.sqrt(self.reference2) * math.sqrt(self.result2)
        if norms:
            return max(-1.0, min(1.0, self.product / norms))
        return 1.0 if self.reference2 == self.result2 else 0.0

    def _snr_db(self) -> float:
        if math.isinf(self.max_abs):
            return -math.inf
        if not self.error2:
            return math.inf
        return 10 * math.log10(self.reference2 / self.error2) if self.reference2 else -math.inf
