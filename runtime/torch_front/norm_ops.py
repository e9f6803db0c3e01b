"""Normalizations; without affine parameters they scale by one and shift by zero."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from caffeforge.generated import hub
from caffeforge.runtime.graph import Value
from caffeforge.runtime.torch_front.call import Call
from caffeforge.runtime.torch_front.layout import reshaped
from caffeforge.runtime.torch_front.reduce_ops import reduced
from caffeforge.runtime.torch_front.registry import Result, torch_op

aten = torch.ops.aten


@torch_op(aten.batch_norm.default)
def batch_norm(call: Call) -> Value:
    """Normalize by the running statistics.

    aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var,
    bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor
    """
    return _batch_norm(call, bool(call.argument("training")))


@torch_op(
    aten._native_batch_norm_legit_no_training.default,
    aten.native_batch_norm.default,
    aten._native_batch_norm_legit.no_stats,
)
def native_batch_norm(call: Call) -> Result:
    """Normalize by the running statistics, which are no results of a net.

    aten::_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias,
    Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)
    aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean,
    Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)
    aten::_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training,
    float momentum, float eps) -> (Tensor, Tensor, Tensor)
    """
    return [_batch_norm(call, call.has("training") and bool(call.argument("training"))), None, None]


@torch_op(aten.layer_norm.default)
def layer_norm(call: Call) -> Value:
    """Normalize over the last axes.

    aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None,
    float eps=1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor
    """
    return _layer_norm(call)


@torch_op(aten.native_layer_norm.default)
def native_layer_norm(call: Call) -> Result:
    """Normalize over the last axes; mean and reciprocal deviation are computed if they are read.

    aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps)
    -> (Tensor, Tensor, Tensor)
    """
    if not (call.reads_result(1) or call.reads_result(2)):
        return [_layer_norm(call), None, None]
    x = call.value("input")
    axes = tuple(range(x.rank - len(call.ints("normalized_shape")), x.rank))
    return [_layer_norm(call), *_statistics(call, x, axes)]


@torch_op(aten.rms_norm.default)
def rms_norm(call: Call) -> Value:
    """Divide by the root of the mean square over the last axes.

    aten::rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor
    """
    x, shape = call.value("input"), call.ints("normalized_shape")
    eps = call.argument("eps")
    if eps is None:
        eps = torch.finfo(call.example("input").dtype).eps
    scale = call.optional("weight") or call.full(shape, 1.0)
    return call.node(hub.RMSNormalization(axis=-len(shape), epsilon=float(eps)), x, call.cast(scale, x.dtype))


@torch_op(aten.group_norm.default)
def group_norm(call: Call) -> Value:
    """Normalize over groups of channels.

    aten::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None,
    float eps=1.0000000000000001e-05, bool cudnn_enabled=True) -> Tensor
    """
    return _group_norm(call, call.argument("num_groups"))


@torch_op(aten.native_group_norm.default)
def native_group_norm(call: Call) -> Result:
    """Normalize over groups of channels; mean and reciprocal deviation are computed if they are read.

    aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW,
    int group, float eps) -> (Tensor, Tensor, Tensor)
    """
    groups = call.argument("group")
    if not (call.reads_result(1) or call.reads_result(2)):
        return [_group_norm(call, groups), None, None]
    x = call.value("input")
    size = math.prod(x.shape[1:]) // groups
    rows = reshaped(call, x, (x.dims[0], groups, size))
    return [_group_norm(call, groups), *_statistics(call, rows, (2,))]


@torch_op(aten.instance_norm.default)
def instance_norm(call: Call) -> Value:
    """Normalize each channel of each image by itself, or by running statistics if there are any.

    aten::instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean,
    Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor
    """
    if not call.argument("use_input_stats"):
        return _batch_norm(call, training=False)
    x = call.value("input")
    scale, bias = _affine(call, (x.shape[1],))
    return call.node(hub.InstanceNormalization(epsilon=call.argument("eps")), x, scale, bias)


def _batch_norm(call: Call, training: bool) -> Value:
    mean, variance = call.optional("running_mean"), call.optional("running_var")
    if mean is None and variance is None:
        return _batch_norm_by_batch(call)
    if training or mean is None or variance is None:
        raise call.error(
            "normalizes by the statistics of its batch",
            hint="a net needs running statistics: track_running_stats=True, exported in evaluation mode",
        )
    scale = call.optional("weight") or call.full(mean.shape, 1.0, mean.dtype)
    bias = call.optional("bias") or call.full(mean.shape, 0.0, mean.dtype)
    op = hub.BatchNormalization(epsilon=call.argument("eps"))
    return call.node(op, call.value("input"), scale, bias, mean, variance)


def _batch_norm_by_batch(call: Call) -> Value:
    """Normalize each channel by its statistics over the batch, as without running ones."""
    x = call.value("input")
    axes = tuple(axis for axis in range(x.rank) if axis != 1)
    mean = reduced(call, hub.ReduceMean, x, axes, keep=True)
    centred = call.pointwise(hub.Sub(), x, mean)
    square = reduced(call, hub.ReduceMean, call.pointwise(hub.Mul(), centred, centred), axes, keep=True)
    shifted = call.pointwise(hub.Add(), square, call.full((), call.argument("eps"), x.dtype))
    found = call.pointwise(hub.Div(), centred, call.pointwise(hub.Sqrt(), shifted))
    column = (x.dims[1], *[1] * (x.rank - 2))
    for name, op in (("weight", hub.Mul()), ("bias", hub.Add())):
        factor = call.optional(name)
        if factor is not None:
            found = call.pointwise(op, found, reshaped(call, factor, column, kept=0))
    return found


def _statistics(call: Call, x: Value, axes: tuple[int, ...]) -> list[Value]:
    """Return the mean over `axes` and the reciprocal of the deviation, in the shapes of results 1 and 2."""
    mean = reduced(call, hub.ReduceMean, x, axes, keep=True)
    centred = call.pointwise(hub.Sub(), x, mean)
    square = reduced(call, hub.ReduceMean, call.pointwise(hub.Mul(), centred, centred), axes, keep=True)
    shifted = call.pointwise(hub.Add(), square, call.full((), call.argument("eps"), x.dtype))
    rest = call.pointwise(hub.Reciprocal(), call.pointwise(hub.Sqrt(), shifted))
    return [reshaped(call, v, dims) for v, dims in zip((mean, rest), call.result_dims[1:], strict=True)]


def _layer_norm(call: Call) -> Value:
    shape = call.ints("normalized_shape")
    scale = call.optional("weight") or call.full(shape, 1.0)
    op = hub.LayerNormalization(axis=-len(shape), epsilon=call.argument("eps"))
    return call.node(op, call.value("input"), scale, call.optional("bias"))


def _group_norm(call: Call, groups: int) -> Value:
    x = call.value("input")
    scale, bias = _affine(call, (x.shape[1],))
    op = hub.GroupNormalization(num_groups=groups, epsilon=call.argument("eps"))
    return call.node(op, x, scale, bias)


def _affine(call: Call, shape: Sequence[int]) -> tuple[Value, Value]:
    """Return scale and bias."""
    return call.optional("weight") or call.full(shape, 1.0), call.optional("bias") or call.full(shape, 0.0)
