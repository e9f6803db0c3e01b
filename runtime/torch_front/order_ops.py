"""Operators by order: places of extremes, sorting, running sums."""

from __future__ import annotations

import math

import numpy as np
import torch

from caffeforge.generated import hub
from caffeforge.runtime.array import Dense
from caffeforge.runtime.graph import Value, constant
from caffeforge.runtime.torch_front.call import Call
from caffeforge.runtime.torch_front.layout import reshaped, sliced, squeezed, swapped, unsqueezed
from caffeforge.runtime.torch_front.reduce_ops import Reduction, reduced
from caffeforge.runtime.torch_front.registry import Result, torch_op

aten = torch.ops.aten


@torch_op(aten.argmax.default)
def argmax(call: Call) -> Value:
    """Take the first place of the largest, in all elements if no axis is given.

    PyTorch takes the first place of a NaN, if there is one; ONNX's runtimes and Caffe do not look for it.

    aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor
    """
    return _place(call, hub.ArgMax)


@torch_op(aten.argmin.default)
def argmin(call: Call) -> Value:
    """Take the first place of the smallest, in all elements if no axis is given.

    aten::argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor
    """
    return _place(call, hub.ArgMin)


@torch_op(aten.max.dim)
def max_dim(call: Call) -> Result:
    """Take the largest and its place.

    aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
    """
    return _extreme(call, hub.ReduceMax, hub.ArgMax)


@torch_op(aten.min.dim)
def min_dim(call: Call) -> Result:
    """Take the smallest and its place.

    aten::min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
    """
    return _extreme(call, hub.ReduceMin, hub.ArgMin)


@torch_op(aten.topk.default)
def topk(call: Call) -> Result:
    """Lower as it is.

    aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True)
    -> (Tensor values, Tensor indices)
    """
    return _ordered(call, call.argument("k"), largest=bool(call.argument("largest")))


@torch_op(aten.sort.default, aten.sort.stable)
def sort(call: Call) -> Result:
    """Take as many of the largest as there are; of equal ones the first comes first, as in a stable sort.

    aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)
    aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False)
    -> (Tensor values, Tensor indices)
    """
    return _ordered(call, _size(call), largest=bool(call.argument("descending")))


@torch_op(aten.argsort.default, aten.argsort.stable)
def argsort(call: Call) -> Value:
    """Take the places of a sort.

    aten::argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor
    aten::argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor
    """
    return _ordered(call, _size(call), largest=bool(call.argument("descending")))[1]


@torch_op(aten.kthvalue.default)
def kthvalue(call: Call) -> Result:
    """Take the last of the k smallest and its place.

    aten::kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)
    """
    return _kth(call, call.argument("k"))


