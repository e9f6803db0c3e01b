"""Operators that take parts of a tensor, or put a part back: slices, splits, windows."""

from __future__ import annotations

import numpy as np
import torch

from caffeforge.generated import hub
from caffeforge.runtime.array import Dense
from caffeforge.runtime.graph import Value, constant
from caffeforge.runtime.symbol import Dim, Symbol
from caffeforge.runtime.torch_front.call import STATIC, Call
from caffeforge.runtime.torch_front.layout import (
    BEHIND,
    expanded,
    gathered,
    joined,
    reshaped,
    slice_of_size,
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
    if call.dims == x.dims:
        return x
    axis, start, end = call.axis("dim", x.rank), call.size("start"), call.size("end")
    if all(isinstance(place, int | None) for place in (x.dims[axis], start, end)):
        return sliced(call, x, *_range(call, x))
    end = None if isinstance(end, int) and end >= BEHIND else end
    return slice_of_size(call, x, axis, (start or 0, end, call.argument("step")), call.dims[axis])


@torch_op(aten.narrow.default, aten.narrow_copy.default)
def narrow(call: Call) -> Value:
    """Become a slice.

    aten::narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)
    aten::narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor
    """
    x = call.value("self")
    axis, start, length = (
        call.axis("dim", x.rank),
        call.size("start") or 0,
        call.dims[call.axis("dim", x.rank)],
    )
    if isinstance(start, int) and start < 0:
        start = start + x.dims[axis]
    return sliced(call, x, axis, start, start + length)


@torch_op(aten.select.int)
def select(call: Call) -> Value:
    """Slice one element of an axis and take the axis away.

    aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)
    """
    x = call.value("self")
    axis = call.axis("dim", x.rank)
    index = call.size("index") or 0
    if isinstance(index, int) and index < 0:
        # Counted from the front where the size is known, else left to ONNX.
        size = x.dims[axis]
        if not isinstance(size, int):
            end = None if index == -1 else index + 1
            return squeezed(call, slice_of_size(call, x, axis, (index, end, 1), 1), axis)
        index += size
    return squeezed(call, sliced(call, x, axis, index, index + 1), axis)


@torch_op(aten.slice_scatter.default)
def slice_scatter(call: Call) -> Value:
    """Join what lies before the slice, the new part, and what lies behind it.

    aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None,
    SymInt step=1) -> Tensor
    """
    x, part = call.operand("self"), call.operand("src")
    axis = call.axis("dim", x.rank)
    if not all(
        isinstance(place, int | None) for place in (x.dims[axis], call.size("start"), call.size("end"))
    ):
        return _replaced_within(call, x, part, axis)
    axis, start, end, step = _range(call, x)
    taken = list(range(start, end, step))
    dims = (*x.dims[:axis], len(taken), *x.dims[axis + 1 :])
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
    part = unsqueezed(call, expanded(call, part, (*x.dims[:axis], *x.dims[axis + 1 :])), axis)
    return _replaced(call, x, part, axis, _from_front(call.size("index") or 0, x.dims[axis]))


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
    if isinstance(x.dims[axis], Symbol) and len(sizes) > 1:
        sizes[-1] = x.dims[axis] - sum(sizes[:-1])  # which PyTorch may write as a minimum
    if sum(sizes) != x.dims[axis]:
        raise call.error("takes pieces that overlap", hint="give indices in rising order")
    pieces = iter(split(call, x, axis, [size for size in sizes if size != 0]))
    return [
        next(pieces) if size != 0 else call.full(dims, 0, x.dtype)
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
    (count,) = call.numbers(call.dims[axis : axis + 1])
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
    rest, (rows, columns) = moved.dims[:-2], moved.shape[-2:]
    flat = reshaped(call, moved, (*rest, rows * columns))
    start = offset if offset >= 0 else -offset * columns
    places = [start + i * (columns + 1) for i in range(*call.numbers(call.dims[-1:]))]
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


def _from_front(place: Dim, size: Dim) -> Dim:
    """Return a place along an axis, counted from its front."""
    return place + size if isinstance(place, int) and place < 0 else place


def _replaced_within(call: Call, x: Value, part: Value, axis: int) -> Value:
    """Return `x` with a slice replaced of which the axis, the start or the end is a symbol."""
    if call.argument("step") != 1:
        raise call.error(
            f"writes every other element along {x.dims[axis]}, of which the size is open", hint=STATIC
        )
    start = _from_front(call.size("start") or 0, x.dims[axis])
    count = call.example("src").dim() - x.rank + axis
    size: Dim = part.dims[count]
    if size == 1 or not isinstance(start, int):
        end = call.size("end")
        last = x.dims[axis] if end is None or (isinstance(end, int) and end >= BEHIND) else end
        size = _from_front(last, x.dims[axis]) - start
    return _replaced(call, x, expanded(call, part, (*x.dims[:axis], size, *x.dims[axis + 1 :])), axis, start)


def _replaced(call: Call, x: Value, part: Value, axis: int, start: Dim) -> Value:
    """Return `x` with `part` in place of what lies at `start` along `axis`."""
    end, size = start + part.dims[axis], x.dims[axis]
    pieces = [part]
    if start != 0:
        pieces.insert(0, sliced(call, x, axis, 0, start))
    if end != size:
        pieces.append(sliced(call, x, axis, end, size))
    return joined(call, pieces, axis)


def _indices(places: list[int]) -> Value:
    return constant("", Dense(np.array(places, np.int64)))
