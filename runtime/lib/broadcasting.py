"""Broadcasting: where one shape fits into another."""

from __future__ import annotations

from collections.abc import Sequence

from caffeforge.runtime.lib.numbers import ones
from caffeforge.runtime.refusal import Refused

Ints = Sequence[int]


def span_of(shape: Ints, operand: Ints) -> tuple[int, int]:
    """Return the axes of `shape`, from the first to behind the last, along which `operand` varies.

    NumPy's broadcasting aligns the last axes. Refused if `operand` does not broadcast into `shape`.
    """
    aligned = _aligned(shape, operand)
    varying = [axis for axis, size in enumerate(aligned) if size != 1]
    return (varying[0], varying[-1] + 1) if varying else (0, 0)


def run_axis(shape: Ints, operand: Ints) -> int:
    """Return the axis of `shape` at which `operand`, a computed one, stands as a contiguous run, else -1.

    The run begins at the batch, the first axis, if both have it: it may be 1 here and other later.
    """
    start, stop = _run(shape, operand)
    return start if _aligned(shape, operand)[start:stop] == tuple(shape)[start:stop] else -1


def run_shape(shape: Ints, operand: Ints) -> tuple[int, ...]:
    """Return the shape that Reshape gives `operand` for `run_axis`: its run, with 0 for the batch."""
    start, stop = _run(shape, operand)
    sizes = tuple(shape)[start:stop]
    return (0, *sizes[1:]) if sizes and start == 0 and len(operand) == len(shape) else sizes


def without_gaps(shape: Ints, operand: Ints) -> tuple[int, ...]:
    """Return the shape of `operand` with the ones within its run as large as in `shape`."""
    start, stop = _run(shape, operand)
    aligned = _aligned(shape, operand)
    return (aligned[:start] + tuple(shape)[start:stop] + aligned[stop:])[len(shape) - len(operand) :]


def _run(shape: Ints, operand: Ints) -> tuple[int, int]:
    start, stop = span_of(shape, operand)
    if len(operand) == len(shape) and operand and operand[0] == shape[0]:
        return 0, max(stop, 1)
    return start, stop


def _aligned(shape: Ints, operand: Ints) -> tuple[int, ...]:
    aligned = ones(len(shape) - len(operand)) + tuple(operand)
    if len(operand) > len(shape) or any(a not in (1, b) for a, b in zip(aligned, shape, strict=True)):
        raise Refused(f"{list(operand)} does not broadcast into {list(shape)}")
    return aligned


def _without_leading_ones(shape: Ints) -> tuple[int, ...]:
    first = next((index for index, size in enumerate(shape) if size != 1), len(shape))
    return tuple(shape[first:])
