"""Padding in the convolution that reads it: its own pad, a larger window, or its bias."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from caffeforge.generated import hub
from caffeforge.runtime.array import Array, Dense
from caffeforge.runtime.folds.following import Ways
from caffeforge.runtime.folds.linear import Linear
from caffeforge.runtime.graph import Graph, Node, Value, constant
from caffeforge.runtime.lib import pad_pairs
from caffeforge.runtime.refusal import Refused

Accepts = Callable[[Node], bool]
LARGE = 8.0  # a number so large, taken from x and put into a bias, would cost digits of x


def join_padding(graph: Graph, modules: bool, accepts: Accepts) -> list[Node]:
    """Return the nodes of `graph` with constant padding in the convolutions that read it.

    Args:
        graph: what is to be lowered; it is not changed, but its results may have new producers.
        modules: also where a blob goes away that holds what a module returns, and where windows grow.
        accepts: tells whether the target takes a node as it is.
    """
    ways = Ways(graph, modules)
    found: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        pad = ways.producers.get(node.inputs[0]) if node.inputs and node.inputs[0] is not None else None
        made = ways.alone(node) if pad is not None and isinstance(pad.op, hub.Pad) else None
        if pad is None or made is None or not ways.hidden(made.x, node):
            continue
        try:
            nodes = _joined(pad, made, modules)
        except Refused:  # what pads is computed, or a size is a symbol
            continue
        if nodes and all(map(accepts, nodes)):
            found |= {pad: [], node: nodes}
    nodes = [new for node in graph.nodes for new in found.get(node, [node])]
    for node in nodes:
        node.own_outputs()
    return nodes


def _joined(pad: Node, made: Linear, modules: bool) -> list[Node]:
    op, padding, x = made.node.op, pad.op, pad.inputs[0]
    assert isinstance(padding, hub.Pad)
    if not isinstance(op, hub.Conv) or padding.mode != "constant" or padding.pads is None or x is None:
        return []
    number = 0.0 if padding.constant_value is None else float(padding.constant_value)
    pairs = pad_pairs(padding.pads, padding.axes, x.rank)
    if (
        any(pairs[0] + pairs[1])
        or min(map(min, pairs)) < 0
        or (number and any(op.pads))
        or abs(number) > LARGE
    ):
        return []
    axes = len(op.kernel_shape)
    begins = [pair[0] + own for pair, own in zip(pairs[2:], op.pads[:axes], strict=True)]
    ends = [pair[1] + own for pair, own in zip(pairs[2:], op.pads[axes:], strict=True)]
    weight, sizes = made.weight, op.kernel_shape
    if begins != ends:
        if not modules or set(op.dilations) != {1}:
            return []
        weight, sizes = _grown(made, begins, ends)
        begins = ends = [max(pair) for pair in zip(begins, ends, strict=True)]
    bias: Value | None = made.bias
    nodes = []
    if number:
        assert made.weight.data is not None
        taps = made.weight.data.numpy().astype(np.float64)
        numbers = number * taps.sum(tuple(range(1, taps.ndim)))
        if made.bias is not None and made.bias.data is not None:
            numbers = numbers + made.bias.data.numpy()
        bias = constant(f"{made.node.name}/padded_bias", Dense(numbers.astype(np.float32)))
        less = Value(f"{pad.name}/less", x.dtype, x.dims)
        given = constant(f"{pad.name}/number", Dense(np.array(number, np.float32)))
        nodes.append(Node(f"{pad.name}/Sub", hub.Sub(), [x, given], [less], pad.origin))
        x = less
    whole = hub.Conv(
        kernel_shape=tuple(sizes),
        strides=op.strides,
        dilations=op.dilations,
        pads=(*begins, *ends),
        group=op.group,
    )
    return [*nodes, Node(made.node.name, whole, [x, weight, bias], made.node.outputs, made.node.origin)]


def _grown(made: Linear, begins: Sequence[int], ends: Sequence[int]) -> tuple[Value, tuple[int, ...]]:
    """Return weights and sizes of windows with zeros where the larger pad of an axis is too much."""
    assert made.weight.data is not None
    pairs = [(max(0, end - begin), max(0, begin - end)) for begin, end in zip(begins, ends, strict=True)]
    taps: Array = Dense(np.pad(made.weight.data.numpy(), [(0, 0), (0, 0), *pairs]))
    return constant(f"{made.weight.name}/grown", taps), taps.shape[2:]