@torch_op(aten.median.dim)
def median_dim(call: Call) -> Result:
    """Take the lower one in the middle and its place.

    aten::median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
    """
    return _kth(call, (_size(call) + 1) // 2)


@torch_op(aten.median.default)
def median(call: Call) -> Value:
    """Take the lower one in the middle of all: aten::median(Tensor self) -> Tensor."""
    x, _ = _row(call)
    values = _ordered(call, (x.shape[0] + 1) // 2, largest=False)[0]
    return (
        reshaped(call, sliced(call, values, 0, values.shape[0] - 1, values.shape[0]), ())
        if values.rank
        else values
    )


@torch_op(aten.cummax.default)
def cummax(call: Call) -> Result:
    """Take the largest up to each place, and its last place.

    aten::cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)
    """
    return _running_extreme(call, hub.ReduceMax, hub.ArgMax, -math.inf)


@torch_op(aten.cummin.default)
def cummin(call: Call) -> Result:
    """Take the smallest up to each place, and its last place.

    aten::cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)
    """
    return _running_extreme(call, hub.ReduceMin, hub.ArgMin, math.inf)


@torch_op(aten.bucketize.Tensor)
def bucketize(call: Call) -> Value:
    """Count the boundaries that lie before each element.

    aten::bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False)
    -> Tensor
    """
    return _counted(call, call.value("boundaries"), call.value("self"), equal=bool(call.argument("right")))


@torch_op(aten.searchsorted.Tensor)
def searchsorted(call: Call) -> Value:
    """Count the elements of the sorted rows that lie before each element.

    aten::searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False,
    bool right=False, str? side=None, Tensor? sorter=None) -> Tensor
    """
    if call.has("sorter"):
        raise call.error("is told the order of its rows", hint="sort the rows before")
    right = bool(call.argument("right")) or call.argument("side") == "right"
    return _counted(call, call.value("sorted_sequence"), call.value("self"), equal=right)


@torch_op(aten.cumsum.default)
def cumsum(call: Call) -> Value:
    """Lower as it is; integers are added as int64.

    aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor
    """
    x = call.operand("self")
    return call.node(hub.CumSum(axis=call.axis("dim", x.rank)), x) if x.rank else x


@torch_op(aten.cumprod.default)
def cumprod(call: Call) -> Value:
    """Multiply all up to each place.

    aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor
    """
    x = call.operand("self")
    return _running(call, x, hub.ReduceProd, 1) if x.rank else x


@torch_op(aten.logcumsumexp.default)
def logcumsumexp(call: Call) -> Value:
    """Reduce all up to each place: aten::logcumsumexp(Tensor self, int dim) -> Tensor."""
    x = call.operand("self")
    return _running(call, x, hub.ReduceLogSumExp, -math.inf) if x.rank else x


def _size(call: Call) -> int:
    x = call.value("self")
    return x.shape[call.axis("dim", x.rank)] if x.rank else 1


def _row(call: Call) -> tuple[Value, int]:
    """Return the argument, a scalar as a row of one and truth values as integers, and the axis."""
    x = call.value("self")
    if x.dtype in ("bool", "uint8", "int8", "int16"):
        x = call.cast(x, "int32")
    if not x.rank or not call.has("dim"):
        return reshaped(call, x, (math.prod(x.shape[:]),)), 0
    return x, call.axis("dim", x.rank)


def _place(call: Call, op: type[hub.ArgMax | hub.ArgMin]) -> Value:
    """Return the place of an extreme: along an axis, or of all elements in a row."""
    x, axis = _row(call)
    along = call.has("dim") and call.value("self").rank > 0
    keep = int(along and call.argument("keepdim"))
    dims = [1 if i == axis else size for i, size in enumerate(x.dims) if keep or i != axis]
    place = call.helper(op(axis=axis, keepdims=keep), x, dims=dims, dtype="int64")
    return reshaped(call, place, call.dims, kept=0 if not along else None)


def _extreme(
    call: Call, reduction: type[hub.ReduceMax | hub.ReduceMin], op: type[hub.ArgMax | hub.ArgMin]
) -> Result:
    x, axis = _row(call)
    value = call.cast(reduced(call, reduction, x, (axis,)), call.dtype)
    return [reshaped(call, value, call.dims, kept=0 if call.dims == () else None), _place(call, op)]


def _ordered(call: Call, count: int, *, largest: bool) -> list[Value]:
    """Return the `count` largest or smallest in order, and their places."""
    x, axis = _row(call)
    dims = [count if i == axis else size for i, size in enumerate(x.dims)]
    op = hub.TopK(axis=axis, largest=int(largest), sorted=1, K=count)
    values, places = call.helper_of_many(op, x, results=[(x.dtype, dims), ("int64", dims)])
    scalar = not call.value("self").rank
    if scalar:
        values, places = reshaped(call, values, ()), reshaped(call, places, ())
    return [call.cast(values, call.value("self").dtype), places]


def _kth(call: Call, k: int) -> Result:
    values, places = _ordered(call, k, largest=False)
    if not values.rank:
        return [values, places]
    axis = call.axis("dim", values.rank)
    found = [sliced(call, value, axis, k - 1, k) for value in (values, places)]
    return found if call.argument("keepdim") else [squeezed(call, value, axis) for value in found]


def _running(call: Call, x: Value, op: Reduction, neutral: float) -> Value:
    """Reduce, for each place of an axis, all elements up to it."""
    axis = call.axis("dim", x.rank)
    return swapped(call, reduced(call, op, _square(call, x, axis, neutral), (x.rank,), keep=False), axis, -1)


def _running_extreme(
    call: Call,
    reduction: type[hub.ReduceMax | hub.ReduceMin],
    op: type[hub.ArgMax | hub.ArgMin],
    neutral: float,
) -> Result:
    x = call.value("self")
    if not x.rank:
        return [x, call.full((), 0, "int64")]
    if "float" not in x.dtype:
        raise call.error("takes running extremes of integers", hint="convert them to float before")
    axis = call.axis("dim", x.rank)
    square = _square(call, x, axis, neutral)
    values = reduced(call, reduction, square, (x.rank,), keep=False)
    last = op(axis=x.rank, keepdims=0, select_last_index=1)
    places = call.helper(last, square, dims=square.dims[:-1], dtype="int64")
    return [swapped(call, value, axis, -1) for value in (values, places)]


def _square(call: Call, x: Value, axis: int, neutral: float) -> Value:
    """Return `x` with `axis` last and repeated as rows, `neutral` behind the diagonal."""
    moved = swapped(call, x, axis, -1)
    rows = unsqueezed(call, moved, x.rank - 1)
    below = constant("", Dense(np.tri(x.shape[axis]) > 0))
    return call.pointwise(hub.Where(), below, rows, call.full((), neutral, x.dtype), dtype=x.dtype)


def _counted(call: Call, rows: Value, elements: Value, *, equal: bool) -> Value:
    """Return how many elements of the sorted `rows` are less than each of `elements`, or equal to it."""
    rows, elements = call.cast(rows, elements.dtype), unsqueezed(call, elements, elements.rank)
    if rows.rank > 1:
        rows = unsqueezed(call, rows, rows.rank - 1)
    before = call.pointwise(hub.LessOrEqual() if equal else hub.Less(), rows, elements, dtype="bool")
    return reduced(call, hub.ReduceSum, call.cast(before, call.dtype), (before.rank - 1,), keep=False)
