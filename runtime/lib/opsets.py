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
    shape: Ints, sizes: Ints, scales: Sequence[float] | None, axes: Ints | None
) -> tuple[float, ...]:
    """Return a scale for each axis that makes `sizes` of `shape`, the empty list if float32 has none.

    Args:
        shape: of what is resized.
        sizes: of the result.
        scales: those that the op has, for `axes`; None where it has sizes.
        axes: None for all.
    """
    rank = len(shape)
    along = range(rank) if axes is None else [axis_of(axis, rank) for axis in axes]
    given = dict(zip(along, scales, strict=True)) if scales is not None else {}
    found = [given.get(axis, sizes[axis] / shape[axis]) for axis in range(rank)]
    pairs = zip(shape, found, strict=True)
    made = [int(np.floor(np.float32(size) * np.float32(scale))) for size, scale in pairs]
    return tuple(found) if made == list(sizes) else ()
