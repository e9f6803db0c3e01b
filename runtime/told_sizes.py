"""Sizes that ONNX's inference does not tell, found by trying numbers in place of symbols.

An op is inferred with numbers for all names; from what its results' sizes are then, the expression is told
that yields them: a symbol of an operand, a number, or a sum, product or quotient of such.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final

from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.symbol import Dim, Symbol, at_point, names

# The dims of all results where the symbols have given sizes; None for what is not told.
Tried = Callable[[Mapping[Symbol, int]], Sequence[Sequence[Dim | None]]]

_POINTS: Final = 7
_LARGE: Final = 5  # so many come last; at the first ones, which are small, an op may refuse its operands
_LARGEST_DIVISOR: Final = 64


def told(
    symbols: Sequence[Symbol], tried: Tried, dims: Sequence[Sequence[Dim | None]]
) -> list[list[Dim | None]]:
    """Return `dims` with what can be told of the sizes that are None.

    Args:
        symbols: those of the operands, each once.
        tried: infers the op.
        dims: of each result, as far as they are known.
    """
    free = list(dict.fromkeys(name for symbol in symbols for name in names(symbol)))
    points: list[_Point] = []
    for index in range(_POINTS):
        try:
            points.append(_Point.of({name: at_point(name, index) for name in free}, symbols, tried))
        except GraphError:
            if index >= _POINTS - _LARGE:  # such sizes do not fit, so it is no result for all
                return [list(result) for result in dims]
    found = []
    for result, known in enumerate(dims):
        seen = [[point.results[result][axis] for point in points] for axis in range(len(known))]
        found.append(
            [
                dim if dim is not None else _expression(symbols, tried, points, values, (result, axis))
                for axis, (dim, values) in enumerate(zip(known, seen, strict=True))
            ]
        )
    return found


class _Point:
    """Sizes of the names, of the symbols, and of the results there."""

    def __init__(
        self, sizes: Mapping[str, int], given: dict[Symbol, int], results: Sequence[Sequence[Dim | None]]
    ):
        self.sizes = sizes
        self.given = given
        self.results = results

    @staticmethod
    def of(sizes: Mapping[str, int], symbols: Sequence[Symbol], tried: Tried) -> _Point:
        given = {}
        for symbol in symbols:
            value = symbol.at(sizes)
            if value is None or value < 0:
                raise GraphError(f"{symbol} is no size where {sizes}")
            given[symbol] = value
        return _Point(sizes, given, tried(given))


def _expression(
    symbols: Sequence[Symbol],
    tried: Tried,
    points: Sequence[_Point],
    seen: Sequence[Dim | None],
    place: tuple[int, int],
) -> Dim | None:
    """Return what yields the numbers that were seen at the points, None if nothing simple does."""
    values = [value for value in seen if isinstance(value, int)]
    if len(values) != len(points):
        return None
    if len(set(values)) == 1:
        return values[0]
    for symbol in symbols:
        if [point.given[symbol] for point in points] == values:
            return symbol
    # Windows that are larger than what they go over are counted anyhow: small sizes are left out from here.
    points, values = points[-_LARGE:], values[-_LARGE:]
    for candidate in _candidates(symbols, points, values):
        if candidate is not None:
            return candidate
    for name in points[-1].sizes:
        quotient = _quotient(name, symbols, tried, points, values, place)
        if quotient is not None:
            return quotient
    return None


def _candidates(
    symbols: Sequence[Symbol], points: Sequence[_Point], values: Sequence[int]
) -> Iterator[Dim | None]:
    """Yield sums of a symbol and a number, products with a number, and sums of two symbols."""
    columns = {symbol: [point.given[symbol] for point in points] for symbol in symbols}
    for symbol, column in columns.items():
        rests = {value - own for value, own in zip(values, column, strict=True)}
        yield symbol + rests.pop() if len(rests) == 1 else None
    for count in range(1, min(len(symbols), 4) + 1):
        for chosen in itertools.combinations(symbols, count):
            product = [math.prod(parts) for parts in zip(*(columns[s] for s in chosen), strict=True)]
            ratios = {Fraction(value, own) for value, own in zip(values, product, strict=True) if own}
            if len(ratios) == 1:
                yield _scaled(math.prod(chosen[1:], start=chosen[0]), ratios.pop())
    for first, second in itertools.combinations(symbols, 2):
        rests = {v - a - b for v, a, b in zip(values, columns[first], columns[second], strict=True)}
        yield first + second + rests.pop() if len(rests) == 1 else None


def _scaled(dim: Dim, ratio: Fraction) -> Dim:
    scaled = dim * ratio.numerator
    return scaled // ratio.denominator


def _quotient(
    name: str,
    symbols: Sequence[Symbol],
    tried: Tried,
    points: Sequence[_Point],
    values: Sequence[int],
    place: tuple[int, int],
) -> Dim | None:
    """Return ``(a * name + b) // c`` if that is what was seen; b is told by a row of c sizes."""
    own = [point.sizes[name] for point in points]
    low, high = own.index(min(own)), own.index(max(own))
    if own[high] == own[low]:
        return None
    slope = Fraction(values[high] - values[low], own[high] - own[low]).limit_denominator(_LARGEST_DIVISOR)
    a, c = slope.numerator, slope.denominator
    if a < 1:
        return None
    pairs = list(zip(own, values, strict=True))
    base = points[-1].sizes
    for more in range(c):
        try:
            point = _Point.of({**base, name: base[name] + more}, symbols, tried)
        except GraphError:
            return None
        value = point.results[place[0]][place[1]]
        if not isinstance(value, int):
            return None
        pairs.append((point.sizes[name], value))
    least = max(c * value - a * given for given, value in pairs)
    most = min(c * value - a * given + c - 1 for given, value in pairs)
    return (Symbol(name) * a + least) // c if least == most else None
