"""Operators that move elements without computing: reshapes, transposes, slices, splits, concatenations."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from caffeforge.generated import hub
from caffeforge.runtime.graph import Value
from caffeforge.runtime.torch_front.call import Call, normalized
from caffeforge.runtime.torch_front.registry import Result, torch_op

aten = torch.ops.aten


@torch_op(
    aten.contiguous.default,
    aten.alias.default,
    aten.clone.default,
    aten.detach.default,
    aten.lift_fresh_copy.default,
    aten.to.dtype,
    aten.to.device,
    aten.to.dtype_layout,
    aten.to.other,
    aten._to_copy.default,
    aten.type_as.default,
)
def same(call: Call) -> Value:
    """Become nothing: elements stay, memory layout and device have no place in the hub.

    aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)
    aten::alias(Tensor(a) self) -> Tensor(a)
    aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor
    aten::detach(Tensor(a) self) -> Tensor(a)
    aten::lift_fresh_copy(Tensor self) -> Tensor
    aten::to.dtype(Tensor(a) self, ScalarType dtype, ...) -> Tensor(a)
    aten::to.device(Tensor(a) self, Device device, ScalarType dtype, ...) -> Tensor(a)
    aten::to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, ...) -> Tensor(a)
    aten::to.other(Tensor(a) self, Tensor other, ...) -> Tensor(a)
    aten::_to_copy(Tensor self, *, ScalarType? dtype=None, ...) -> Tensor
    aten::type_as(Tensor self, Tensor other) -> Tensor
    """
    x = call.value("self")
    if x.dtype != call.dtype:
        raise call.error(f"converts {x.dtype} to {call.dtype}", hint="let the model compute in one type")
    return x


@torch_op(aten.dropout.default, aten.feature_dropout.default, aten.alpha_dropout.default)
def dropout(call: Call) -> Value:
    """Become nothing, as in evaluation mode.

    aten::dropout(Tensor input, float p, bool train) -> Tensor
    aten::feature_dropout(Tensor input, float p, bool train) -> Tensor
    aten::alpha_dropout(Tensor input, float p, bool train) -> Tensor
    """
    if call.argument("train") and call.argument("p") > 0:
        raise call.error(
            "drops elements at random", hint="use nn.Dropout, or pass training=self.training to the function"
        )
    return call.value("input")


@torch_op(aten.copy.default)
def copy(call: Call) -> Value:
    """Become the source, of which the written tensor takes the elements.

    aten::copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor
    """
    source = call.value("src")
    if (source.dtype, source.dims) != (call.dtype, call.dims):
        raise call.error(f"spreads {source.type_text()} over {call.dtype}{list(call.dims)}")
    return source


@torch_op(aten.flatten.using_ints)
def flatten(call: Call) -> Value:
    """Become Flatten if all axes but the batch's are joined, else a reshape.

    aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)
    """
    x = call.value("self")
    start, end = call.axis("start_dim", x.rank), call.axis("end_dim", x.rank)
    if x.rank > 2 and (start, end) == (1, x.rank - 1):
        return call.node(hub.Flatten(axis=1), x)
    return _reshape(call, kept=start)


@torch_op(aten.view.default, aten.reshape.default, aten._unsafe_view.default)
def reshape(call: Call) -> Value:
    """Become a reshape; leading dimensions that stay equal are copied, so that the batch stays free.

    aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)
    aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)
    aten::_unsafe_view(Tensor self, SymInt[] size) -> Tensor
    """
    return _reshape(call, kept=len(call.dims))


@torch_op(aten.unflatten.int)
def unflatten(call: Call) -> Value:
    """Become a reshape.

    aten::unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)
    """
    return _reshape(call, kept=call.axis("dim", call.value("self").rank))


@torch_op(aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims)
def squeeze(call: Call) -> Value:
    """Become a reshape.

    aten::squeeze(Tensor(a) self) -> Tensor(a)
    aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)
    aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)
    """
    x = call.value("self")
    axes = [normalized(axis, x.rank) for axis in call.ints("dim")] if call.has("dim") else range(x.rank)
    removed = [axis for axis in axes if x.shape[axis] == 1]
    return _reshape(call, kept=min(removed, default=x.rank))


@torch_op(aten.unsqueeze.default)
def unsqueeze(call: Call) -> Value:
    """Become a reshape.

    aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)
    """
    return _reshape(call, kept=call.axis("dim", len(call.dims)))


@torch_op(aten.permute.default)
def permute(call: Call) -> Value:
    """Become a transpose: aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)."""
    rank = len(call.dims)
    return _transpose(call, [normalized(axis, rank) for axis in call.ints("dims")])


@torch_op(aten.transpose.int)
def transpose(call: Call) -> Value:
    """Exchange two axes: aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)."""
    rank = len(call.dims)
    order = list(range(rank))
    first, second = call.axis("dim0", rank), call.axis("dim1", rank)
    if rank:
        order[first], order[second] = order[second], order[first]
    return _transpose(call, order)


@torch_op(aten.t.default)
def t(call: Call) -> Value:
    """Transpose a matrix, leave a vector: aten::t(Tensor(a) self) -> Tensor(a)."""
    return _transpose(call, list(range(len(call.dims)))[::-1])


@torch_op(aten.slice.Tensor)
def slice_(call: Call) -> Value:
    """Become a slice by numbers within the tensor, or nothing if it takes all.

    aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1)
    -> Tensor(a)
    """
    x = call.value("self")
    if call.dims == x.dims:
        return x
    axis, start, end, step = _range(call, x)
    return call.node(_slice(axis, start, end, step), x)


@torch_op(aten.slice_scatter.default)
def slice_scatter(call: Call) -> Value:
    """Join what lies before the slice, the new part, and what lies behind it.

    aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None,
    SymInt step=1) -> Tensor
    """
    x, part = call.value("self"), call.value("src")
    axis, start, end, step = _range(call, x)
    if step != 1:
        raise call.error(
            f"writes every {step}th element of an axis", hint="write it without in-place operators"
        )
    if x.dtype != part.dtype:
        raise call.error(f"mixes {part.dtype} into {x.dtype}", hint="convert the operands to one type before")
    if part.dims == x.dims:
        return part
    pieces = [_part(call, x, axis, 0, start), part, _part(call, x, axis, end, x.shape[axis])]
    return call.node(hub.Concat(axis=axis), *(piece for piece in pieces if piece is not None))


@torch_op(aten.cat.default)
def cat(call: Call) -> Value:
    """Concatenate; vectors without elements fit any tensor in PyTorch and are left out.

    aten::cat(Tensor[] tensors, int dim=0) -> Tensor
    """
    parts = [value for value in call.values("tensors") if value.dims != (0,)]
    if not parts:
        raise call.error("joins tensors without elements")
    mixed = {value.dtype for value in parts} - {call.dtype}
    if mixed:
        raise call.error(f"mixes {', '.join(sorted(mixed))} into {call.dtype}", hint="convert them before")
    if len(parts) == 1:
        return parts[0]
    return call.node(hub.Concat(axis=call.axis("dim", len(call.dims))), *parts)


@torch_op(aten.chunk.default, aten.split.Tensor, aten.split.sizes, aten.split_with_sizes.default)
def split(call: Call) -> Result:
    """Become a split by sizes, which PyTorch has computed.

    aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]
    aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]
    aten::split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]
    aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]
    """
    x, pieces = call.value("self"), call.result_dims
    axis = call.axis("dim", x.rank)
    if len(pieces) == 1:
        return [x]
    return call.node_of_all(hub.Split(axis=axis, split=tuple(piece[axis] for piece in pieces)), x)


def _reshape(call: Call, kept: int) -> Value:
    """Reshape to the result's shape; of the first `kept` dimensions, those that stay equal are copied."""
    x = call.value("self")
    if call.dims == x.dims:
        return x
    if 0 in call.dims:
        raise call.error("reshapes a tensor without elements")
    copied = 0
    while copied < min(kept, x.rank, len(call.dims)) and x.dims[copied] == call.dims[copied]:
        copied += 1
    return call.node(hub.Reshape(shape=(0,) * copied + call.dims[copied:]), x)


def _transpose(call: Call, order: Sequence[int]) -> Value:
    x = call.value("self")
    if list(order) == list(range(x.rank)):
        return x
    return call.node(hub.Transpose(perm=tuple(order)), x)


def _range(call: Call, x: Value) -> tuple[int, int, int, int]:
    """Return axis, start, end and step of a slice of `x`, all within its size."""
    axis = call.axis("dim", x.rank)
    start, end, step = (call.argument(name) for name in ("start", "end", "step"))
    return axis, *slice(start, end, step).indices(x.shape[axis])


def _slice(axis: int, start: int, end: int, step: int = 1) -> hub.Slice:
    return hub.Slice(starts=(start,), ends=(end,), axes=(axis,), steps=(step,))


def _part(call: Call, x: Value, axis: int, start: int, end: int) -> Value | None:
    """Return ``x[start:end]`` along `axis`, or None if that is empty."""
    if start >= end:
        return None
    return call.helper(_slice(axis, start, end), x, dims=(*x.dims[:axis], end - start, *x.dims[axis + 1 :]))
