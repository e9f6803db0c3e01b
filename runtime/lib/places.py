"""Which element each element of a gather or scatter takes, where that is known when a model is converted.

Places count elements, or rows, of an array laid out row after row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caffeforge.runtime.array import Array, Dense, NDArray
from caffeforge.runtime.lib.weights import Const, array
from caffeforge.runtime.refusal import Refused

Ints = Sequence[int]
PIECES = 256  # of one axis, each a blob of its own
WEIGHTS = 2**22  # numbers of a matrix that moves what would be too many pieces


def element_places(shape: Ints, indices: Const, axis: int) -> Array:
    """Return the place in `shape` of each element that ONNX's GatherElements or ScatterElements names."""
    wanted = array(indices).numpy()
    grid: list[NDArray] = list(np.indices(wanted.shape))
    grid[axis] = wanted % shape[axis]
    return Dense(np.ravel_multi_index(tuple(grid), tuple(shape)).reshape(-1).astype(np.int64))


def nd_places(shape: Ints, indices: Const, batch_dims: int) -> Array:
    """Return the place in `shape` of each element that ONNX's GatherND or ScatterND names."""
    wanted = array(indices).numpy()
    count = wanted.shape[-1]
    lead = np.indices(wanted.shape[:-1])[:batch_dims]
    named = [wanted[..., i] % shape[batch_dims + i] for i in range(count)]
    behind = int(np.prod(shape[batch_dims + count :], dtype=np.int64))
    rows = np.ravel_multi_index((*lead, *named), tuple(shape[: batch_dims + count])).reshape(-1, 1)
    return Dense((rows * behind + np.arange(behind)).reshape(-1).astype(np.int64))


def reversed_places(shape: Ints, lengths: Const, batch_axis: int, time_axis: int) -> Array:
    """Return for each row of ONNX's ReverseSequence, over its first two axes, the row that it takes."""
    grid = np.indices(tuple(shape[:2]))
    length = array(lengths).numpy()[grid[batch_axis]]
    time = grid[time_axis]
    grid[time_axis] = np.where(time < length, length - 1 - time, time)
    return Dense(np.ravel_multi_index(tuple(grid), tuple(shape[:2])).reshape(-1).astype(np.int64))


def written_places(size: int, places: Const) -> Array:
    """Return for each of `size` elements where it lies in them and what is written at `places`, joined.

    Of several that are written at one place the last stays.
    """
    taken = np.arange(size)
    at = array(places).numpy()
    taken[at] = size + np.arange(len(at))
    return Dense(taken)


def written_round(size: int, places: Const, index: int) -> Array:
    """Return for each of `size` elements which of those written at `places` is its `index`-th.

    Where there is none, it is the one behind the last: a neutral element.
    """
    at = array(places).numpy()
    taken = np.full(size, len(at), np.int64)
    chosen = _turns(at) == index
    taken[at[chosen]] = np.flatnonzero(chosen)
    return Dense(taken)


def most_written(places: Const) -> int:
    """Return how many elements are written at the place where most are."""
    at = array(places).numpy()
    return int(_turns(at).max(initial=-1)) + 1


def sample_places(places: Const, batch: int, sizes: Ints) -> tuple[int, ...]:
    """Return the places within one item of the batch if they are the same ones in each, else ().

    Args:
        places: as many for each item of the batch.
        batch: how many items there are.
        sizes: how many elements of each of the arrays that are joined belong to one item.
    """
    rows = array(places).numpy().reshape(batch, -1)
    starts = np.cumsum([0, *(size * batch for size in sizes)])
    own = np.cumsum([0, *sizes])
    source = np.searchsorted(starts, rows, side="right") - 1
    within = rows - starts[source]
    per_item = np.asarray(sizes)[source]
    local = within - np.arange(batch)[:, None] * per_item
    if ((local < 0) | (local >= per_item)).any():
        return ()
    local = local + own[source]
    return tuple(local[0].tolist()) if (local == local[:1]).all() else ()


def few_pieces(places: Ints, size: int) -> bool:
    """Tell whether an axis of `size` is well cut into pieces, or mapped by a matrix, to take `places`."""
    steps = np.diff(np.asarray(places))
    return int((steps != 1).sum()) < PIECES or len(places) * size <= WEIGHTS


def steps_from_zero(count: int) -> Array:
    """Return the numbers from 0 on as a float32 constant."""
    return Dense(np.arange(count, dtype=np.float32))


def float_range(start: float, limit: float, step: float) -> Array:
    """Return the float32 numbers from `start` on, each `step` more than the last, before `limit`."""
    if step == 0 or abs(limit - start) / abs(step) >= 2**24:
        raise Refused("a range of more than 16777216 numbers, or one that never ends")
    at, end, by = np.float32(start), np.float32(limit), np.float32(step)
    found = []
    while at < end if by > 0 else at > end:
        found.append(at)
        at += by
    return Dense(np.array(found, np.float32))


def plane_offsets(batch: int, channels: int, plane: int) -> Array:
    """Return (N, C): how many elements lie before each plane of a blob."""
    if batch * channels * plane >= 2**24:
        raise Refused("a float32 does not count this many places")
    return Dense((np.arange(batch * channels) * plane).reshape(batch, channels).astype(np.float32))


def plane_places(height: int, width: int, whole: int) -> Array:
    """Return (height, width): the place of each element in planes that are `whole` wide."""
    if height * whole >= 2**24:
        raise Refused("a float32 does not count this many places")
    return Dense((np.arange(height)[:, None] * whole + np.arange(width)).astype(np.float32))


def _turns(at: NDArray) -> NDArray:
    """Return of each number how many equal ones stand before it."""
    order = np.argsort(at, kind="stable")
    run = at[order]
    begins = np.flatnonzero(np.r_[True, run[1:] != run[:-1]]) if len(run) else np.zeros(0, np.int64)
    turns = np.arange(len(run)) - np.repeat(begins, np.diff(np.r_[begins, len(run)]))
    found = np.empty(len(run), np.int64)
    found[order] = turns
    return found
