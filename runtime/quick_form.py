"""A graph in the form that onnxruntime makes the most of, for runs of which no inner value is asked.

Nets of Caffe say with several layers what ONNX says with one node: a bound on values as the greater of two
negatives, a pool of whole windows as a larger pool that is cut. What other exporters write is what
onnxruntime's optimizer looks for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from caffeforge.generated import hub
from caffeforge.runtime.array import Full, Reshaped
from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.islands import needed

# (node) -> the node to put in its place, with the same result; None where it stays.
_Step = Callable[[Node], Node | None]


def quick_form(graph: Graph) -> Graph:
    """Return a graph with the same inputs and outputs in fewer nodes; `graph` stays as it is."""
    quick = _copy(graph)
    same: dict[Value, Value] = {}
    read = {*quick.outputs, *(value for node in quick.nodes for value in node.inputs)}
    nodes: list[Node] = []
    for node in quick.nodes:
        node.inputs = [None if value is None else same.get(value, value) for value in node.inputs]
        if isinstance(node.op, hub.Identity) and node.outputs[0] not in quick.outputs:
            same[node.outputs[0]] = _first(node)
            continue
        if read.isdisjoint(node.outputs[1:]):
            node = _in_fewer(node)
        nodes.append(node)
    return Graph(quick.name, quick.inputs, quick.outputs, needed(Graph("", [], [], nodes), quick.outputs))


def _in_fewer(node: Node) -> Node:
    """Return what computes the node's first result in fewer nodes, or the node."""
    for step in _STEPS:
        node = step(node) or node
    return node


def _copy(graph: Graph) -> Graph:
    """Return a graph of new nodes and results over the same constants."""
    new = {value: _unmade(value) for value in graph.inputs}  # another island's nodes are out of reach
    nodes = []
    for node in graph.nodes:
        new.update({value: _unmade(value) for value in node.outputs})
        operands = [None if value is None else new.get(value, value) for value in node.inputs]
        nodes.append(Node(node.name, node.op, operands, [new[value] for value in node.outputs], node.origin))
    inputs, outputs = ([new[value] for value in values] for values in (graph.inputs, graph.outputs))
    return Graph(graph.name, inputs, outputs, nodes)


def _unmade(value: Value) -> Value:
    return Value(value.name, value.dtype, value.dims)


def _bound(node: Node) -> Node | None:
    """Return Clip in the place of Max or Min with one number everywhere."""
    floats = node.outputs[0].dtype in ("float16", "float32", "float64")
    if not isinstance(node.op, (hub.Max, hub.Min)) or len(node.inputs) != 2 or not floats:
        return None
    for value, other in (node.inputs, node.inputs[::-1]):
        number = _number(other)
        if value is None or number is None or value.data is not None or value.dims != node.outputs[0].dims:
            continue
        op = hub.Clip(min=number) if isinstance(node.op, hub.Max) else hub.Clip(max=number)
        return Node(node.name, op, [value], node.outputs, node.origin)
    return None


def _bound_of_negative(node: Node) -> Node | None:
    """Return Clip in the place of ``-Clip(-x)``."""
    inner = _negated(node)
    clip = None if inner is None else inner.producer
    if clip is None or not isinstance(clip.op, hub.Clip) or len(clip.inputs) > 1:
        return None
    low, high = clip.op.max, clip.op.min
    if low is not None and high is not None and low < high:
        return None  # then one bound wins, and would be the other
    value = None if clip.inputs[0] is None or clip.inputs[0].producer is None else clip.inputs[0]
    negated = None if value is None or value.producer is None else _negated(value.producer)
    if negated is None or negated.dims != node.outputs[0].dims:
        return None
    op = hub.Clip(min=None if low is None else -low, max=None if high is None else -high)
    return Node(node.name, op, [negated], node.outputs, node.origin)


def _bounds_at_once(node: Node) -> Node | None:
    """Return one Clip in the place of Clip behind Clip or Relu."""
    before = node.inputs[0].producer if isinstance(node.op, hub.Clip) and node.inputs[0] is not None else None
    if before is None or not isinstance(node.op, hub.Clip):
        return None
    if len(before.inputs) > 1 or len(node.inputs) > 1:
        return None  # a bound is computed
    low: float | None
    high: float | None
    if isinstance(before.op, hub.Relu):
        low, high = 0.0, None
    elif isinstance(before.op, hub.Clip):
        low, high = before.op.min, before.op.max
    else:
        return None
    bounds = (
        [b for b in (low, node.op.min) if b is not None],
        [b for b in (high, node.op.max) if b is not None],
    )
    least, most = max(bounds[0], default=None), min(bounds[1], default=None)
    if least is not None and most is not None and least > most:
        return None  # then the order of the two matters
    return Node(node.name, hub.Clip(min=least, max=most), before.inputs, node.outputs, node.origin)


def _pool_of_fewer_windows(node: Node) -> Node | None:
    """Return a pool without the last windows, which a split cuts off: its first piece."""
    value = _first(node) if isinstance(node.op, hub.Split) else None
    pool = None if value is None else value.producer
    if pool is None or not isinstance(node.op, hub.Split) or not isinstance(pool.op, hub.MaxPool):
        return None
    plane = node.op.axis % value.rank - 2 if value is not None else -1
    if plane < 0 or len(pool.outputs) > 1 or not isinstance(pool.op.pads, tuple):
        return None
    first, size = node.outputs[0], _first(pool).dims[plane + 2]
    count = first.dims[plane + 2]
    if not isinstance(size, int) or not isinstance(count, int):
        return None
    before, spatial = pool.op.pads[plane], len(pool.op.kernel_shape)
    reach = (
        (count - 1) * pool.op.strides[plane]
        + (pool.op.kernel_shape[plane] - 1) * pool.op.dilations[plane]
        + 1
    )
    after = max(0, reach - before - size)
    if (size + before + after - reach) // pool.op.strides[plane]:
        return None  # another window would still fit
    pads = list(pool.op.pads)
    pads[spatial + plane] = after
    op = hub.MaxPool(
        kernel_shape=pool.op.kernel_shape,
        dilations=pool.op.dilations,
        pads=tuple(pads),
        strides=pool.op.strides,
    )
    return Node(node.name, op, pool.inputs, [first], node.origin)


_STEPS: Final[tuple[_Step, ...]] = (_bound, _bound_of_negative, _bounds_at_once, _pool_of_fewer_windows)


def _negated(node: Node) -> Value | None:
    """Return x of ``x * -1``."""
    if not isinstance(node.op, hub.Mul):
        return None
    value, factor = node.inputs
    return value if _number(factor) == -1 else None


def _number(value: Value | None) -> float | None:
    """Return the number that a constant holds everywhere, if it is made of one."""
    data = None if value is None else value.data
    while isinstance(data, Reshaped):
        data = data.source
    return float(data.value) if isinstance(data, Full) else None


def _first(node: Node) -> Value:
    value = node.inputs[0]
    assert value is not None  # the op has at least this operand
    return value
