"""Reductions: sums, means, extremes, norms, and statistics over axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from caffeforge.generated import hub
from caffeforge.runtime.graph import Value
from caffeforge.runtime.torch_front.call import Call
from caffeforge.runtime.torch_front.layout import reshaped
from caffeforge.runtime.torch_front.registry import Result, torch_op

aten = torch.ops.aten

Reduction = type[
    hub.ReduceMean
    | hub.ReduceSum
    | hub.ReduceProd
    | hub.ReduceMax
    | hub.ReduceMin
    | hub.ReduceL1
    | hub.ReduceL2
    | hub.ReduceLogSumExp
]


@torch_op(aten.mean.dim, aten.mean.default)
def mean(call: Call) -> Value:
    """Become a global pool over height and width, else a reduction.

    aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
    aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor
    """
    x = call.operand("self")
    axes = call.axes("dim", x.rank)
    if x.rank == 4 and axes == (2, 3) and call.argument("keepdim"):
        return call.node(hub.GlobalAveragePool(), x)
    return reduced(call, hub.ReduceMean, x, axes)


@torch_op(aten.sum.dim_IntList, aten.sum.default)
def sum_(call: Call) -> Value:
    """Add up; integers are added as int64.

    aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
    aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor
    """
    x = call.operand("self")
    return reduced(call, hub.ReduceSum, x, call.axes("dim", x.rank))


@torch_op(aten.prod.default, aten.prod.dim_int)
def prod(call: Call) -> Value:
    """Multiply; integers are multiplied as int64.

    aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor
    aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
    """
    x = call.operand("self")
    return reduced(call, hub.ReduceProd, x, call.axes("dim", x.rank))


@torch_op(aten.amax.default, aten.max.default)
def amax(call: Call) -> Value:
    """Take the largest.

    aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor
    aten::max(Tensor self) -> Tensor
    """
    return _extreme(call, hub.ReduceMax)


@torch_op(aten.amin.default, aten.min.default)
def amin(call: Call) -> Value:
    """Take the smallest.

    aten::amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor
    aten::min(Tensor self) -> Tensor
    """
    return _extreme(call, hub.ReduceMin)


@torch_op(aten.aminmax.default)
def aminmax(call: Call) -> Result:
    """Take the smallest and the largest.

    aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)
    """
    return [_extreme(call, hub.ReduceMin), _extreme(call, hub.ReduceMax)]


@torch_op(aten.any.default, aten.any.dim, aten.any.dims)
def any_(call: Call) -> Value:
    """Take the largest truth value, as integers: ONNX's runtimes reduce no others.

    aten::any(Tensor self) -> Tensor
    aten::any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor
    aten::any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor
    """
    return _extreme(call, hub.ReduceMax)


@torch_op(aten.all.default, aten.all.dim, aten.all.dims)
def all_(call: Call) -> Value:
    """Take the smallest truth value, as integers: ONNX's runtimes reduce no others.

    aten::all(Tensor self) -> Tensor
    aten::all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor
    aten::all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor
    """
    return _extreme(call, hub.ReduceMin)


@torch_op(aten.logsumexp.default)
def logsumexp(call: Call) -> Value:
    """Lower as it is: aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor."""
    x = call.operand("self")
    return reduced(call, hub.ReduceLogSumExp, x, call.axes("dim", x.rank))


@torch_op(aten.var.correction, aten.var.dim)
def var(call: Call) -> Value:
    """Take the mean square of what is left after subtracting the mean, scaled by n / (n - correction).

    aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False)
    -> Tensor
    aten::var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor
    """
    return _variance(call)[0]


@torch_op(aten.std.correction)
def std(call: Call) -> Value:
    """Take the root of the variance.

    aten::std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False)
    -> Tensor
    """
    return call.node(hub.Sqrt(), _variance(call)[0])


@torch_op(aten.var_mean.correction)
def var_mean(call: Call) -> Result:
    """Take variance and mean.

    aten::var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None,
    bool keepdim=False) -> (Tensor, Tensor)
    """
    variance, mean_ = _variance(call)
    return [variance, reshaped(call, mean_, call.dims)]


@torch_op(aten.linalg_vector_norm.default)
def vector_norm(call: Call) -> Value:
    """Take a norm.

    aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *,
    ScalarType? dtype=None) -> Tensor
    """
    x = call.operand("self")
    return norm_over(call, x, float(call.argument("ord")), call.axes("dim", x.rank))


@torch_op(aten.norm.ScalarOpt_dim, aten.norm.Scalar)
def norm(call: Call) -> Value:
    """Take a norm.

    aten::norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor
    aten::norm.Scalar(Tensor self, Scalar p=2) -> Tensor
    """
    x, order = call.operand("self"), call.argument("p")
    return norm_over(call, x, 2.0 if order is None else float(order), call.axes("dim", x.rank))


def reduced(call: Call, op: Reduction, x: Value, axes: Sequence[int], keep: bool | None = None) -> Value:
    """Return `x` reduced over `axes`, which are left as size one if `keep`; None asks the call's keepdim."""
    kept = call.has("keepdim") and bool(call.argument("keepdim")) if keep is None else keep
    if not x.rank:
        return x if op not in (hub.ReduceL1, hub.ReduceL2) else call.pointwise(hub.Abs(), x)
    axes = tuple(axes)
    dims = [1 if axis in axes else size for axis, size in enumerate(x.dims) if kept or axis not in axes]
    return call.helper(op(axes=axes, keepdims=int(kept)), x, dims=dims, dtype=x.dtype)


def _extreme(call: Call, op: type[hub.ReduceMax | hub.ReduceMin]) -> Value:
    x = call.operand("self")
    axes = call.axes("dim", x.rank)
    if x.dtype != "bool":
        return reduced(call, op, x, axes)
    return call.cast(reduced(call, op, call.cast(x, "int32"), axes), "bool")


def _variance(call: Call) -> tuple[Value, Value]:
    """Return variance, and mean with all axes kept."""
    x = call.operand("self")
    axes = call.axes("dim", x.rank)
    correction = _correction(call)
    mean_ = reduced(call, hub.ReduceMean, x, axes, keep=True)
    centred = call.pointwise(hub.Sub(), x, mean_)
    variance = reduced(call, hub.ReduceMean, call.pointwise(hub.Mul(), centred, centred), axes)
    if correction:
        count = math.prod(x.shape[axis] for axis in axes)
        factor = count / (count - correction) if count > correction else math.nan
        variance = call.pointwise(hub.Mul(), variance, call.full((), factor))
    return variance, mean_


def _correction(call: Call) -> float:
    if call.has("unbiased"):
        return float(call.argument("unbiased"))
    return float(call.argument("correction")) if call.has("correction") else 1.0


def norm_over(call: Call, x: Value, order: float, axes: Sequence[int]) -> Value:
    """Return the norm of that order over `axes`."""
    if order in (1, 2):
        return reduced(call, hub.ReduceL1 if order == 1 else hub.ReduceL2, x, axes)
    size = call.pointwise(hub.Abs(), x)
    if math.isinf(order):
        return reduced(call, hub.ReduceMax if order > 0 else hub.ReduceMin, size, axes)
    if order == 0:  # the number of those that are not zero
        return reduced(call, hub.ReduceSum, call.pointwise(hub.Sign(), size), axes)
    powers = reduced(call, hub.ReduceSum, call.pointwise(hub.Pow(), size, call.full((), order)), axes)
    return call.node(hub.Pow(), powers, call.full((), 1 / order))
