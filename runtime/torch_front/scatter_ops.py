"""Writing elements at indices: the functional forms of assignments, scatter and its reductions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import torch

from caffeforge.generated import hub
from caffeforge.runtime.array import Dense
from caffeforge.runtime.graph import Value, constant
from caffeforge.runtime.torch_front.call import Call
from caffeforge.runtime.torch_front.index_ops import counted_from_front, index_lists, strided_places
from caffeforge.runtime.torch_front.layout import (
    expanded,
    gathered,
    joined,
    reshaped,
    sliced,
    transposed,
    unsqueezed,
)
from caffeforge.runtime.torch_front.registry import torch_op

aten = torch.ops.aten

_REDUCTIONS: Final = {
    "add": "add",
    "sum": "add",
    "multiply": "mul",
    "prod": "mul",
    "amax": "max",
    "amin": "min",
}


@torch_op(aten.scatter.src, aten.scatter.value)
def scatter(call: Call) -> Value:
    """Lower as it is.

    aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor
    aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor
    """
    return _scattered(call, call.value("self"), _source(call))


@torch_op(aten.scatter.reduce, aten.scatter.value_reduce)
def scatter_with_reduction(call: Call) -> Value:
    """Add or multiply.

    aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor
    aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor
    """
    return _scattered(call, call.value("self"), _source(call), _REDUCTIONS[call.argument("reduce")])


@torch_op(aten.scatter_add.default)
def scatter_add(call: Call) -> Value:
    """Add: aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor."""
    return _scattered(call, call.value("self"), _source(call), "add")


@torch_op(aten.scatter_reduce.two)
def scatter_reduce(call: Call) -> Value:
    """Add, multiply, average, or take the extreme, with the written elements themselves or without.

    aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *,
    bool include_self=True) -> Tensor
    """
    return _reduced_into(call, _source(call), call.indices("index"))


@torch_op(aten.index_reduce.default)
def index_reduce(call: Call) -> Value:
    """Multiply, average, or take the extreme of slices, as scatter_reduce does of elements.

    aten::index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *,
    bool include_self=True) -> Tensor
    """
    source, indices = call.operand("source"), call.indices("index")
    axis = call.axis("dim", source.rank)
    column = [indices.shape[0] if i == axis and indices.rank else 1 for i in range(source.rank)]
    spread = expanded(call, reshaped(call, indices, column, kept=0), source.shape[:])
    return _reduced_into(call, source, spread)


@torch_op(aten.index_put.default, aten._unsafe_index_put.default)
def index_put(call: Call) -> Value:
    """Choose by the mask, or scatter the values at the indices.

    aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor
    aten::_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor
    """
    x, values = call.value("self"), call.operand("values")
    given = call.optional_values("indices")
    mask = given[0] if len(given) == 1 else None
    if mask is not None and mask.dtype == "bool" and mask.data is None and not math.prod(values.shape[:]) > 1:
        number = reshaped(call, values, ())
        mask = reshaped(call, mask, mask.shape[:] + (1,) * (x.rank - mask.rank))
        if call.argument("accumulate"):
            number = call.pointwise(hub.Add(), x, number)
        return call.node(hub.Where(), mask, number, x)
    lists = index_lists(call, given)
    axes = [axis for axis, value in enumerate(lists) if value is not None]
    return _put(call, x, axes, [value for value in lists if value is not None], values)


@torch_op(aten.put.default)
def put(call: Call) -> Value:
    """Write among all elements in a row.

    aten::put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor
    """
    x, indices, source = call.value("self"), call.indices("index"), call.operand("source")
    count, written = math.prod(call.dims), math.prod(indices.shape[:])
    row = reshaped(call, x, (count,), kept=0)
    flat = [reshaped(call, value, (written,), kept=0) for value in (indices, source)]
    op = hub.ScatterElements(axis=0, reduction="add" if call.argument("accumulate") else "none")
    return reshaped(call, call.helper(op, row, *flat, dims=(count,)), call.dims, kept=0)


@torch_op(aten.as_strided_scatter.default)
def as_strided_scatter(call: Call) -> Value:
    """Write at the places that the strides name, which must be those of a row-major tensor.

    aten::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride,
    SymInt? storage_offset=None) -> Tensor
    """
    x, places = call.value("self"), strided_places(call)
    count = math.prod(call.dims)
    row = reshaped(call, x, (count,), kept=0)
    source = reshaped(call, call.operand("src"), (places.size,), kept=0)
    indices = constant("", Dense(places.reshape(-1)))
    written = call.helper(hub.ScatterElements(axis=0), row, indices, source, dims=(count,))
    return reshaped(call, written, call.dims, kept=0)


@torch_op(aten.masked_scatter.default)
def masked_scatter(call: Call) -> Value:
    """Take the next element of the source wherever the mask is true.

    aten::masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor
    """
    x = expanded(call, call.operand("self"), call.dims)
    mask = expanded(call, call.value("mask"), call.dims)
    source = call.operand("source")
    count = math.prod(call.dims)
    flags = call.cast(reshaped(call, mask, (count,), kept=0), "int64")
    numbers = call.helper(hub.CumSum(axis=0), flags, dims=(count,), dtype="int64")
    last = call.pointwise(hub.Sub(), numbers, call.full((), 1, "int64"))
    places = call.pointwise(hub.Max(), last, call.full((), 0, "int64"))
    row = gathered(call, reshaped(call, source, (math.prod(source.shape[:]),)), places, 0)
    return call.node(hub.Where(), mask, reshaped(call, row, call.dims, kept=0), x)


@torch_op(aten.diagonal_scatter.default)
def diagonal_scatter(call: Call) -> Value:
    """Scatter along the diagonal of the two axes written as one.

    aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor
    """
    x, offset = call.value("self"), call.argument("offset")
    first, second = call.axis("dim1", x.rank), call.axis("dim2", x.rank)
    others = [axis for axis in range(x.rank) if axis not in (first, second)]
    perm = [*others, first, second]
    moved = transposed(call, x, perm)
    *rest, rows, columns = moved.shape[:]
    start = offset if offset >= 0 else -offset * columns
    source = call.operand("src")
    places = start + np.arange(source.shape[-1], dtype=np.int64) * (columns + 1)
    indices = call.tensor(torch.from_numpy(places).expand(source.shape[:]).contiguous())
    flat = reshaped(call, moved, (*rest, rows * columns))
    op = hub.ScatterElements(axis=flat.rank - 1)
    written = call.helper(op, flat, indices, source, dims=flat.dims)
    return transposed(call, reshaped(call, written, moved.shape[:]), _inverse(perm))


def _reduced_into(call: Call, source: Value, indices: Value) -> Value:
    """Return the argument reduced with `source` at the indices, by the call's reduction."""
    x, reduction = call.value("self"), call.argument("reduce")
    itself = bool(call.argument("include_self"))
    if not itself:
        neutral = _neutral("sum" if reduction == "mean" else reduction, call.dtype)
        x = _written(call, x, indices, call.full(source.shape[:], neutral))
    if reduction != "mean":
        return _written(call, x, indices, source, _REDUCTIONS[reduction])
    if "float" not in call.dtype:
        raise call.error("averages integers", hint="convert them to float before")
    ones = call.full(call.dims, 1.0)
    counts = ones if itself else _written(call, ones, indices, call.full(source.shape[:], 0.0))
    counts = _written(call, counts, indices, call.full(source.shape[:], 1.0), "add")
    if not itself:  # where nothing is written, the elements stay
        counts = call.pointwise(hub.Max(), counts, call.full((), 1.0))
    return call.node(hub.Div(), _written(call, x, indices, source, "add"), counts)


