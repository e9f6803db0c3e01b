"""Einsum as sums, transposes and one matrix product for each pair of operands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from caffeforge.runtime.refusal import Refused

Ints = Sequence[int]
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class _Equation(NamedTuple):
    terms: tuple[str, ...]
    result: str

    def text(self) -> str:
        return f"{','.join(self.terms)}->{self.result}"


def einsum_single(equation: str, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the axes that an Einsum of one operand sums, and the order that it gives the others."""
    parsed = _parsed(equation, (rank,))
    (term,) = parsed.terms
    left = [label for label in term if label in parsed.result]
    return (
        tuple(axis for axis, label in enumerate(term) if label not in parsed.result),
        tuple(left.index(label) for label in parsed.result),
    )


def einsum_plan(equation: str, a: Ints, b: Ints, flat: bool) -> tuple[tuple[int, ...], ...]:
    """Return how to compute an Einsum of two operands of shapes `a` and `b` by a matrix product.

    The first operand's own axes are joined into one where the matrices shall be `flat`.

    Returns:
        The axes of each operand that are summed before; then for each operand the order of its other axes
        and the shape of the matrix; then the shape and the order that make the result of the product.
    """
    parsed = _parsed(equation, (len(a), len(b)))
    first, second = parsed.terms
    size = {label: 1 for label in first + second}
    for label, count in zip(first + second, (*a, *b), strict=True):
        size[label] = max(size[label], count)
    sums = tuple(
        tuple(
            axis
            for axis, (label, count) in enumerate(zip(term, shape, strict=True))
            if (label not in other + parsed.result) or count != size[label]
        )
        for term, shape, other in ((first, a, second), (second, b, first))
    )
    left, right = (
        "".join(label for axis, label in enumerate(term) if axis not in summed)
        for term, summed in zip((first, second), sums, strict=True)
    )
    shared = [label for label in left if label in right and label in parsed.result]
    depth = [label for label in left if label in right and label not in parsed.result]
    rows = [label for label in left if label not in right]
    columns = [label for label in right if label not in left]

    def sizes(labels: Sequence[str]) -> tuple[int, ...]:
        return tuple(size[label] for label in labels)

    kept = (math.prod(sizes(rows)),) if flat else sizes(rows)
    inner, width = math.prod(sizes(depth)), math.prod(sizes(columns))
    ordered = [*shared, *rows, *columns]
    return (
        *sums,
        tuple(left.index(label) for label in (*shared, *rows, *depth)),
        (*sizes(shared), *kept, inner),
        tuple(right.index(label) for label in (*shared, *depth, *columns)),
        (*sizes(shared), inner, width),
        sizes(ordered),
        tuple(ordered.index(label) for label in parsed.result),
    )


def einsum_shares(equation: str, ranks: Ints) -> bool:
    """Tell whether two operands have an axis in common that the result has too."""
    first, second = _parsed(equation, ranks).terms
    return bool(set(first) & set(second) & set(_parsed(equation, ranks).result))


def einsum_swapped(equation: str, ranks: Ints) -> str:
    """Return the equation with its two operands exchanged."""
    parsed = _parsed(equation, ranks)
    return _Equation(parsed.terms[::-1], parsed.result).text()


def einsum_first(equation: str, ranks: Ints) -> str:
    """Return the equation of the first two operands, with all that the others or the result still read."""
    parsed = _parsed(equation, ranks)
    return _Equation(parsed.terms[:2], _between(parsed)).text()


def einsum_rest(equation: str, ranks: Ints) -> str:
    """Return the equation of what `einsum_first` gives and the other operands."""
    parsed = _parsed(equation, ranks)
    return _Equation((_between(parsed), *parsed.terms[2:]), parsed.result).text()


def _between(parsed: _Equation) -> str:
    later = "".join(parsed.terms[2:]) + parsed.result
    return "".join(dict.fromkeys(label for label in "".join(parsed.terms[:2]) if label in later))


def _parsed(equation: str, ranks: Ints) -> _Equation:
    """Return the terms with a letter for each axis; Refused where an operand is read along a diagonal."""
    text = equation.replace(" ", "")
    left, arrow, result = text.partition("->")
    terms = left.split(",")
    free = [letter for letter in _LETTERS if letter not in text]
    counts = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    most = max([count for term, count in zip(terms, counts, strict=True) if "..." in term], default=0)
    dots = "".join(free[:most])
    terms = [term.replace("...", dots[most - count :]) for term, count in zip(terms, counts, strict=True)]
    if any(len(set(term)) < len(term) for term in terms):
        raise Refused("an operand is read along its diagonal")
    if not arrow:
        named = "".join(terms)
        result = dots + "".join(sorted(x for x in set(named) if named.count(x) == 1 and x not in dots))
    return _Equation(tuple(terms), result.replace("...", dots))
