"""Activations: functions of one element with a curve of their own, and softmax."""

from __future__ import annotations

import torch

from caffeforge.generated import hub
from caffeforge.runtime.array import reshape
from caffeforge.runtime.graph import Value, constant
from caffeforge.runtime.torch_front.call import Call
from caffeforge.runtime.torch_front.layout import split
from caffeforge.runtime.torch_front.registry import torch_op

aten = torch.ops.aten

_SHARP = 15.0  # softplus differs from its argument by less than exp(-15) beyond this


@torch_op(aten.relu.default)
def relu(call: Call) -> Value:
    """Lower as it is; of integers take the larger of each and zero: aten::relu(Tensor self) -> Tensor."""
    x = call.value("self")
    if "float" not in x.dtype:
        return call.node(hub.Max(), x, call.full((), 0))
    return call.node(hub.Relu(), x)


@torch_op(aten.leaky_relu.default)
def leaky_relu(call: Call) -> Value:
    """Lower as it is: aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor."""
    return call.node(hub.LeakyRelu(alpha=float(call.argument("negative_slope"))), call.value("self"))


@torch_op(aten.rrelu.default)
def rrelu(call: Call) -> Value:
    """Take the mean slope, as in evaluation mode.

    aten::rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False,
    Generator? generator=None) -> Tensor
    """
    if call.argument("training"):
        raise call.error("draws its slope at random", hint="pass training=self.training to the function")
    slope = (call.argument("lower") + call.argument("upper")) / 2
    return call.node(hub.LeakyRelu(alpha=float(slope)), call.value("self"))


@torch_op(aten.prelu.default, aten._prelu_kernel.default)
def prelu(call: Call) -> Value:
    """Give the slopes the place of the channels, from where ONNX spreads them.

    aten::prelu(Tensor self, Tensor weight) -> Tensor
    aten::_prelu_kernel(Tensor self, Tensor weight) -> Tensor
    """
    x, slope = call.value("self"), call.value("weight")
    if slope.data is None:
        raise call.error("has slopes that are computed", hint="make the slopes a parameter")
    if slope.rank == 1 and x.rank > 2:
        slope = constant("", reshape(slope.data, (slope.shape[0],) + (1,) * (x.rank - 2)))
    return call.node(hub.PRelu(), x, slope)


@torch_op(aten.sigmoid.default)
def sigmoid(call: Call) -> Value:
    """Lower as it is: aten::sigmoid(Tensor self) -> Tensor."""
    return call.node(hub.Sigmoid(), call.operand("self"))


@torch_op(aten.log_sigmoid.default)
def log_sigmoid(call: Call) -> Value:
    """Become -softplus(-x), which does not overflow: aten::log_sigmoid(Tensor self) -> Tensor."""
    negative = call.pointwise(hub.Neg(), call.value("self"))
    return call.node(hub.Neg(), call.pointwise(hub.Softplus(), negative))


@torch_op(aten.tanh.default)
def tanh(call: Call) -> Value:
    """Lower as it is: aten::tanh(Tensor self) -> Tensor."""
    return call.node(hub.Tanh(), call.operand("self"))


@torch_op(aten.relu6.default)
def relu6(call: Call) -> Value:
    """Clip to [0, 6]: aten::relu6(Tensor self) -> Tensor."""
    return call.node(hub.Clip(min=0.0, max=6.0), call.operand("self"))


@torch_op(aten.hardtanh.default)
def hardtanh(call: Call) -> Value:
    """Clip: aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor."""
    low, high = call.argument("min_val"), call.argument("max_val")
    return call.node(hub.Clip(min=float(low), max=float(high)), call.operand("self"))


@torch_op(aten.clamp.default, aten.clamp_min.default, aten.clamp_max.default)
def clamp(call: Call) -> Value:
    """Clip by the bounds that are given; of crossed bounds the upper one holds, as in ONNX.

    aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor
    aten::clamp_min(Tensor self, Scalar min) -> Tensor
    aten::clamp_max(Tensor self, Scalar max) -> Tensor
    """
    low, high = (float(call.argument(name)) if call.has(name) else None for name in ("min", "max"))
    if low is not None and high is not None and low > high:
        low = high
    return call.node(hub.Clip(min=low, max=high), call.operand("self"))


@torch_op(aten.clamp.Tensor, aten.clamp_min.Tensor, aten.clamp_max.Tensor)
def clamp_tensor(call: Call) -> Value:
    """Take the larger of tensor and lower bound, then the smaller of that and the upper bound.

    aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor
    aten::clamp_min.Tensor(Tensor self, Tensor min) -> Tensor
    aten::clamp_max.Tensor(Tensor self, Tensor max) -> Tensor
    """
    x = call.operand("self")
    if call.has("min"):
        x = call.pointwise(hub.Max(), x, call.operand("min"))
    if call.has("max"):
        x = call.pointwise(hub.Min(), x, call.operand("max"))
    return x


