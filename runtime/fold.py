"""Folding: what depends on constants alone is computed when the model is converted."""

from __future__ import annotations

from collections.abc import Sequence

from caffeforge.runtime.array import Dense
from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.op import Op


def is_foldable(op: Op, inputs: Sequence[Value | None]) -> bool:
    """Tell whether an op has operands, all of which are constants.

    Identity is not folded: it is how a rule asks for a layer that yields a constant.
    """
    if op.op_type == "Identity":
        return False
    given = [value for value in inputs if value is not None]
    return bool(given) and all(value.data is not None for value in given)


def fold(node: Node) -> None:
    """Give the results of a node over constants their elements."""
    from caffeforge.runtime.executor import Executor

    graph = Graph(node.name, [], node.outputs, [node])
    results = Executor(graph, threads=1, exact=True).run({})  # no pool for a node
    for value in node.outputs:
        value.data = Dense(results[value.name])
        value.producer = None


def fold_constants(graph: Graph) -> None:
    """Compute the nodes of `graph` that depend on constants alone, in place; outputs stay computed."""
    outputs = set(graph.outputs)
    kept = []
    for node in graph.nodes:
        if is_foldable(node.op, node.inputs) and not outputs.intersection(node.outputs):
            fold(node)
        else:
            kept.append(node)
    graph.nodes = kept
