"""One measured quantity with what it is compared with, and a table of many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Result:
    """A quantity, measured several times.

    Attributes:
        unit: of `values` and `reference`.
        values: one for each fresh process.
        reference: what the values are divided by, measured as often; empty if they stand for themselves.
        goal: the largest median, or ratio of medians, that is wanted; None if nothing was set.
        at_least: the goal is the smallest, not the largest.
        note: what else the measurement saw.
    """

    name: str
    unit: str
    values: Sequence[float]
    reference: Sequence[float] = ()
    goal: float | None = None
    at_least: bool = False
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """The ratio of the medians."""
        return median(self.values) / median(self.reference) if self.reference else None

    @property
    def verdict(self) -> str:
        """The goal, and whether it is met."""
        if self.goal is None:
            return ""
        reached = median(self.values) if self.ratio is None else self.ratio
        met = reached >= self.goal if self.at_least else reached <= self.goal
        return f"{'>=' if self.at_least else '<='} {self.goal:g} {'met' if met else 'MISSED'}"

    def json(self) -> dict[str, Any]:
        """Return all that is known as JSON's types."""
        return asdict(self) | {"median": median(self.values), "ratio": self.ratio}


def table(results: Sequence[Result]) -> str:
    """Return the results as lines, the medians with the smallest and largest value."""
    rows = [("measured", "median (min .. max)", "compared with", "ratio", "goal", "note")]
    for result in results:
        ratio = "" if result.ratio is None else f"{result.ratio:.2f}"
        measured, compared = (_text(values, result.unit) for values in (result.values, result.reference))
        rows.append((result.name, measured, compared, ratio, result.verdict, result.note))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _text(values: Sequence[float], unit: str) -> str:
    if not values:
        return ""
    return f"{median(values):.3g} {unit} ({min(values):.3g} .. {max(values):.3g})"
