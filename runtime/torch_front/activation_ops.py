"""Activations: functions of one element, and softmax."""

from __future__ import annotations

import torch

from caffeforge.generated import hub
from caffeforge.runtime.graph import Value
from caffeforge.runtime.torch_front.call import Call
from caffeforge.runtime.torch_front.registry import torch_op

aten = torch.ops.aten


@torch_op(aten.relu.default)
def relu(call: Call) -> Value:
    """Lower as it is: aten::relu(Tensor self) -> Tensor."""
    return call.node(hub.Relu(), call.value("self"))


@torch_op(aten.leaky_relu.default)
def leaky_relu(call: Call) -> Value:
    """Lower as it is: aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor."""
    return call.node(hub.LeakyRelu(alpha=float(call.argument("negative_slope"))), call.value("self"))


@torch_op(aten.sigmoid.default)
def sigmoid(call: Call) -> Value:
    """Lower as it is: aten::sigmoid(Tensor self) -> Tensor."""
    return call.node(hub.Sigmoid(), _floating(call))


@torch_op(aten.tanh.default)
def tanh(call: Call) -> Value:
    """Lower as it is: aten::tanh(Tensor self) -> Tensor."""
    return call.node(hub.Tanh(), _floating(call))


@torch_op(aten.relu6.default)
def relu6(call: Call) -> Value:
    """Clip to [0, 6]: aten::relu6(Tensor self) -> Tensor."""
    return call.node(hub.Clip(min=0.0, max=6.0), _floating(call))


@torch_op(aten.hardtanh.default)
def hardtanh(call: Call) -> Value:
    """Clip: aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor."""
    low, high = call.argument("min_val"), call.argument("max_val")
    return call.node(hub.Clip(min=float(low), max=float(high)), _floating(call))


@torch_op(aten.clamp.default, aten.clamp_min.default, aten.clamp_max.default)
def clamp(call: Call) -> Value:
    """Clip by the bounds that are given.

    aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor
    aten::clamp_min(Tensor self, Scalar min) -> Tensor
    aten::clamp_max(Tensor self, Scalar max) -> Tensor
    """
    low, high = (float(call.argument(name)) if call.has(name) else None for name in ("min", "max"))
    return call.node(hub.Clip(min=low, max=high), _floating(call))


@torch_op(aten.softmax.int, aten._softmax.default)
def softmax(call: Call) -> Value:
    """Lower as it is.

    aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor
    aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor
    """
    x = _floating(call)
    return call.node(hub.Softmax(axis=call.axis("dim", x.rank)), x)


def _floating(call: Call) -> Value:
    """Return the argument `self`, which must have the result's type and be no integer."""
    x = call.value("self")
    if x.dtype != call.dtype or "float" not in x.dtype:
        raise call.error(f"takes {x.dtype} to {call.dtype}", hint="convert the input to float before")
    return x
