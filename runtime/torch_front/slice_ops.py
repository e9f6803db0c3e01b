"""Operators that take parts of a tensor, or put a part back: slices, splits, windows."""

from __future__ import annotations

import numpy as np
import torch

from caffeforge.generated import hub
from caffeforge.runtime.array import Dense
from caffeforge.runtime.graph import Value, constant
from caffeforge.runtime.torch_front.call import Call
from caffeforge.runtime.torch_front.layout import (
    expanded,
    gathered,
    joined,
    reshaped,
    sliced,
    split,
    squeezed,
    transposed,
    unsqueezed,
)
from caffeforge.runtime.torch_front.registry import Result, torch_op

aten = torch.ops.aten


@torch_op(aten.slice.Tensor, aten.slice_copy.Tensor)
def slice_(call: Call) -> Value:
    """Become a slice by numbers within the tensor, or nothing if it takes all.

    aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1)
    -> Tensor(a)
    aten::slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1)
    -> Tensor
    """
    x = call.value("self")
    axis, start, end, step = _range(call, x)
    return x if call.dims == x.dims else sliced(call, x, axis, start, end, step)


@torch_op(aten.narrow.default, aten.narrow_copy.default)
def narrow(call: Call) -> Value:
    """Become a slice.

    aten::narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)
    aten::narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor
    """
    x = call.value("self")
    axis, start = call.axis("dim", x.rank), call.argument("start")
    start += x.shape[axis] if start < 0 else 0
    return sliced(call, x, axis, start, start + call.argument("length"))


@torch_op(aten.select.int)
def select(call: Call) -> Value:
    """Slice one element of an axis and take the axis away.

    aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)
    """
    x = call.value("self")
    axis = call.axis("dim", x.rank)
    index = call.argument("index") % x.shape[axis]
    return squeezed(call, sliced(call, x, axis, index, index + 1), axis)


@torch_op(aten.slice_scatter.default)
def slice_scatter(call: Call) -> Value:
    """Join what lies before the slice, the new part, and what lies behind it.

    aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None,
    SymInt step=1) -> Tensor
    """
    x, part = call.operand("self"), call.operand("src")
    axis, start, end, step = _range(call, x)
    taken = list(range(start, end, step))
    dims = (*x.shape[:axis], len(taken), *x.shape[axis + 1 :])
    if not taken:
        return x
    part = expanded(call, part, dims)
    if dims == x.dims:
        return part
    if step == 1:
        return _replaced(call, x, part, axis, start)
    # Every element of the axis comes from one of the two, one behind the other.
    size = x.shape[axis]
    order = [size + taken.index(i) if i in taken else i for i in range(size)]
    both = joined(call, [x, part], axis)
    return gathered(call, both, _indices(order), axis)


@torch_op(aten.select_scatter.default)
def select_scatter(call: Call) -> Value:
    """Join what lies before the element, the new one, and what lies behind it.

    aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor
    """
    x, part = call.operand("self"), call.operand("src")
    axis = call.axis("dim", x.rank)
    part = unsqueezed(call, expanded(call, part, (*x.shape[:axis], *x.shape[axis + 1 :])), axis)
    return _replaced(call, x, part, axis, call.argument("index") % x.shape[axis])


@torch_op(
    aten.chunk.default,
    aten.split.Tensor,
    aten.split.sizes,
    aten.split_with_sizes.default,
    aten.tensor_split.sections,
    aten.tensor_split.indices,
    aten.unsafe_split.Tensor,
    aten.unsafe_chunk.default,
)
def splits(call: Call) -> Result:
    """Become a split by sizes, which PyTorch has computed; pieces without elements are left out.

    aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]
    aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]
    aten::split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]
    aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]
    aten::tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]
    aten::tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]
    aten::unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]
    aten::unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]
    """
    x = call.value("self")
    axis = call.axis("dim", x.rank)
    sizes = [dims[axis] for dims in call.result_dims]
    if sum(sizes) != x.shape[axis]:
        raise call.error("takes pieces that overlap", hint="give indices in rising order")
    pieces = iter(split(call, x, axis, [size for size in sizes if size]))
    return [
        next(pieces) if size else call.full(dims, 0, x.dtype)
        for size, dims in zip(sizes, call.result_dims, strict=True)
    ]


@torch_op(aten.unbind.int, aten.unbind_copy.int)
def unbind(call: Call) -> Result:
    """Split into pieces of size one and take their axis away.

    aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]
    aten::unbind_copy.int(Tensor self, int dim=0) -> Tensor[]
    """
    x = call.value("self")
    axis = call.axis("dim", x.rank)
    return [squeezed(call, piece, axis) for piece in split(call, x, axis, [1] * x.shape[axis])]


@torch_op(aten.unfold.default)
def unfold(call: Call) -> Value:
    """Gather the windows of an axis; their elements become the last axis.

    aten::unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)
    """
    x, size, step = call.value("self"), call.argument("size"), call.argument("step")
    if not x.rank:
        return reshaped(call, x, call.dims)
    axis = call.axis("dimension", x.rank)
    count = call.dims[axis]
    places = np.arange(count)[:, None] * step + np.arange(size)
    windows = gathered(call, x, constant("", Dense(places.astype(np.int64))), axis)
    order = [i for i in range(windows.rank) if i != axis + 1]
    return transposed(call, windows, [*order, axis + 1])


@torch_op(aten.diagonal.default)
def diagonal(call: Call) -> Value:
    """Gather the diagonal from the two axes written as one; it becomes the last axis.

    aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)
    """
    x, offset = call.value("self"), call.argument("offset")
    first, second = call.axis("dim1", x.rank), call.axis("dim2", x.rank)
    others = [axis for axis in range(x.rank) if axis not in (first, second)]
    moved = transposed(call, x, [*others, first, second])
    *rest, rows, columns = moved.shape[:]
    flat = reshaped(call, moved, (*rest, rows * columns))
    start = offset if offset >= 0 else -offset * columns
    places = [start + i * (columns + 1) for i in range(call.dims[-1])]
    return gathered(call, flat, _indices(places), flat.rank - 1)


@torch_op(aten.tril.default)
def tril(call: Call) -> Value:
    """Keep what lies below a diagonal: aten::tril(Tensor self, SymInt diagonal=0) -> Tensor."""
    return call.node(hub.Trilu(upper=0, k=call.argument("diagonal")), call.value("self"))


@torch_op(aten.triu.default)
def triu(call: Call) -> Value:
    """Keep what lies above a diagonal: aten::triu(Tensor self, SymInt diagonal=0) -> Tensor."""
    return call.node(hub.Trilu(upper=1, k=call.argument("diagonal")), call.value("self"))


def _range(call: Call, x: Value) -> tuple[int, int, int, int]:
    """Return axis, start, end and step of a slice of `x`, all within its size."""
    axis = call.axis("dim", x.rank)
    start, end, step = (call.argument(name) for name in ("start", "end", "step"))
    return axis, *slice(start, end, step).indices(x.shape[axis])


def _replaced(call: Call, x: Value, part: Value, axis: int, start: int) -> Value:
    """Return `x` with `part` in place of what lies at `start` along `axis`."""
    end, size = start + part.shape[axis], x.shape[axis]
    pieces = [part]
    if start:
        pieces.insert(0, sliced(call, x, axis, 0, start))
    if end < size:
        pieces.append(sliced(call, x, axis, end, size))
    return joined(call, pieces, axis)


def _indices(places: list[int]) -> Value:
    return constant("", Dense(np.array(places, np.int64)))
