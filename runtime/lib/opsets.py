"""What rules for older opsets of ONNX need: constants of a given type, and numbers as these want them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caffeforge.runtime.array import Array, Dense, Full
from caffeforge.runtime.graph import Value
from caffeforge.runtime.lib.axes import axis_of
from caffeforge.runtime.lib.weights import array

Ints = Sequence[int]
Const = Value | Array


def filled(shape: Ints, value: float, dtype: str) -> Array:
    """Return an array of `dtype` that is `value` everywhere."""
    return Full(shape, value, dtype)


def numbers(values: Sequence[float], dtype: str) -> Array:
    """Return numbers as a constant list of `dtype`."""
    return Dense(np.array(values, dtype))


def counted_from_front(indices: Const, size: int) -> Array:
    """Return a constant's indices into an axis of `size` without negative ones."""
    given = array(indices).numpy()
    return Dense(np.where(given < 0, given + given.dtype.type(size), given))


def resize_scales(
    data: Value, result: Value, scales: Sequence[float] | None, axes: Ints | None
) -> tuple[float, ...]:
    """Return a scale for each axis that makes `result` of `data`, the empty list if float32 has none.

    Sizes may be open where they stay as they are, or where they are multiplied by a whole number.

    Args:
        data: what is resized.
        result: its sizes are those that are due.
        scales: those that the op has, for `axes`; None where it has sizes.
        axes: None for all.
    """
    along = range(data.rank) if axes is None else [axis_of(axis, data.rank) for axis in axes]
    given = dict(zip(along, scales, strict=True)) if scales is not None else {}
    found = []
    for axis, (size, due) in enumerate(zip(data.dims, result.dims, strict=True)):
        if isinstance(size, int) and isinstance(due, int):
            scale = given.get(axis, due / size)
            fits = int(np.floor(np.float32(size) * np.float32(scale))) == due
        else:
            scale = given.get(axis, 1.0)
            fits = size == due if scale == 1 else axis in given and scale % 1 == 0
        if not fits:
            return ()
        found.append(scale)
    return tuple(found)
