"""Axes: which one is meant, how they are permuted, cut, padded and reshaped."""

from __future__ import annotations

import math
from collections.abc import Sequence

from caffeforge.runtime.array import Array
from caffeforge.runtime.graph import Dim, Value
from caffeforge.runtime.lib.numbers import ones
from caffeforge.runtime.lib.weights import whole_numbers
from caffeforge.runtime.permutation import after, first_of, real_axes, reduced, single
from caffeforge.runtime.refusal import Refused

Ints = Sequence[int]
Const = Value | Array


def axis_of(axis: int, rank: int) -> int:
    """Return an axis counted from the front; Refused if it lies outside the rank."""
    if not -rank <= axis < rank:
        raise Refused(f"axis {axis} lies outside rank {rank}")
    return axis % rank


def normal_axes(axes: Ints | None, rank: int) -> tuple[int, ...]:
    """Return axes counted from the front, rising; None means all."""
    return tuple(range(rank)) if axes is None else tuple(sorted(axis_of(axis, rank) for axis in axes))


def all_axes(order: Ints, rank: int) -> tuple[int, ...]:
    """Return an order of axes, and behind it those that it leaves out; Refused if one is named twice."""
    if len(set(order)) < len(order):
        raise Refused("an axis stands twice in the order")
    return (*order, *(axis for axis in range(rank) if axis not in order))


def tiled_axis(repeats: Ints) -> int:
    """Return the first axis that is repeated, 0 if there is none."""
    return next((axis for axis, count in enumerate(repeats) if count != 1), 0)


def free_batch(shape: Ints, free: bool = True) -> tuple[int, ...]:
    """Return `shape` with -1 for its first size, the batch, which Reshape then finds; `free` says so."""
    return (-1, *shape[1:]) if free and shape else tuple(shape)


def reshaped(old: Ints, new: Ints) -> tuple[int, ...]:
    """Return the shape with which Reshape makes `new` of `old`: 0 for the batch, where both begin with it."""
    return (0, *new[1:]) if old and new and old[0] == new[0] else tuple(new)


def open_batch(data: Value, shape: Ints) -> tuple[int, ...]:
    """Return a new shape for `data` with its first size left open: the batch may be another later.

    The first axis is the outermost. 0 copies it where the new shape begins with the same size, -1 finds it
    elsewhere: where the batch is joined with other axes, or they are parted again.
    """
    first = data.dims[0] if data.dims else 0
    if not shape or shape[0] <= 0 or not isinstance(first, int):
        return tuple(shape)
    if shape[0] == first:
        return (0, *shape[1:])
    return tuple(shape) if -1 in shape else (-1, *shape[1:])


def moves_nothing(shape: Ints, perm: Ints) -> bool:
    """Tell whether a permutation of axes only moves axes of size 1."""
    return reduced(shape, perm) == tuple(range(len(real_axes(shape, perm))))


def block_swap(shape: Ints, perm: Ints) -> tuple[int, ...]:
    """Return (before, first, second, behind) if `perm` exchanges two neighbouring blocks of axes, else ().

    Each is the product of the block's sizes; before is -1 if it holds the batch, the first axis.
    """
    found = single([shape[axis] for axis in real_axes(shape, perm)], reduced(shape, perm))
    if found is None:
        return ()
    return (-1 if perm[0] == 0 else found.before, found.first, found.second, found.behind)


def real_shape(shape: Ints, perm: Ints) -> tuple[int, ...]:
    """Return the sizes of the axes that a permutation cannot ignore; 0 for the batch that stays first."""
    sizes = tuple(shape[axis] for axis in real_axes(shape, perm))
    return (0, *sizes[1:]) if perm[0] == 0 else sizes


def first_swap(shape: Ints, perm: Ints) -> tuple[int, ...]:
    """Return the first of the fewest exchanges of blocks that make up `perm`, for real_shape."""
    return first_of(reduced(shape, perm))


def other_swaps(shape: Ints, perm: Ints) -> tuple[int, ...]:
    """Return the permutation that is left of `perm` after first_swap."""
    return after(first_of(reduced(shape, perm)), reduced(shape, perm))


def reduced_axes(axes: Ints | None, rank: int, keep_all: int) -> tuple[int, ...]:
    """Return the axes that an ONNX reduction takes away, rising; no axes mean all, or none if `keep_all`."""
    return normal_axes(axes or (None if not keep_all else ()), rank)


def steps_of(starts: Ints, steps: Ints | None) -> tuple[int, ...]:
    """Return the steps of an ONNX Slice, which are 1 where it has none."""
    return ones(len(starts)) if steps is None else tuple(steps)


def slice_range(size: int, start: int, end: int, step: int) -> tuple[int, ...]:
    """Return the places along an axis of `size` that an ONNX Slice takes; Refused if there are none."""
    low, high = (-1, size - 1) if step < 0 else (0, size)
    begin, stop = (min(max(at + size if at < 0 else at, low), high) for at in (start, end))
    if step < 0 and end < -size:
        stop = -1
    places = tuple(range(begin, stop, step))
    if not places:
        raise Refused("an axis is cut to nothing")
    return places


