"""Moves that later ones undo: exchanges there and back, and axes turned to the front only to be cut there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np

from caffeforge.generated import hub
from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.folds.following import Step, Ways, doubled, follow, moves, places
from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.refusal import Refused

Layers = Callable[[Node], int]
New = dict[Node, list[Node]]


def leave_undone(graph: Graph, layers: Layers, modules: bool) -> list[Node]:
    """Return the nodes of `graph` without moves that later ones undo.

    Args:
        graph: lowered; it is not changed, but the results of its nodes may have new producers.
        layers: tells how many layers the target writes for a node, 0 if it does not take it as it is.
        modules: also where a blob goes away that holds what a module returns.
    """
    ways = Ways(graph, modules)
    found: New = {}
    for node in reversed(graph.nodes):
        if not moves(node) or node in found:
            continue
        try:
            new = _cut_before(ways, node) if isinstance(node.op, hub.Split) else _reshaped(ways, node)
        except Refused:  # a size is a symbol, or there are too many elements
            continue
        if new and not any(old in found for old in new) and _saves(new, layers, ways):
            found.update(new)
    nodes = [new for node in graph.nodes for new in found.get(node, [node])]
    for node in nodes:
        node.own_outputs()
    return nodes


def _saves(new: New, layers: Layers, ways: Ways) -> bool:
    """Tell whether the target takes the new nodes; a reshape that another follows at once costs nothing."""
    made = [node for nodes in new.values() for node in nodes]
    counts = [layers(node) for node in made]
    free = [
        isinstance(node.op, hub.Reshape)
        and all(isinstance(user.op, hub.Reshape) for user in ways.users[value])
        for node in made
        for value in node.outputs[:1]
        if value in ways.users
    ]
    return all(counts) and sum(counts) - sum(free) < sum(map(layers, new))


def _turns(steps: Sequence[Step]) -> bool:
    return any(isinstance(step.node.op, (hub.Transpose, caffe_ops.Exchange)) for step in steps)


def _reshaped(ways: Ways, node: Node) -> New:
    """Return the reshape that a chain of moves up to `node` is, if it is one."""
    if len(node.outputs) != 1:
        return {}
    steps = [Step(node), *ways.before(node)]
    (result,) = node.outputs
    for count in range(len(steps), 1, -1):
        path = steps[count - 1 :: -1]
        x = path[0].node.inputs[0]
        if x is None or not _turns(path) or not _same(path, x):
            continue
        new: New = {step.node: [] for step in path}
        new[node] = [Node(node.name, _reshape(x, result), [x], [result], node.origin)]
        return new
    return {}


def _same(path: Sequence[Step], x: Value) -> bool:
    """Tell whether all elements of `x` are in their order again, whatever the batch."""
    shape = x.shape[:]
    due = places(shape)
    if not np.array_equal(follow(path, due).reshape(-1), due.reshape(-1)):
        return False
    try:
        due = places(doubled(shape)) if shape[0] == 1 else due
        return np.array_equal(follow(path, due).reshape(-1), due.reshape(-1))
    except Refused:  # the moves are fixed to their batch anyhow
        return True


def _cut_before(ways: Ways, split: Node) -> New:
    """Return cuts of what is turned, for cuts of what was turned first."""
    steps = ways.before(split)
    for count in range(len(steps), 0, -1):
        path = steps[count - 1 :: -1]
        x = path[0].node.inputs[0]
        axis = _cut_axis(path, split, x) if x is not None and _turns(path) else None
        if x is None or axis is None:
            continue
        sizes = (
            [value.shape[split.op.axis] for value in split.outputs] if isinstance(split.op, hub.Split) else []
        )
        parts = [x.shape[axis] // sum(sizes) * size for size in sizes]
        pieces = [
            Value(f"{value.name}/cut", value.dtype, (*x.dims[:axis], part, *x.dims[axis + 1 :]))
            for value, part in zip(split.outputs, parts, strict=True)
        ]
        nodes = [Node(split.name, hub.Split(axis=axis, split=tuple(parts)), [x], pieces, split.origin)]
        for piece, value in zip(pieces, split.outputs, strict=True):
            nodes.append(
                Node(f"{value.name}/Reshape", _reshape(piece, value), [piece], [value], split.origin)
            )
        new: New = {step.node: [] for step in path}
        new[split] = nodes
        return new
    return {}


def _cut_axis(path: Sequence[Step], split: Node, x: Value) -> int | None:
    """Return the axis of `x` along which its pieces lie as the split yields them."""
    assert isinstance(split.op, hub.Split)
    whole = places(x.shape[:])
    turned = follow(path, whole)
    sizes = [value.shape[split.op.axis] for value in split.outputs]
    pieces = np.split(turned, list(accumulate(sizes))[:-1], split.op.axis)
    for axis, size in enumerate(x.shape[:]):
        if size % sum(sizes):
            continue
        ends = [end * size // sum(sizes) for end in accumulate(sizes)][:-1]
        if all(map(_alike, pieces, np.split(whole, ends, axis))):
            return axis
    return None


def _alike(a: np.typing.NDArray[np.int64], b: np.typing.NDArray[np.int64]) -> bool:
    return np.array_equal(a.reshape(-1), b.reshape(-1))


def _reshape(x: Value, result: Value) -> hub.Reshape:
    """Return the reshape that leaves the batch open: it stays, or is what the other axes leave."""
    return hub.Reshape(shape=(0 if x.dims[0] == result.dims[0] else -1, *result.shape[1:]))
