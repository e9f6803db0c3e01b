"""The matrices of Winograd's forms F(2 x 2, 3 x 3) and F(4 x 4, 3 x 3).

A tile of results and a filter are polynomials along each axis; their product is known from its values at some
points. The forms are that scheme turned over, which gives the sums of a convolution in place of the product:

    results = A' [(G g G') * (B' d B)] A

with g the filter of 3 x 3, d the operands of a tile, and a product element by element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Final

import numpy as np

from caffeforge.runtime.array import NDArray

# Infinity is one more. Fractions of few digits make A and B exact in float32. Of eighths up to 2.5 these have
# the least error for tiles of four: 6 times that of a direct sum of random numbers, where whole numbers have
# 12 times; tiles of two have less than twice.
_POINTS: Final = {2: ("0", "1", "-1"), 4: ("0", "5/8", "-5/8", "3/2", "-3/2")}


@dataclass(frozen=True)
class Form:
    """The matrices along one axis, float64.

    Attributes:
        results: A', of tile rows and span columns.
        weights: G, [span, 3].
        operands: B', [span, span].
    """

    results: NDArray
    weights: NDArray
    operands: NDArray

    @property
    def tile(self) -> int:
        """How many results a tile has along each axis."""
        return len(self.results)

    @property
    def span(self) -> int:
        """How many operands these have."""
        return len(self.operands)


@cache
def form(tile: int) -> Form:
    """Return the form for tiles of 2 or 4 results along each axis."""
    points = [Fraction(point) for point in _POINTS[tile]]
    others = [[q for q in points if q != p] for p in points]
    scales = [_polynomial(rest, at=p) for p, rest in zip(points, others, strict=True)]
    results = [[*(p**row for p in points), Fraction(row == tile - 1)] for row in range(tile)]
    weights = [[p**k / scale for k in range(3)] for p, scale in zip(points, scales, strict=True)]
    weights.append([Fraction(k == 2) for k in range(3)])
    operands = [[*_coefficients(rest), Fraction(0)] for rest in others]
    operands.append(_coefficients(points))
    return Form(*(np.array(m, np.float64) for m in (results, weights, operands)))


def _polynomial(roots: Sequence[Fraction], at: Fraction) -> Fraction:
    """Return the product of (at - root)."""
    found = Fraction(1)
    for root in roots:
        found *= at - root
    return found


def _coefficients(roots: Sequence[Fraction]) -> list[Fraction]:
    """Return the coefficients of the product of (x - root), the constant one first."""
    found = [Fraction(1)]
    for root in roots:
        times_x, as_it_is = [Fraction(0), *found], [*found, Fraction(0)]
        found = [up - root * same for up, same in zip(times_x, as_it_is, strict=True)]
    return found
