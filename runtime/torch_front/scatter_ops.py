"""Writing elements at indices: the functional forms of assignments, scatter and its reductions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import torch

from caffeforge.generated import hub
from caffeforge.runtime.graph import Value
from caffeforge.runtime.torch_front.call import Call
from caffeforge.runtime.torch_front.index_ops import counted_from_front, index_lists
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
    return _scattered(call, "src" if call.has("src") else "value", "none")


@torch_op(aten.scatter.reduce, aten.scatter.value_reduce)
def scatter_with_reduction(call: Call) -> Value:
    """Add or multiply.

    aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor
    aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor
    """
    return _scattered(call, "src" if call.has("src") else "value", _REDUCTIONS[call.argument("reduce")])


@torch_op(aten.scatter_add.default)
def scatter_add(call: Call) -> Value:
    """Add: aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor."""
    return _scattered(call, "src", "add")


@torch_op(aten.scatter_reduce.two)
def scatter_reduce(call: Call) -> Value:
    """Add, multiply, or take the extreme, with the written elements themselves or without.

    aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *,
    bool include_self=True) -> Tensor
    """
    reduction = call.argument("reduce")
    if reduction not in _REDUCTIONS:
        raise call.error(f"takes the {reduction} of what it writes", hint="use a sum, and divide it by a count")
    if not call.argument("include_self"):
        raise call.error("leaves the written elements out", hint="fill them with the reduction's neutral element")
    return _scattered(call, "src", _REDUCTIONS[reduction])


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


def _scattered(call: Call, source: str, reduction: str) -> Value:
    """Scatter; of the source PyTorch reads as far as the indices go."""
    x, indices, values = call.value("self"), call.value("index"), call.operand(source)
    if not x.rank:
        x, indices = reshaped(call, x, (1,)), reshaped(call, indices, (1,))
        values = reshaped(call, values, (1,))
    axis = call.axis("dim", x.rank)
    if source == "src":
        for other in range(values.rank):
            values = sliced(call, values, other, 0, indices.shape[other])
    else:
        values = call.full(indices.shape[:], call.argument("value"))
    op = hub.ScatterElements(axis=axis, reduction=reduction)
    return reshaped(call, call.helper(op, x, indices, values, dims=x.dims), call.dims)


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
