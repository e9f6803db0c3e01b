"""Scales and shifts into the weights of the convolution or matrix product before or after them.

What lies between may move elements about: each is followed from where it is made to where it is scaled.
A fold by which a blob goes away that holds what a module returns is made on request only, and so is that of
a batch normalization: the net would have fewer layers, and no longer those of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from caffeforge.generated import hub
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.folds.following import Step, Ways, doubled, follow, followed, moves, places
from caffeforge.runtime.folds.linear import Linear, Vector
from caffeforge.runtime.folds.scaling import Scaling, scaled_by, scaling, unscaled
from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.refusal import Refused

Layers = Callable[[Node], int]
Vectors = tuple[Vector, Vector]  # scale and shift, one number for each channel
LARGE = 8.0  # a shift so large may cancel what x has: sums of x are rounded worse than x


class Fold(NamedTuple):
    """What stands for nodes, None for one that is left out."""

    nodes: Mapping[Node, Node | None]


def join_weights(graph: Graph, layers: Layers, modules: bool) -> list[Node]:
    """Return the nodes of `graph` with scales and shifts in the weights beside them.

    Args:
        graph: lowered; it is not changed, but the results of its nodes may have new producers.
        layers: tells how many layers the target writes for a node, 0 if it does not take it as it is.
        modules: also where a blob goes away that holds what a module returns, and batch normalizations.
    """
    found: dict[Node, Node | None] = {}
    search = _Search(graph, modules)
    for node in graph.nodes:
        fold = None if node in found else search.fold(node)
        if fold is None or any(old in found for old in fold.nodes):
            continue
        if _saves(fold, layers):
            found.update(fold.nodes)
    nodes = [new for node in graph.nodes for new in [found.get(node, node)] if new is not None]
    for node in nodes:
        node.own_outputs()
    return nodes


def _saves(fold: Fold, layers: Layers) -> bool:
    """Tell whether the target takes what a fold makes, and writes fewer layers for it."""
    new = [layers(node) for node in fold.nodes.values() if node is not None]
    return all(new) and sum(new) < sum(map(layers, fold.nodes))


class _Search(Ways):
    """Finds what can be folded into the weights of one node."""

    def fold(self, node: Node) -> Fold | None:
        """Return what folds the scale and shift that `node` is, if it is one and anything holds it."""
        kept = unscaled(node) if self.modules else None
        given = scaling(node) if kept is None else scaled_by(node, kept)
        if given is None or (isinstance(node.op, hub.BatchNormalization) and not self.modules):
            return None
        try:
            before = self._before(node, given) if kept is None else None
            return before or self._behind(node, given, kept)
        except Refused:  # a size is a symbol
            return None

    def _before(self, node: Node, given: Scaling) -> Fold | None:
        """Return the fold into what makes the operand."""
        steps: list[Step] = []
        value, reader = given.x, node
        while True:
            producer = self.producers.get(value)
            if producer is None or not self.hidden(value, reader):
                return None
            found = self.alone(producer)
            if found is not None:
                break
            if not moves(producer):
                return None
            steps.insert(0, Step(producer, producer.outputs.index(value)))
            operand, reader = producer.inputs[0], producer
            assert operand is not None
            value = operand
        vectors = _traced(found, steps, given)
        if vectors is None:
            return None
        (result,) = node.outputs
        new: dict[Node, Node | None] = {node: None}
        inner = _again(value, "scaled") if steps else result
        new[found.node] = found.then(*vectors, inner)
        _moved(steps, inner, result, new)
        return Fold(new)

    def _behind(self, node: Node, given: Scaling, kept: Node | None) -> Fold | None:
        """Return the fold into what reads the result; what is `kept` of `node` yields the operand."""
        steps: list[Step] = []
        (value,) = node.outputs
        while True:
            users = self.users[value]
            if len(users) != 1 or not self.hidden(value, users[0]):
                return None
            found = self.alone(users[0])
            if found is not None and found.x is value:
                break
            if not moves(users[0]) or len(users[0].outputs) != 1:
                return None
            steps.append(Step(users[0], 0))
            (value,) = users[0].outputs
        if np.abs(given.shift).max() > LARGE:
            return None
        vectors = _arriving(found, steps, node.outputs[0], given)
        if vectors is None:
            return None
        new: dict[Node, Node | None] = {node: kept}
        x = given.x
        for step in steps:
            (old,) = step.node.outputs
            moved = _again(old, "unscaled")
            new[step.node] = _reading(step.node, x, [moved])
            x = moved
        made = found.of(x, *vectors)
        if made is None:
            return None
        new[found.node] = made
        return Fold(new)


def _traced(found: Linear, steps: Sequence[Step], given: Scaling) -> Vectors | None:
    """Return (scale, shift) by channel of what `found` yields, None if they vary within a channel."""
    (made,) = found.node.outputs
    if not steps:
        return _by_channel(found.axis, made, given)
    return _same(lambda shape: _spread(found, steps, given, shape), made.shape[:])


def _spread(found: Linear, steps: Sequence[Step], given: Scaling, shape: Sequence[int]) -> Vectors | None:
    at = follow(steps, places(shape))
    results = []
    for numbers, rest in ((given.scale, 1.0), (given.shift, 0.0)):
        whole = np.full(shape, rest)
        whole.reshape(-1)[at.reshape(-1)] = np.broadcast_to(numbers, at.shape).reshape(-1)
        results.append(_channels(whole, found.axis))
    scale, shift = results
    return (scale, shift) if scale is not None and shift is not None else None


def _arriving(found: Linear, steps: Sequence[Step], scaled: Value, given: Scaling) -> Vectors | None:
    """Return (scale, shift) by channel of what `found` reads, None if they vary within a channel."""
    if not steps:
        return _by_channel(found.axis, scaled, given)
    return _same(lambda shape: _carried(found, steps, given, shape), scaled.shape[:])


def _carried(found: Linear, steps: Sequence[Step], given: Scaling, shape: Sequence[int]) -> Vectors | None:
    followed(shape)
    results = []
    for numbers in (given.scale, given.shift):
        whole: NDArray = np.broadcast_to(numbers, shape)
        results.append(_channels(follow(steps, whole), found.axis))
    scale, shift = results
    return (scale, shift) if scale is not None and shift is not None else None


def _same(vectors: Callable[[Sequence[int]], Vectors | None], shape: Sequence[int]) -> Vectors | None:
    """Return the vectors for a shape, None if those for a batch of two in place of one are others."""
    found = vectors(shape)
    if found is None or shape[0] > 1:
        return found
    try:
        again = vectors(doubled(shape))
    except Refused:  # what moves the elements is fixed to its batch anyhow
        return found
    if again is None or not all(np.array_equal(*pair) for pair in zip(found, again, strict=True)):
        return None
    return found


def _by_channel(axis: int, value: Value, given: Scaling) -> Vectors | None:
    """Return `given` as one number for each index along `axis`, None if it varies along another."""
    results = []
    for numbers in (given.scale, given.shift):
        dims = (1,) * (value.rank - numbers.ndim) + numbers.shape
        if any(size != 1 for at, size in enumerate(dims) if at != axis):
            return None
        results.append(np.broadcast_to(numbers.reshape(-1), (value.shape[axis],)))
    return results[0], results[1]


def _channels(whole: NDArray, axis: int) -> Vector | None:
    rows = np.moveaxis(whole, axis, 0).reshape(whole.shape[axis], -1)
    return rows[:, 0].astype(np.float64) if (rows == rows[:, :1]).all() else None


def _again(value: Value, word: str) -> Value:
    """Return a value like `value`, for other elements in its place."""
    return Value(f"{value.name}/{word}", value.dtype, value.dims)


def _moved(steps: Sequence[Step], x: Value, result: Value, new: dict[Node, Node | None]) -> None:
    """Let `steps` move `x` on to `result`."""
    for step in steps:
        tops = list(step.node.outputs)
        tops[step.place] = result if step is steps[-1] else _again(tops[step.place], "scaled")
        new[step.node] = _reading(step.node, x, tops)
        x = tops[step.place]


def _reading(node: Node, x: Value, results: Sequence[Value]) -> Node:
    return Node(node.name, node.op, [x, *node.inputs[1:]], results, node.origin)
