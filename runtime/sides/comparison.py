"""Runs two sides on the same inputs and compares their values by name, their outputs also by position."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.compare import Tolerance
from caffeforge.runtime.errors import UsageError, VerificationError
from caffeforge.runtime.sides.alignment import align
from caffeforge.runtime.sides.side import Side
from caffeforge.runtime.verify import Verification, merge, verify


def compare_sides(
    source: Side,
    target: Side,
    input_sets: Iterable[Mapping[str, NDArray]],
    *,
    per_layer: bool = False,
    accepted: Tolerance | None = None,
) -> Verification:
    """Return how `target` compares with `source`, the worst over all input sets.

    Args:
        source: the reference.
        target: what should compute the same.
        input_sets: arrays by the source's input names.
        per_layer: whether to compare inner values too.
        accepted: the tolerance; None for that of the element types.

    Raises:
        UsageError: the sides do not take the same inputs.
        VerificationError: their outputs differ in number.
    """
    feeds = _paired("inputs", list(source.inputs), list(target.inputs), UsageError)
    outputs = _paired("outputs", list(source.outputs), list(target.outputs), VerificationError)
    inner = list(target.computed) if per_layer else []
    known = {c.value: c for c in source.computed}
    # A value is called as the source calls it, on both sides.
    aligned = align(source, target, outputs)
    renamed = aligned.names
    rows = []
    for c in inner:
        value = renamed.get(c.value, c.value)
        origin = known[value].origin if value in known and known[value].origin.source else c.origin
        rows.append((value, c.layer, c.type, origin))
    found = []
    for inputs in input_sets:
        fed = {feeds[name]: _as(array, target, feeds[name]) for name, array in inputs.items()}
        computed = target.run(fed, inner=per_layer)
        for theirs in outputs.values():
            if theirs not in computed:
                given = ", ".join(computed)
                raise VerificationError(f"{target.title} gives no output {theirs}, it gives {given}")
        result = {renamed.get(name, name): array for name, array in computed.items()}
        reference = source.run(inputs, inner=per_layer)
        found.append(verify(reference, result, rows, list(outputs), accepted))
    return _without_folded(merge(found), aligned.supposed)


def _without_folded(found: Verification, supposed: Collection[str]) -> Verification:
    """Return `found` without values that were lined up without a name and differ, if a later one agrees.

    Exporters fold batch norms into convolutions: then the convolution's module yields another value.
    """
    rows = list(found.rows)
    agrees = bool(found.outputs) and all(row.passed for row in found.outputs)
    for index in reversed(range(len(rows))):
        row = rows[index]
        if agrees and not row.passed and row.value in supposed:
            rows[index] = replace(row, difference=None, passed=True, problem="")
        agrees |= row.passed and row.difference is not None
    return replace(found, rows=tuple(rows))


def _as(array: NDArray, side: Side, name: str) -> NDArray:
    """Return an input in the element type of a side: Caffe knows float32 alone.

    Raises:
        UsageError: the numbers do not survive that.
    """
    wanted = side.inputs[name].dtype
    cast = array.astype(wanted, copy=False)
    if cast.dtype != array.dtype and not (cast.astype(array.dtype) == array).all():
        raise UsageError(f"input {name} holds {array.dtype.name} numbers that are not exact as {wanted}")
    return cast


def _paired(
    what: str, ours: list[str], theirs: list[str], error: type[UsageError] | type[VerificationError]
) -> dict[str, str]:
    """Return for each of our names theirs: the same one, or that at the same place.

    Raises:
        error: they differ in number.
    """
    if set(ours) == set(theirs):
        return {name: name for name in ours}
    if len(ours) != len(theirs):
        raise error(
            f"the source has {len(ours)} {what} ({', '.join(ours)}), "
            f"the target {len(theirs)} ({', '.join(theirs)})"
        )
    return dict(zip(ours, theirs, strict=True))
