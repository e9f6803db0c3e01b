"""Moving elements on the way: reshapes, transposes, slices and joins that handlers of all families need.

Each function returns a value that may be the given one, if nothing is to be moved, or a constant, if one was
given; else it adds the node.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from caffeforge.generated import hub
from caffeforge.runtime import array
from caffeforge.runtime.graph import Value, constant
from caffeforge.runtime.torch_front.call import Call


def reshaped(call: Call, x: Value, dims: Sequence[int], kept: int | None = None) -> Value:
    """Return `x` in shape `dims`.

    Leading dimensions that stay equal are copied, so that the batch stays free; of the first `kept` at most,
    if that is given: an axis of size one that is new in front of the batch is not the batch.
    """
    dims = tuple(dims)
    if dims == x.dims:
        return x
    if x.data is not None:
        return constant("", array.reshape(x.data, dims))
    if 0 in dims:
        raise call.error("reshapes a tensor without elements")
    limit = min(len(dims) if kept is None else kept, x.rank, len(dims))
    copied = 0
    while copied < limit and x.dims[copied] == dims[copied]:
        copied += 1
    shape = (0,) * copied + dims[copied:]
    return call.helper(hub.Reshape(shape=shape), x, dims=dims, dtype=x.dtype)


def unsqueezed(call: Call, x: Value, axis: int) -> Value:
    """Return `x` with a new axis of size one at `axis`."""
    return reshaped(call, x, (*x.shape[:axis], 1, *x.shape[axis:]), kept=axis)


def squeezed(call: Call, x: Value, axis: int) -> Value:
    """Return `x` without its axis `axis`, which is of size one."""
    return reshaped(call, x, (*x.shape[:axis], *x.shape[axis + 1 :]), kept=axis)


def transposed(call: Call, x: Value, perm: Sequence[int]) -> Value:
    """Return `x` with its axes in the order `perm`."""
    perm = tuple(perm)
    if perm == tuple(range(x.rank)):
        return x
    if x.data is not None:
        return constant("", array.transpose(x.data, perm))
    return call.helper(hub.Transpose(perm=perm), x, dims=[x.dims[axis] for axis in perm], dtype=x.dtype)


def swapped(call: Call, x: Value, first: int, second: int) -> Value:
    """Return `x` with two axes exchanged."""
    perm = list(range(x.rank))  # which negative axes index too
    perm[first], perm[second] = perm[second], perm[first]
    return transposed(call, x, perm)


def sliced(call: Call, x: Value, axis: int, start: int, end: int, step: int = 1) -> Value:
    """Return ``x[start:end:step]`` along `axis`; start and end lie within the axis, the step is positive."""
    size = x.shape[axis]
    if (start, end, step) == (0, size, 1):
        return x
    dims = (*x.dims[:axis], len(range(start, end, step)), *x.dims[axis + 1 :])
    op = hub.Slice(starts=(start,), ends=(end,), axes=(axis,), steps=(step,))
    return call.helper(op, x, dims=dims, dtype=x.dtype)


def split(call: Call, x: Value, axis: int, sizes: Sequence[int]) -> list[Value]:
    """Return the pieces of `x` along `axis`, of the given sizes, which add up to the axis's."""
    if len(sizes) == 1:
        return [x]
    results = [(x.dtype, (*x.dims[:axis], size, *x.dims[axis + 1 :])) for size in sizes]
    return call.helper_of_many(hub.Split(axis=axis, split=tuple(sizes)), x, results=results)


def joined(call: Call, parts: Sequence[Value], axis: int) -> Value:
    """Return `parts`, which are of one element type, one after the other along `axis`."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    size = sum(part.shape[axis] for part in parts)
    dims = (*first.dims[:axis], size, *first.dims[axis + 1 :])
    return call.helper(hub.Concat(axis=axis), *parts, dims=dims, dtype=first.dtype)


def expanded(call: Call, x: Value, dims: Sequence[int]) -> Value:
    """Return `x` spread over `dims`, to which it broadcasts."""
    dims = tuple(dims)
    if dims == x.dims:
        return x
    if math.prod(dims) == math.prod(x.shape[:]):  # only axes of size one are new
        return reshaped(call, x, dims, kept=0)
    return call.helper(hub.Expand(shape=dims), x, dims=dims, dtype=x.dtype)


def gathered(call: Call, x: Value, indices: Value, axis: int) -> Value:
    """Return the elements of `x` at `indices` along `axis`; the indices' axes stand where `axis` stood."""
    dims = (*x.dims[:axis], *indices.dims, *x.dims[axis + 1 :])
    return call.helper(hub.Gather(axis=axis), x, indices, dims=dims, dtype=x.dtype)
