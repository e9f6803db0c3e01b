"""Compares a source with its result, value by value and output by output, and says what that proves.

A reference that is the same at every position, or for every input, agrees with much that is wrong: such
an output makes a verification inconclusive instead of passed in silence. To know about inputs, verify
with several and `merge`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any, Final

import numpy as np

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.compare import Difference, Tolerance, compare, tolerance
from caffeforge.runtime.errors import UsageError, VerificationError
from caffeforge.runtime.graph import Origin

_SAMPLES: Final = 1024  # elements of a reference that are kept, to tell whether it depends on the input
_SAME: Final = 1e-6  # part of the scale

SAME_EVERYWHERE: Final = "is the same at every position"
SAME_ALWAYS: Final = "is the same for every input"


@dataclass(frozen=True)
class Row:
    """One compared value.

    Attributes:
        layer: name of the layer or node that computes it; for an output that no layer computes, its name.
        type: the layer's type or the op.
        module: path of the source's module, empty for the model itself.
        source: file:line of the user's code, or empty.
        value: name of the value on both sides.
        difference: None if the value exists on one side only (a layer's inner result) or the shapes differ.
        passed: whether the difference is within the tolerance; true where nothing was compared.
        problem: why nothing could be measured although both sides have the value; then `passed` is false.
        doubt: what makes the comparison no proof; empty if it is one.
        samples: evenly spaced elements of the reference.
    """

    layer: str
    type: str
    module: str
    source: str
    value: str
    difference: Difference | None
    passed: bool
    problem: str = ""
    doubt: str = ""
    samples: tuple[float, ...] = field(default=(), repr=False, compare=False)

    @property
    def relative(self) -> float:
        """max_abs as a part of the reference's scale; infinite if nothing could be measured."""
        return self.difference.relative if self.difference else math.inf

    def __str__(self) -> str:
        origin = Origin(self.module, source=self.source)
        name = self.layer if not self.type else f"{self.layer} ({self.type})"
        return f"{name} from {origin}" if self.module or self.source else name


@dataclass(frozen=True)
class Verification:
    """What was compared.

    Attributes:
        rows: layers in the graph's order.
        outputs: the model's outputs.
        inputs: how many input sets were compared; the rows hold the worst of them.
    """

    rows: tuple[Row, ...]
    outputs: tuple[Row, ...]
    inputs: int = 1

    @property
    def passed(self) -> bool:
        """Whether every layer and output is within its tolerance."""
        return self.first_divergence is None

    @property
    def conclusive(self) -> bool:
        """Whether every output's reference varies, so that a pass is evidence."""
        return bool(self.outputs) and not any(row.doubt for row in self.outputs)

    @property
    def first_divergence(self) -> Row | None:
        """The first layer, in order, that is not within its tolerance; else the first such output."""
        return next((row for row in (*self.rows, *self.outputs) if not row.passed), None)

    def summary(self) -> str:
        """Return the result as one sentence."""
        first = self.first_divergence
        if first is not None:
            outputs = [row.value for row in self.outputs if not row.passed]
            effect = f"output {', '.join(outputs)} is wrong" if outputs else "the outputs agree all the same"
            return f"{first} is the first that diverges: {_measure(first)}; {effect}"
        layers = [row for row in self.rows if row.difference is not None]
        worst = max((*self.outputs, *layers), key=lambda row: row.relative, default=None)
        if worst is None:
            return "nothing was compared"
        text = (
            f"{_count(len(self.outputs), 'output')} and {_count(len(layers), 'layer')} agree on "
            f"{_count(self.inputs, 'input')}, the worst is {worst.layer}: {_measure(worst)}"
        )
        if self.conclusive:
            return text
        doubts = [f"output {row.value} {row.doubt}" for row in self.outputs if row.doubt]
        return f"{text}; this proves little, as {' and '.join(doubts) or 'no output was compared'}"

    def document(self) -> dict[str, Any]:
        """Return all that was found as JSON holds it; what is infinite or not a number is null."""
        first = self.first_divergence
        return {
            "passed": self.passed,
            "conclusive": self.conclusive,
            "summary": self.summary(),
            "inputs": self.inputs,
            "first_divergence": first and first.layer,
            "layers": [_document(row) for row in self.rows],
            "outputs": [_document(row) for row in self.outputs],
        }

    def table(self) -> str:
        """Return all rows as text with aligned columns, outputs last; source files without their folders."""
        head = ("layer", "type", "module", "source", "max abs", "max rel", "cosine", "SNR dB", "")
        lines = [head, *map(_cells, self.rows)]
        if self.outputs:
            lines += [("output",) + ("",) * (len(head) - 1), *(_cells(row) for row in self.outputs)]
        widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
        return "\n".join(_aligned(line, widths) for line in lines)


def verify(
    reference: Mapping[str, NDArray],
    result: Mapping[str, NDArray],
    rows: Iterable[tuple[str, str, str, Origin]],
    outputs: Iterable[str],
    accepted: Tolerance | None = None,
) -> Verification:
    """Compare `result` with `reference`, both arrays by value name.

    Args:
        reference: what the source computes.
        result: what the written files compute on the same input.
        rows: value name, layer name, layer type and origin of each layer, in order.
        outputs: names of the values that are the model's outputs.
        accepted: the tolerance for all values; None for that of their element types.

    Raises:
        VerificationError: an output is missing on one side.
    """
    listed = list(rows)
    named = {value: (layer, kind, origin) for value, layer, kind, origin in listed}
    compared_outputs = []
    for name in outputs:
        for side, arrays in (("the source", reference), ("the result", result)):
            if name not in arrays:
                raise VerificationError(f"{side} has no output {name}, it has {', '.join(arrays) or 'none'}")
        layer, kind, origin = named.get(name, (name, "", Origin()))
        compared_outputs.append(_row(name, layer, kind, origin, reference, result, accepted))
    return Verification(
        tuple(_row(*row, reference, result, accepted) for row in listed), tuple(compared_outputs)
    )


def merge(verifications: Sequence[Verification]) -> Verification:
    """Return one verification of several inputs: the worst of each row.

    Rows whose reference is the same for all inputs are in doubt; one whose reference varies with the
    position for any input is not in doubt for that reason.

    Raises:
        UsageError: there is none, or they are not of the same layers and outputs.
    """
    if not verifications:
        raise UsageError("there is no verification to merge")
    keys = {tuple((row.layer, row.value) for row in (*v.rows, *v.outputs)) for v in verifications}
    if len(keys) != 1:
        raise UsageError("verifications of different nets cannot be merged")
    return Verification(
        tuple(_merge_rows(rows) for rows in zip(*(v.rows for v in verifications), strict=True)),
        tuple(_merge_rows(rows) for rows in zip(*(v.outputs for v in verifications), strict=True)),
        sum(v.inputs for v in verifications),
    )


def _row(
    value: str,
    layer: str,
    kind: str,
    origin: Origin,
    reference: Mapping[str, NDArray],
    result: Mapping[str, NDArray],
    accepted: Tolerance | None,
) -> Row:
    row = Row(layer, kind, origin.module, origin.source, value, None, passed=True)
    if value not in reference or value not in result:
        return row
    expected, given = reference[value], result[value]
    if expected.shape != given.shape:
        return replace(
            row, passed=False, problem=f"shape {list(given.shape)} instead of {list(expected.shape)}"
        )
    difference = compare(expected, given)
    limit = accepted or tolerance(expected.dtype.name, given.dtype.name)
    return replace(
        row,
        difference=difference,
        passed=limit.accepts(difference),
        doubt="" if difference.varies else SAME_EVERYWHERE,
        samples=_samples(expected),
    )


def _samples(array: NDArray) -> tuple[float, ...]:
    step = max(1, -(-array.size // _SAMPLES))
    return tuple(array.reshape(-1)[::step].astype(np.float64).tolist())


def _merge_rows(rows: Sequence[Row]) -> Row:
    worst = min(rows, key=lambda row: (row.passed, row.difference is None and not row.problem, -row.relative))
    doubt = worst.doubt if all(row.doubt for row in rows) else ""
    if not doubt and _same_always(rows):
        doubt = SAME_ALWAYS
    return replace(worst, doubt=doubt)


def _same_always(rows: Sequence[Row]) -> bool:
    """Tell whether several references were all the same; if their sizes differ they are not."""
    first = rows[0]
    if len(rows) < 2 or first.difference is None or any(len(r.samples) != len(first.samples) for r in rows):
        return False
    samples = np.array([row.samples for row in rows])
    return bool(np.allclose(samples, samples[0], rtol=0, atol=_SAME * first.difference.scale, equal_nan=True))


def _document(row: Row) -> dict[str, Any]:
    d = row.difference
    measured = {} if d is None else {"max_abs": d.max_abs, "max_rel": d.max_rel, "scale": d.scale}
    if d is not None:
        measured |= {"cosine": d.cosine, "snr_db": d.snr_db}
    return {
        "layer": row.layer,
        "type": row.type,
        "module": row.module,
        "source": row.source,
        "value": row.value,
        "passed": row.passed,
        "problem": row.problem,
        "doubt": row.doubt,
        **{name: number if math.isfinite(number) else None for name, number in measured.items()},
    }


def _measure(row: Row) -> str:
    if row.problem:
        return row.problem
    if row.difference is None:
        return "not compared"
    return f"max abs {row.difference.max_abs:.2e} at a scale of {row.difference.scale:.2e}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _cells(row: Row) -> tuple[str, ...]:
    names = (row.layer, row.type, row.module, PurePath(row.source).name)
    if row.difference is None:
        return (*names, "", "", "", "", f"<< {row.problem}" if row.problem else "not compared")
    d = row.difference
    mark = "" if row.passed else "<< differs"
    note = "; ".join(filter(None, (mark, row.doubt)))
    return (*names, f"{d.max_abs:.2e}", f"{d.max_rel:.2e}", f"{d.cosine:.7f}", f"{d.snr_db:.1f}", note)


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return one line: names to the left, numbers to the right."""
    names = [cell.ljust(width) for cell, width in zip(cells[:4], widths[:4], strict=True)]
    numbers = [cell.rjust(width) for cell, width in zip(cells[4:8], widths[4:8], strict=True)]
    return "  ".join([*names, *numbers, cells[8]]).rstrip()
