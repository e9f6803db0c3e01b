"""What each layer of a net costs: numbers that it holds, and multiplications that it adds up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Final

from caffeforge.runtime.backend import Backend
from caffeforge.runtime.graph import Node, Symbol, Value
from caffeforge.runtime.hub_from_net import hub_from_net
from caffeforge.runtime.net import Net
from caffeforge.runtime.random_weights import Blank, Ones

_GATES: Final = {"LSTM": 4, "GRU": 3, "RNN": 1}


@dataclass(frozen=True)
class LayerCost:
    """One layer.

    Attributes:
        tops: the shape of each, a symbol's name for a size that only a run tells.
        parameters: numbers in its blobs; 0 if they are another layer's.
        macs: multiply-accumulates of its convolutions, matrix products and recurrent steps for the shapes
            of the net; None where a size is known only when the net runs. Other arithmetic is not counted.
    """

    name: str
    type: str
    tops: Mapping[str, tuple[int | str, ...]]
    parameters: int
    macs: int | None


def layer_costs(net: Net, backend: Backend, seed: int | None = None) -> list[LayerCost]:
    """Return the costs of all layers, in order.

    Args:
        net: the net; one without any weights counts those that it needs.
        backend: its dialect.
        seed: give layers without weights random ones although others have some.

    Raises:
        ReadError: a layer's meaning is not known, or its weights are missing.
    """
    bare = not any(layer.blobs for layer in net.layers)
    hub = hub_from_net(net, backend, seed=0 if bare else seed, blank=Ones if bare else Blank)
    costs: list[LayerCost] = []
    for layer, nodes in zip(net.layers, hub.nodes, strict=True):
        each = [macs(node) for node in nodes]
        total = None if None in each else sum(count for count in each if count is not None)
        parameters = 0 if layer.borrows else sum(blob.size for blob in layer.blobs)
        tops = {name: _sizes(value) for name, value in zip(layer.tops, hub.tops[len(costs)], strict=True)}
        costs.append(LayerCost(layer.name, layer.type, tops, parameters, total))
    return costs


def macs(node: Node) -> int | None:
    """Return the multiply-accumulates of a node; None if they depend on a size that only a run tells."""
    kind = node.op.op_type
    if node.op.domain or kind not in _COUNTS:
        return 0
    values = [value for value in (*node.inputs, *node.outputs) if value is not None]
    if any(isinstance(dim, Symbol) for value in values for dim in value.dims):
        return None
    return _COUNTS[kind](node)


def _conv(node: Node) -> int:
    weights = _operand(node, 1).shape[:]
    return prod(node.outputs[0].shape[:]) * prod(weights[1:])


def _conv_transpose(node: Node) -> int:
    weights = _operand(node, 1).shape[:]
    return prod(_operand(node, 0).shape[:]) * prod(weights[1:])


def _matrix(node: Node) -> int:
    left = _operand(node, 0).shape[:]
    inner = left[0] if getattr(node.op, "transA", 0) else left[-1]
    return prod(node.outputs[0].shape[:]) * inner


def _recurrent(node: Node) -> int:
    steps, batch, inputs = _operand(node, 0).shape[:]
    directions, _, hidden = _operand(node, 2).shape[:]
    return steps * batch * directions * _GATES[node.op.op_type] * hidden * (inputs + hidden)


def _operand(node: Node, index: int) -> Value:
    value = node.inputs[index]
    assert value is not None  # an operand that the op must have
    return value


_COUNTS: Final = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Gemm": _matrix,
    "GRU": _recurrent,
    "LSTM": _recurrent,
    "MatMul": _matrix,
    "RNN": _recurrent,
}


def _sizes(value: Value) -> tuple[int | str, ...]:
    return tuple(dim if isinstance(dim, int) else dim.name for dim in value.dims)
