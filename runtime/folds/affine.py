"""Chains of ops by numbers, as (x * 2 + 1) ** 0.5, as one op."""

from __future__ import annotations

from typing import NamedTuple

from caffeforge.generated import hub
from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.lib import is_scalar, scalar

CANCELS = 8.0  # a shift so large may be there to cancel what is left of x: what follows it stays apart


class Affine(NamedTuple):
    """(x * scale + shift) ** power."""

    x: Value
    scale: float = 1.0
    shift: float = 0.0
    power: float = 1.0

    def after(self, inner: Affine) -> Affine | None:
        """Return this of what `inner` gives as one, None if it is none or would be rounded otherwise."""
        if self.scale == 1 and self.shift == 0 and self.power == -1:
            return inner._replace(power=-inner.power)
        if inner.power != 1 or not inner.scale or not self.scale:
            return None
        if abs(inner.shift) > CANCELS and (abs(self.scale) != 1 or self.shift):
            return None
        return Affine(inner.x, inner.scale * self.scale, inner.shift * self.scale + self.shift, self.power)

    def node(self, like: Node) -> Node:
        """Return the node that yields what `like` does."""
        op = caffe_ops.Power(scale=self.scale, shift=self.shift, power=self.power)
        return Node(like.name, op, [self.x], like.outputs, like.origin)


def join_affine(graph: Graph) -> dict[Node, Node]:
    """Return for the last node of each chain of two or more the one that stands for all."""
    users, outputs = graph.users(), set(graph.outputs)
    whole: dict[Value, Affine] = {}
    lengths: dict[Value, int] = {}
    for node in graph.nodes:
        own = affine(node)
        if own is None:
            continue
        (result,) = node.outputs
        inner = whole.get(own.x)
        alone = len(users[own.x]) == 1 and own.x not in outputs
        joined = own.after(inner) if inner is not None and alone else None
        whole[result] = joined or own
        lengths[result] = lengths[own.x] + 1 if joined else 1
    ends = {result for result, length in lengths.items() if length > 1}
    for result in [*ends]:
        for user in users[result]:
            if any(lengths.get(after, 0) == lengths[result] + 1 for after in user.outputs):
                ends.discard(result)
    return {node: whole[node.outputs[0]].node(node) for node in graph.nodes if node.outputs[0] in ends}


def affine(node: Node) -> Affine | None:
    """Return what a node does by numbers to its one computed operand, None if it does something else."""
    op, inputs = node.op, node.inputs
    if isinstance(op, caffe_ops.Power):
        return Affine(inputs[0], op.scale, op.shift, op.power) if inputs[0] is not None else None
    unary = {hub.Neg: (-1.0, 0.0, 1.0), hub.Not: (-1.0, 1.0, 1.0), hub.Sqrt: (1.0, 0.0, 0.5)}
    unary |= {hub.Reciprocal: (1.0, 0.0, -1.0)}
    if type(op) in unary and inputs[0] is not None:
        return Affine(inputs[0], *unary[type(op)])
    if len(inputs) != 2 or None in inputs:
        return None
    a, b = (value for value in inputs if value is not None)
    if is_scalar(b) and a.data is None and a.dims == node.outputs[0].dims:
        return _of_right(op, a, scalar(b))
    if is_scalar(a) and b.data is None and b.dims == node.outputs[0].dims:
        return _of_left(op, scalar(a), b)
    return None


def _of_right(op: object, x: Value, number: float) -> Affine | None:
    if isinstance(op, hub.Mul):
        return Affine(x, number)
    if isinstance(op, hub.Div) and number:
        return Affine(x, 1 / number)
    if isinstance(op, hub.Add):
        return Affine(x, shift=number)
    if isinstance(op, hub.Sub):
        return Affine(x, shift=-number)
    return Affine(x, power=number) if isinstance(op, hub.Pow) else None


def _of_left(op: object, number: float, x: Value) -> Affine | None:
    if isinstance(op, hub.Mul):
        return Affine(x, number)
    if isinstance(op, hub.Div) and number:
        return Affine(x, 1 / number, power=-1.0)
    if isinstance(op, hub.Add):
        return Affine(x, shift=number)
    return Affine(x, -1.0, number) if isinstance(op, hub.Sub) else None
