"""What comes after a layer with weights and can be part of them: batch norm, factors and bias of channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffeforge.generated import hub
from caffeforge.runtime.array import Dense, NDArray
from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.onnx_simplify.edit import only_reader, remove, take_place

_FLOATS = ("float32", "float64")


def fold_into_weights(graph: Graph) -> int:
    """Fold what scales or shifts the channels of a convolution into its weights; return how often."""
    count = 0
    for node in list(graph.nodes):
        if not isinstance(node.op, (hub.Conv, hub.ConvTranspose)) or not _constant(node):
            continue
        while _fold_next(graph, node):
            count += 1
    return count


def _constant(node: Node) -> bool:
    weights = node.inputs[1:]
    return all(v is not None and v.data is not None and v.dtype in _FLOATS for v in weights)


def _fold_next(graph: Graph, node: Node) -> bool:
    """Fold the one reader of a convolution's result, if it can be."""
    result = node.outputs[0]
    reader = only_reader(graph, result)
    found = _factor_and_shift(reader, result) if reader is not None else None
    if reader is None or found is None:
        return False
    weight, bias = node.inputs[1], node.inputs[2] if len(node.inputs) > 2 else None
    assert weight is not None and weight.data is not None
    factor, shift = (np.broadcast_to(part, (_channels(node),)).astype(np.float64) for part in found)
    old = bias.data.numpy() if bias is not None and bias.data is not None else np.zeros(_channels(node))
    result_of = reader.outputs[0]
    if not take_place(graph, result_of, result):
        return False
    scaled = _scaled(node, weight.data.numpy().astype(np.float64), factor)
    node.inputs = [
        node.inputs[0],
        _value(graph, weight.name, scaled, weight.dtype),
        _value(
            graph, bias.name if bias is not None else f"{node.name}.bias", old * factor + shift, weight.dtype
        ),
    ]
    remove(graph, [reader])
    return True


def _channels(node: Node) -> int:
    """Return how many channels a convolution gives."""
    weight = node.inputs[1]
    assert weight is not None
    if isinstance(node.op, hub.ConvTranspose):
        return weight.shape[1] * node.op.group
    return weight.shape[0]


def _scaled(node: Node, weight: NDArray, factor: NDArray) -> NDArray:
    tail = (1,) * (weight.ndim - 2)
    if isinstance(node.op, hub.ConvTranspose):
        groups = weight.reshape(node.op.group, -1, *weight.shape[1:])
        scaled = groups * factor.reshape(node.op.group, 1, weight.shape[1], *tail)
        return np.asarray(scaled.reshape(weight.shape))
    return np.asarray(weight * factor.reshape(-1, 1, *tail))


def _factor_and_shift(node: Node, value: Value) -> tuple[Any, Any] | None:
    """Return what a node multiplies the channels of `value` with, and what it adds then."""
    if isinstance(node.op, hub.BatchNormalization) and node.op.training_mode == 0:
        parts = [v.data.numpy().astype(np.float64) for v in node.inputs[1:] if v is not None and v.data]
        if len(parts) != 4 or node.inputs[0] is not value or len(node.outputs) > 1:
            return None
        scale, bias, mean, variance = parts
        factor = scale / np.sqrt(variance + node.op.epsilon)
        return factor, bias - mean * factor
    if not isinstance(node.op, (hub.Add, hub.Mul)):
        return None
    other = next((v for v in node.inputs if v is not None and v is not value), None)
    if other is None or other.data is None or other.dtype not in _FLOATS:
        return None
    shape = (1,) * (value.rank - other.rank) + other.data.shape
    numbers: NDArray = other.data.numpy().reshape(shape)
    if len(shape) != value.rank or numbers.size != shape[1]:
        return None
    flat = numbers.reshape(-1)
    return (flat, 0.0) if isinstance(node.op, hub.Mul) else (1.0, flat)


def _value(graph: Graph, name: str, elements: NDArray, dtype: str) -> Value:
    """Return a new constant; its name is another one where other nodes keep the old."""
    taken = {value.name for value in graph.values()}
    while name in taken:
        name += "_"
    return Value(name, dtype, elements.shape, Dense(elements.astype(dtype)))
