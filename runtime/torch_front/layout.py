"""Moving elements on the way: reshapes, transposes, slices and joins that handlers of all families need.

Each function returns a value that may be the given one, if nothing is to be moved, or a constant, if one was
given; else it adds the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from caffeforge.generated import hub
from caffeforge.runtime import array
from caffeforge.runtime.graph import Value, constant
from caffeforge.runtime.symbol import Dim, Symbol
from caffeforge.runtime.torch_front.call import Call

BEHIND: Final = 2**63 - 1  # behind the end of every axis


def reshaped(call: Call, x: Value, dims: Sequence[Dim], kept: int | None = None) -> Value:
    """Return `x` in shape `dims`.

    Leading dimensions that stay equal are copied, so that the batch stays free; of the first `kept` at most,
    if that is given: an axis of size one that is new in front of the batch is not the batch. So is every
    symbol that stays in its place; of the other symbols one can be left to ONNX, more are computed.
    """
    dims = tuple(dims)
    if dims == x.dims:
        return x
    if x.data is not None:
        return constant("", array.reshape(x.data, call.numbers(dims)))
    if 0 in dims:
        raise call.error("reshapes a tensor without elements")
    limit = min(len(dims) if kept is None else kept, x.rank, len(dims))
    copied = 0
    while copied < limit and x.dims[copied] == dims[copied]:
        copied += 1
    rest = [
        0 if isinstance(dim, Symbol) and dim in x.dims[i : i + 1] else dim for i, dim in _from(dims, copied)
    ]
    symbols = [dim for dim in rest if isinstance(dim, Symbol)]
    if len(symbols) > 1:
        # The longest expression is left to ONNX.
        left = max(symbols, key=lambda dim: (dim not in x.dims, len(dim.name)))
        first = rest.index(left)
        computed = (0,) * copied + (*rest[:first], -1, *rest[first + 1 :])
        return call.helper(hub.Reshape(), x, call.shape_value(computed, near=x), dims=dims, dtype=x.dtype)
    shape = (0,) * copied + tuple(-1 if isinstance(dim, Symbol) else dim for dim in rest)
    return call.helper(hub.Reshape(shape=shape), x, dims=dims, dtype=x.dtype)


def _from(dims: Sequence[Dim], start: int) -> list[tuple[int, Dim]]:
    return list(enumerate(dims))[start:]


def unsqueezed(call: Call, x: Value, axis: int) -> Value:
    """Return `x` with a new axis of size one at `axis`."""
    return reshaped(call, x, (*x.dims[:axis], 1, *x.dims[axis:]), kept=axis)


def squeezed(call: Call, x: Value, axis: int) -> Value:
    """Return `x` without its axis `axis`, which is of size one."""
    return reshaped(call, x, (*x.dims[:axis], *x.dims[axis + 1 :]), kept=axis)


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


def sliced(call: Call, x: Value, axis: int, start: Dim, end: Dim, step: int = 1) -> Value:
    """Return ``x[start:end:step]`` along `axis`; start and end lie within the axis, the step is positive."""
    if (start, end, step) == (0, x.dims[axis], 1):
        return x
    count: Dim = end - start + (step - 1)
    count = count // step if step > 1 else count
    return slice_of_size(call, x, axis, (start, end, step), count)


def slice_of_size(call: Call, x: Value, axis: int, places: tuple[Dim, Dim | None, int], size: Dim) -> Value:
    """Return a slice by start, end (None is the end of the axis) and a positive step, which has `size`.

    Numbers below zero count from the end, and what lies outside is cut, as in Python and in ONNX.
    """
    start, end, step = places
    end = BEHIND if end is None else end
    computed = [call.shape_value((d,)) if isinstance(d, Symbol) else None for d in (start, end)]
    op = hub.Slice(
        starts=(start,) if isinstance(start, int) else None,
        ends=(end,) if isinstance(end, int) else None,
        axes=(axis,),
        steps=(step,),
    )
    dims = (*x.dims[:axis], size, *x.dims[axis + 1 :])
    return call.helper(op, x, *computed, dims=dims, dtype=x.dtype)


def split(call: Call, x: Value, axis: int, sizes: Sequence[Dim]) -> list[Value]:
    """Return the pieces of `x` along `axis`, of the given sizes, which add up to the axis's."""
    if len(sizes) == 1:
        return [x]
    results = [(x.dtype, (*x.dims[:axis], size, *x.dims[axis + 1 :])) for size in sizes]
    if any(isinstance(size, Symbol) for size in sizes):
        return call.helper_of_many(hub.Split(axis=axis), x, call.shape_value(sizes), results=results)
    return call.helper_of_many(hub.Split(axis=axis, split=call.numbers(sizes)), x, results=results)


def joined(call: Call, parts: Sequence[Value], axis: int) -> Value:
    """Return `parts`, which are of one element type, one after the other along `axis`."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    size: Dim = sum(part.dims[axis] for part in parts)
    dims = (*first.dims[:axis], size, *first.dims[axis + 1 :])
    return call.helper(hub.Concat(axis=axis), *parts, dims=dims, dtype=first.dtype)


def expanded(call: Call, x: Value, dims: Sequence[Dim]) -> Value:
    """Return `x` spread over `dims`, to which it broadcasts."""
    dims = tuple(dims)
    if dims == x.dims:
        return x
    if [dim for dim in dims if dim != 1] == [
        dim for dim in x.dims if dim != 1
    ]:  # only axes of size one are new
        return reshaped(call, x, dims, kept=0)
    own = (1,) * (len(dims) - x.rank) + x.dims
    # A symbol that stays is left as it is by a one.
    shape = [1 if isinstance(dim, Symbol) and dim == old else dim for dim, old in zip(dims, own, strict=True)]
    if any(isinstance(dim, Symbol) for dim in shape):
        return call.helper(hub.Expand(), x, call.shape_value(dims, near=x), dims=dims, dtype=x.dtype)
    return call.helper(hub.Expand(shape=call.numbers(shape)), x, dims=dims, dtype=x.dtype)


def gathered(call: Call, x: Value, indices: Value, axis: int) -> Value:
    """Return the elements of `x` at `indices` along `axis`; the indices' axes stand where `axis` stood."""
    dims = (*x.dims[:axis], *indices.dims, *x.dims[axis + 1 :])
    return call.helper(hub.Gather(axis=axis), x, indices, dims=dims, dtype=x.dtype)