def pad_pairs(pads: Ints, axes: Ints | None, rank: int) -> tuple[tuple[int, int], ...]:
    """Return (begin, end) for each of `rank` axes from ONNX's pads, which list all begins, then all ends."""
    given = normal_axes(None, rank) if axes is None else tuple(axis_of(axis, rank) for axis in axes)
    pairs = dict(zip(given, zip(pads[: len(given)], pads[len(given) :], strict=True), strict=True))
    return tuple(pairs.get(axis, (0, 0)) for axis in range(rank))


def padded_axis(pairs: Sequence[tuple[int, int]]) -> int:
    """Return the first axis that is padded, -1 if there is none."""
    return next((axis for axis, pair in enumerate(pairs) if pair != (0, 0)), -1)


def pad_places(mode: str, size: int, pair: tuple[int, int]) -> tuple[int, ...]:
    """Return which place of an axis each place of the padded axis takes, by reflect, edge or wrap."""
    begin, end = pair
    if mode == "reflect" and max(begin, end) >= size:
        raise Refused("reflected padding is as long as the axis")
    places = range(-begin, size + end)
    if mode == "edge":
        return tuple(min(max(place, 0), size - 1) for place in places)
    if mode == "wrap":
        return tuple(place % size for place in places)
    return tuple(size - 1 - abs(size - 1 - abs(place)) for place in places)


def slice_axes(axes: Ints | None, count: int) -> tuple[int, ...]:
    """Return the axes of an ONNX Slice, which are the first ones where it names none."""
    return tuple(range(count)) if axes is None else tuple(axes)


def steps_along(axes: Ints, steps: Ints, rank: int) -> tuple[int, ...]:
    """Return the step along each of `rank` axes, 1 along those that are not named."""
    named = {axis_of(axis, rank): step for axis, step in zip(axes, steps, strict=True)}
    return tuple(named.get(axis, 1) for axis in range(rank))


def first_step(steps: Ints) -> int:
    """Return the index of the first step that is not 1, 0 if there is none."""
    return next((index for index, step in enumerate(steps) if step != 1), 0)


def slice_cuts(
    shape: Ints, starts: Ints | None, ends: Ints | None, axes: Ints | None
) -> tuple[tuple[int, int, int], ...]:
    """Return (axis, begin, end) for each axis of `shape` that an ONNX Slice of step 1 really cuts."""
    cuts = []
    for index, (start, end) in enumerate(zip(starts or (), ends or (), strict=True)):
        axis = axis_of(axes[index] if axes is not None else index, len(shape))
        size = shape[axis]
        begin, stop = (min(max(at + size if at < 0 else at, 0), size) for at in (start, end))
        if stop <= begin:
            raise Refused(f"axis {axis} is cut to nothing")
        if (begin, stop) != (0, size):
            cuts.append((axis, begin, stop))
    return tuple(cuts)


def caffe_reshape(data: Value, dims: Ints, axis: int, num_axes: int) -> tuple[int, ...]:
    """Return what Caffe's Reshape makes of a blob's shape: `dims` replace `num_axes` axes from `axis` on.

    A 0 in `dims` keeps the axis at its place, one -1 takes what is left; `num_axes` -1 means all that follow.
    Where a size is known only when the net runs, ONNX's 0 and -1 stand in the result.
    """
    shape = data.dims
    start = axis if axis >= 0 else len(shape) + axis + 1
    stop = len(shape) if num_axes == -1 else start + num_axes
    if not 0 <= start <= stop <= len(shape):
        raise Refused(f"axes {start} to {stop} lie outside rank {len(shape)}")
    if 0 in dims[len(shape) - start :] or list(dims).count(-1) > 1:
        raise Refused("a 0 keeps an axis of the bottom, and -1 stands once")
    middle = [shape[start + index] if dim == 0 else dim for index, dim in enumerate(dims)]
    known = math.prod(dim for dim in middle if dim != -1)
    total = math.prod(shape[start:stop])
    if -1 in middle and isinstance(known, int) and isinstance(total, int):
        middle[middle.index(-1)] = total // known if known else 0
    if -1 not in middle and math.prod(middle) != total:
        raise Refused(f"{list(shape)} has no shape {list(dims)} from axis {start}")
    return _with_open_sizes(shape, (*shape[:start], *middle, *shape[stop:]))


def _with_open_sizes(old: Sequence[Dim], new: Sequence[Dim]) -> tuple[int, ...]:
    """Return a new shape as Reshape takes it: 0 for a size that is open and stays at its place, one -1."""
    found: list[int] = []
    for index, dim in enumerate(new):
        if isinstance(dim, int):
            found.append(dim)
        elif index < len(old) and old[index] == dim:
            found.append(0)
        elif -1 not in new and -1 not in found:
            found.append(-1)
        else:
            raise Refused(f"needs a static {dim}: it moves to axis {index} of another shape")
    return tuple(found)


def places_along(source: Const, size: int) -> tuple[int, ...]:
    """Return a constant's integers as places along an axis of `size`, negative ones counted from the end."""
    return tuple(number + size if number < 0 else number for number in whole_numbers(source))