@torch_op(aten.threshold.default)
def threshold(call: Call) -> Value:
    """Replace what is not above the threshold.

    aten::threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor
    """
    x, limit = call.value("self"), call.argument("threshold")
    if call.argument("value") == 0 and "float" in x.dtype:
        return call.node(hub.ThresholdedRelu(alpha=float(limit)), x)
    above = call.pointwise(hub.Greater(), x, call.full((), limit), dtype="bool")
    return call.node(hub.Where(), above, x, call.full((), call.argument("value")))


@torch_op(aten.hardshrink.default)
def hardshrink(call: Call) -> Value:
    """Lower as it is: aten::hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor."""
    return call.node(hub.Shrink(lambd=float(call.argument("lambd"))), call.value("self"))


@torch_op(aten.softshrink.default)
def softshrink(call: Call) -> Value:
    """Lower as it is: aten::softshrink(Tensor self, Scalar lambd=0.5) -> Tensor."""
    limit = float(call.argument("lambd"))
    return call.node(hub.Shrink(lambd=limit, bias=limit), call.value("self"))


@torch_op(aten.gelu.default)
def gelu(call: Call) -> Value:
    """Lower as it is, exact or by tanh: aten::gelu(Tensor self, *, str approximate="none") -> Tensor."""
    return call.node(hub.Gelu(approximate=call.argument("approximate")), call.value("self"))


@torch_op(aten.silu.default)
def silu(call: Call) -> Value:
    """Lower as it is: aten::silu(Tensor self) -> Tensor."""
    return call.node(hub.Swish(), call.value("self"))


@torch_op(aten.mish.default)
def mish(call: Call) -> Value:
    """Lower as it is: aten::mish(Tensor self) -> Tensor."""
    return call.node(hub.Mish(), call.value("self"))


@torch_op(aten.hardswish.default)
def hardswish(call: Call) -> Value:
    """Lower as it is: aten::hardswish(Tensor self) -> Tensor."""
    return call.node(hub.HardSwish(), call.value("self"))


@torch_op(aten.hardsigmoid.default)
def hardsigmoid(call: Call) -> Value:
    """Clip x / 6 + 1/2 to [0, 1]: aten::hardsigmoid(Tensor self) -> Tensor."""
    return call.node(hub.HardSigmoid(alpha=1 / 6, beta=0.5), call.value("self"))


@torch_op(aten.elu.default)
def elu(call: Call) -> Value:
    """Lower ELU, SELU and CELU as they are; others are refused.

    aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor
    """
    alpha, scale, inner = (float(call.argument(name)) for name in ("alpha", "scale", "input_scale"))
    x = call.value("self")
    if scale == 1 and inner == 1:
        return call.node(hub.Elu(alpha=alpha), x)
    if inner == 1:
        return call.node(hub.Selu(alpha=alpha, gamma=scale), x)
    if scale == 1 and inner * alpha == 1:
        return call.node(hub.Celu(alpha=alpha), x)
    raise call.error(f"scales both its argument and its result, by {inner} and {scale}")


@torch_op(aten.selu.default)
def selu(call: Call) -> Value:
    """Lower as it is: aten::selu(Tensor self) -> Tensor."""
    return call.node(hub.Selu(), call.value("self"))


@torch_op(aten.celu.default)
def celu(call: Call) -> Value:
    """Lower as it is: aten::celu(Tensor self, Scalar alpha=1.) -> Tensor."""
    return call.node(hub.Celu(alpha=float(call.argument("alpha"))), call.value("self"))


@torch_op(aten.softplus.default)
def softplus(call: Call) -> Value:
    """Scale argument and result; beyond the threshold PyTorch gives x itself, which differs if it is low.

    aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor
    """
    x, beta, limit = call.value("self"), call.argument("beta"), call.argument("threshold")
    scaled = x if beta == 1 else call.pointwise(hub.Mul(), x, call.full((), beta))
    curve = call.pointwise(hub.Softplus(), scaled)
    if beta != 1:
        curve = call.pointwise(hub.Div(), curve, call.full((), beta))
    if limit >= _SHARP:
        return curve
    above = call.pointwise(hub.Greater(), scaled, call.full((), limit), dtype="bool")
    return call.node(hub.Where(), above, x, curve)


@torch_op(aten.glu.default)
def glu(call: Call) -> Value:
    """Multiply the first half by the gates of the second: aten::glu(Tensor self, int dim=-1) -> Tensor."""
    x = call.value("self")
    axis = call.axis("dim", x.rank)
    first, second = split(call, x, axis, [x.shape[axis] // 2] * 2)
    return call.node(hub.Mul(), first, call.pointwise(hub.Sigmoid(), second))


@torch_op(aten.softmax.int, aten._softmax.default, aten.special_softmax.default)
def softmax(call: Call) -> Value:
    """Lower as it is.

    aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor
    aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor
    aten::special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor
    """
    x = call.operand("self")
    if not x.rank:
        return call.node(hub.Div(), x, x)
    return call.node(hub.Softmax(axis=call.axis("dim", x.rank)), x)


@torch_op(aten.log_softmax.int, aten._log_softmax.default)
def log_softmax(call: Call) -> Value:
    """Lower as it is.

    aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor
    aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor
    """
    x = call.operand("self")
    if not x.rank:
        return call.node(hub.Sub(), x, x)
    return call.node(hub.LogSoftmax(axis=call.axis("dim", x.rank)), x)
