"""Lists of numbers: sums, products, pieces of an axis, and which of them are in order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

from caffeforge.runtime.refusal import Refused

Ints = Sequence[int]
NEVER: bool = False  # whether a field is set that the dialect does not have
T = TypeVar("T")
_ELEMENT_TYPES = {
    **{"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9},
    **{"float16": 10, "float64": 11, "uint32": 12, "uint64": 13, "bfloat16": 16},
}


def add(a: Ints, b: Ints) -> tuple[int, ...]:
    """Return the sums of two lists of equal length, element by element."""
    return tuple(x + y for x, y in zip(a, b, strict=True))


def sub(a: Ints, b: Ints) -> tuple[int, ...]:
    """Return the differences of two lists of equal length, element by element."""
    return tuple(x - y for x, y in zip(a, b, strict=True))


def ones(count: int) -> tuple[int, ...]:
    """Return `count` ones."""
    return (1,) * count


def zeros(count: int) -> tuple[int, ...]:
    """Return `count` zeros."""
    return (0,) * count


def cumulative(sizes: Ints) -> tuple[int, ...]:
    """Return the running sums of `sizes` without the last: where a list of these sizes is cut."""
    points, total = [], 0
    for size in sizes[:-1]:
        total += size
        points.append(total)
    return tuple(points)


def pieces(points: Ints, size: int) -> tuple[int, ...]:
    """Return the sizes of the pieces when an axis of `size` is cut at `points`."""
    borders = [0, *points, size]
    return tuple(stop - start for start, stop in pairwise(borders))


def equal_pieces(size: int, count: int) -> tuple[int, ...]:
    """Return `count` equal pieces of an axis of `size`; Refused if it does not divide."""
    if size % count:
        raise Refused(f"an axis of {size} cannot be cut into {count} equal pieces")
    return (size // count,) * count


def each(values: Sequence[T], count: int, default: T | None = None) -> tuple[T, ...]:
    """Return `count` values by Caffe's rule for a repeated field: one for all, or one for each.

    Args:
        values: the field.
        count: how many are due.
        default: taken where the field is absent; Refused if there is none.
    """
    if not values and default is not None:
        return (default,) * count
    if len(values) not in (1, count):
        raise Refused(f"a field stands {len(values)} times, for {count} it stands once or {count} times")
    return tuple(values) if len(values) == count else (values[0],) * count


def exp(exponent: float) -> float:
    """Return e to a power."""
    return math.exp(exponent)


def log(number: float) -> float:
    """Return the natural logarithm; Refused for a number that is not positive."""
    if number <= 0:
        raise Refused(f"{number} has no logarithm")
    return math.log(number)


def element_type(dtype: str) -> int:
    """Return ONNX's number of an element type, as Cast takes it; Refused for one that is no usual number."""
    if dtype not in _ELEMENT_TYPES:
        raise Refused(f"{dtype} is no type that a rule can name")
    return _ELEMENT_TYPES[dtype]


def product(sizes: Ints) -> int:
    """Return the product of `sizes`."""
    result = 1
    for size in sizes:
        result *= size
    return result


def covers(outer: Ints, inner: Ints) -> bool:
    """Tell whether no size of `inner` is larger than that of `outer`."""
    return all(a >= b for a, b in zip(outer, inner, strict=True))


def divides(divisors: Ints, sizes: Ints) -> bool:
    """Tell whether each divisor divides its size."""
    return all(size % divisor == 0 for divisor, size in zip(divisors, sizes, strict=True))


def quotient(sizes: Ints, divisors: Ints) -> tuple[int, ...]:
    """Return the sizes divided by the divisors, rounded down."""
    return tuple(size // divisor for size, divisor in zip(sizes, divisors, strict=True))


def is_run(axes: Ints) -> bool:
    """Tell whether axes follow one another."""
    return all(b == a + 1 for a, b in pairwise(axes))


def last_run(axes: Ints) -> tuple[int, ...]:
    """Return the longest run of neighbours at the end of rising axes."""
    start = len(axes) - 1
    while start > 0 and axes[start - 1] == axes[start] - 1:
        start -= 1
    return tuple(axes[start:])


def runs_of(places: Ints) -> tuple[tuple[int, int], ...]:
    """Return (begin, end) of each run of places that follow one another."""
    begins = [0, *(i for i in range(1, len(places)) if places[i] != places[i - 1] + 1), len(places)]
    return tuple((places[a], places[b - 1] + 1) for a, b in pairwise(begins))


def numbers_in(text: str) -> tuple[float, ...]:
    """Return the numbers of a text that commas part; Refused if anything else stands there."""
    words = text.split(",")
    try:
        found = tuple(float(word) for word in words if word.strip())
    except ValueError:
        found = (math.nan,)
    if not all(map(math.isfinite, found)) or any(not word.strip() for word in words[:-1]):
        raise Refused(f"numbers between commas are due, there is {text!r}")
    return found


def in_text(values: Sequence[float]) -> str:
    """Return numbers as a text with commas between them."""
    return ",".join(str(int(value)) if value == int(value) else str(value) for value in values)