def _source(call: Call) -> Value:
    """Return what is written, one element an index; of a tensor PyTorch reads as far as the indices go."""
    sizes = call.value("index").shape[:]
    if not call.has("src"):
        return call.full(sizes, call.argument("value"))
    source = call.operand("src")
    for axis, size in enumerate(sizes if source.rank else ()):
        source = sliced(call, source, axis, 0, size)
    return source


def _scattered(call: Call, x: Value, source: Value, reduction: str = "none") -> Value:
    """Return `x` with `source` written at the call's indices."""
    return _written(call, x, call.indices("index"), source, reduction)


def _written(call: Call, x: Value, indices: Value, source: Value, reduction: str = "none") -> Value:
    """Return `x` with `source`, of the shape of `indices`, written along the call's axis."""
    axis = call.axis("dim", x.rank)
    op = hub.ScatterElements(axis=axis, reduction=reduction)
    if x.rank:
        return call.helper(op, x, indices, source, dims=x.dims)
    row, indices, source = (reshaped(call, value, (1,)) for value in (x, indices, source))
    return reshaped(call, call.helper(op, row, indices, source, dims=(1,)), ())


def _neutral(reduction: str, dtype: str) -> float:
    """Return the number that changes no result of a reduction."""
    if reduction in ("sum", "prod"):
        return float(reduction == "prod")
    if "float" in dtype:
        return -math.inf if reduction == "amax" else math.inf
    limits = np.iinfo(dtype)
    return limits.min if reduction == "amax" else limits.max


def _put(call: Call, x: Value, axes: Sequence[int], indices: Sequence[Value], values: Value) -> Value:
    """Write `values` where the indices of some axes say, after moving these axes to the front."""
    others = [axis for axis in range(x.rank) if axis not in axes]
    perm = [*axes, *others]
    spread = np.broadcast_shapes(*(value.shape[:] for value in indices))
    together = list(axes) == list(range(axes[0], axes[0] + len(axes)))
    # In PyTorch the indices' axes stand where the indexed ones stood, or first if these lie apart.
    front = axes[0] if together else 0
    rest = [x.shape[axis] for axis in others]
    values = expanded(call, values, (*rest[:front], *spread, *rest[front:]))
    order = [*range(front, front + len(spread)), *range(front), *range(front + len(spread), values.rank)]
    places = [
        unsqueezed(call, expanded(call, counted_from_front(call, value, x.shape[axis]), spread), len(spread))
        for axis, value in zip(axes, indices, strict=True)
    ]
    moved = transposed(call, x, perm)
    op = hub.ScatterND(reduction="add" if call.argument("accumulate") else "none")
    written = call.helper(
        op, moved, joined(call, places, len(spread)), transposed(call, values, order), dims=moved.dims
    )
    return transposed(call, written, _inverse(perm))


def _inverse(perm: Sequence[int]) -> list[int]:
    return [perm.index(axis) for axis in range(len(perm))]
