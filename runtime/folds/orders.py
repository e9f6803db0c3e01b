"""Orders of channels in the weights that read or make them: no layer has to move what weights can."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from caffeforge.generated import hub
from caffeforge.runtime.array import Array, Dense
from caffeforge.runtime.folds.following import Order, Step, Ways, moved_order
from caffeforge.runtime.folds.linear import Linear
from caffeforge.runtime.folds.weights import Ordered
from caffeforge.runtime.graph import Graph, Node, Value, constant
from caffeforge.runtime.refusal import Refused

New = dict[Node, list[Node]]


def join_orders(graph: Graph, modules: bool) -> list[Node]:
    """Return the nodes of `graph`, with permutations of channels in the weights before or behind them.

    Args:
        graph: what is to be lowered; it is not changed, but its results may have new producers.
        modules: also where a blob goes away that holds what a module returns.
    """
    ways = Ways(graph, modules)
    found: New = {}
    for node in graph.nodes:
        made = ways.alone(node)
        if made is None or getattr(node.op, "group", 1) != 1:
            continue
        for fold in (_before, _behind):
            try:
                new = fold(ways, made)
            except Refused:  # a size is a symbol
                continue
            if new and not any(old in found for old in new):
                found.update(new)
                break
    nodes = [new for node in graph.nodes for new in found.get(node, [node])]
    for node in nodes:
        node.own_outputs()
    return nodes


def _before(ways: Ways, made: Linear) -> New:
    """Return what reads channels in the order in which they are made."""
    steps = ways.before(made.node)
    for count in range(len(steps), 0, -1):
        path = steps[count - 1 :: -1]
        x = path[0].node.inputs[0]
        assert x is not None
        for shape, axis in _views(x, made):
            order = _order(path, x, shape, axis, made.axis)
            if order is None or list(order) == sorted(order):
                continue
            back = sorted(range(len(order)), key=order.__getitem__)
            new: New = {step.node: [] for step in path}
            new[made.node] = _reading(made, x, shape, back)
            return new
    return {}


def _views(x: Value, made: Linear) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield shapes in which a product can read `x` in place of its operand, and where channels are then."""
    due = made.x.dims
    if x.dims == due:
        yield x.shape[:], made.axis
    elif made.axis == made.x.rank - 1 and x.rank > 1 and x.dims[:-1] == due[:-1]:
        yield x.shape[:], x.rank - 1
    elif made.axis == 1 and made.x.rank == 2 and x.rank > 1 and x.dims[0] == due[0]:
        yield (x.shape[0], prod(x.shape[1:])), 1


def _order(path: Sequence[Step], x: Value, shape: tuple[int, ...], axis: int, now: int) -> Order | None:
    whole = path
    try:
        if shape != x.shape[:]:  # read as a row of all its elements
            flat = Value(x.name, x.dtype, shape)
            unfold = Node(x.name, hub.Reshape(shape=(-1, *x.shape[1:])), [flat], [Value("", x.dtype, x.dims)])
            whole = [Step(unfold), *path]
        return moved_order(whole, shape, axis, now)
    except Refused:
        return None


def _reading(made: Linear, x: Value, shape: tuple[int, ...], back: Sequence[int]) -> list[Node]:
    """Return the product that reads `x`, whose channel `i` was the `back[i]`-th."""
    node = made.node
    nodes = []
    if x.shape[:] != shape:
        flat = Value(f"{node.name}/flat", x.dtype, shape)
        nodes.append(Node(f"{node.name}/Flatten", hub.Flatten(axis=1), [x], [flat], node.origin))
        x = flat
    inputs = [x, _ordered(made.weight, back, made.columns_in), *node.inputs[2:]]
    return [*nodes, Node(node.name, node.op, inputs, node.outputs, node.origin)]


def _behind(ways: Ways, made: Linear) -> New:
    """Return what makes channels in the order in which they are read."""
    (y,) = made.node.outputs
    steps = ways.behind(y)
    for count in range(len(steps), 0, -1):
        path = steps[:count]
        (z,) = path[-1].node.outputs
        if z.dims != y.dims:
            continue
        try:
            order = moved_order(path, y.shape[:], made.axis, made.axis)
        except Refused:
            continue
        if order is None or list(order) == sorted(order):
            continue
        node = made.node
        inputs = [made.x, _ordered(made.weight, order, made.columns_out)]
        if made.bias is not None and made.bias.data is not None:
            numbers = made.bias.data.numpy().reshape(-1)
            bias: Array = Dense(numbers[list(order)] if numbers.size > 1 else numbers)
            inputs.append(constant(f"{made.bias.name}/ordered", bias))
        new: New = {step.node: [] for step in path}
        new[node] = [Node(node.name, node.op, inputs, [z], node.origin)]
        return new
    return {}


def _ordered(weight: Value, order: Sequence[int], axis: int) -> Value:
    assert weight.data is not None
    return constant(f"{weight.name}/ordered", Ordered(weight.data, order, axis))
