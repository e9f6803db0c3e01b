"""Scales and shifts by constants, whichever op says them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from caffeforge.generated import hub
from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import Full
from caffeforge.runtime.folds.affine import affine
from caffeforge.runtime.graph import Node, Value, constant

Numbers = npt.NDArray[np.float64]
ONE, ZERO = np.ones(()), np.zeros(())


class Scaling(NamedTuple):
    """``scale * x + shift``; both broadcast to x, and are float64."""

    x: Value
    scale: Numbers = ONE
    shift: Numbers = ZERO


def scaling(node: Node) -> Scaling | None:
    """Return how `node` scales and shifts its one computed operand, None if it does something else."""
    found = _scaling(node)
    if found is None or found.x.data is not None or found.x.dtype != "float32":
        return None
    if len(node.outputs) != 1 or found.x.dims != node.outputs[0].dims:
        return None
    known = np.isfinite(found.scale).all() and np.isfinite(found.shift).all()
    return found if known else None


def unscaled(node: Node) -> Node | None:
    """Return a layer normalization that does not scale, for one that does; its result is another value."""
    op, (x, scale, bias) = node.op, (*node.inputs, None, None, None)[:3]
    if not isinstance(op, hub.LayerNormalization) or len(node.outputs) != 1 or x is None or scale is None:
        return None
    if not _known(*(value for value in (scale, bias) if value is not None)):
        return None
    (result,) = node.outputs
    ones = constant(f"{scale.name}/ones", Full(scale.shape[:], 1.0))
    normal = Value(f"{result.name}/unscaled", result.dtype, result.dims)
    return Node(node.name, op, [x, ones], [normal], node.origin)


def scaled_by(node: Node, kept: Node) -> Scaling:
    """Return what a layer normalization makes of the result of `kept`, that without it."""
    scale, bias = (_numbers(value) if value is not None else ZERO for value in (*node.inputs[1:], None)[:2])
    return Scaling(kept.outputs[0], scale, bias)


def _scaling(node: Node) -> Scaling | None:
    op, inputs = node.op, [value for value in node.inputs if value is not None]
    if isinstance(op, hub.BatchNormalization):
        return _normalization(op, inputs)
    if isinstance(op, caffe_ops.Scale):
        x, scale, shift = inputs
        return Scaling(x, _numbers(scale), _numbers(shift)) if _known(scale, shift) else None
    if isinstance(op, (hub.Mul, hub.Add, hub.Sub, hub.Div)) and len(inputs) == 2:
        left, right = inputs
        if _known(right):
            return _by(op, left, _numbers(right))
        if _known(left) and isinstance(op, (hub.Mul, hub.Add)):
            return _by(op, right, _numbers(left))
        if _known(left) and isinstance(op, hub.Sub):
            return Scaling(right, -ONE, _numbers(left))
        return None
    plain = affine(node)
    if plain is None or plain.power != 1:
        return None
    return Scaling(plain.x, np.array(plain.scale), np.array(plain.shift))


def _by(op: object, x: Value, numbers: Numbers) -> Scaling | None:
    if isinstance(op, hub.Mul):
        return Scaling(x, numbers)
    if isinstance(op, hub.Div):
        return Scaling(x, 1 / numbers) if numbers.all() else None
    return Scaling(x, shift=-numbers if isinstance(op, hub.Sub) else numbers)


def _normalization(op: hub.BatchNormalization, inputs: list[Value]) -> Scaling | None:
    if len(inputs) != 5 or op.training_mode or not _known(*inputs[1:]):
        return None
    scale, bias, mean, variance = (_numbers(value) for value in inputs[1:])
    factors = scale / np.sqrt(variance + op.epsilon)
    dims = (-1, *[1] * (inputs[0].rank - 2))
    return Scaling(inputs[0], factors.reshape(dims), (bias - mean * factors).reshape(dims))


def _known(*values: Value) -> bool:
    return all(value.data is not None and value.dtype == "float32" for value in values)


def _numbers(value: Value) -> Numbers:
    assert value.data is not None
    return value.data.numpy().astype(np.float64)
