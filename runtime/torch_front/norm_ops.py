"""Normalizations."""

from __future__ import annotations

import torch

from caffeforge.generated import hub
from caffeforge.runtime.graph import Value
from caffeforge.runtime.torch_front.call import Call
from caffeforge.runtime.torch_front.registry import torch_op

aten = torch.ops.aten


@torch_op(aten.batch_norm.default)
def batch_norm(call: Call) -> Value:
    """Normalize by the running statistics; without affine parameters, scale by one and shift by zero.

    aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var,
    bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor
    """
    mean, variance = call.optional("running_mean"), call.optional("running_var")
    if call.argument("training") or mean is None or variance is None:
        raise call.error(
            "normalizes by the statistics of its batch",
            hint="a net needs running statistics: track_running_stats=True, exported in evaluation mode",
        )
    scale = call.optional("weight") or call.full(mean.shape, 1.0, mean.dtype)
    bias = call.optional("bias") or call.full(mean.shape, 0.0, mean.dtype)
    return call.node(
        hub.BatchNormalization(epsilon=call.argument("eps")), call.value("input"), scale, bias, mean, variance
    )
