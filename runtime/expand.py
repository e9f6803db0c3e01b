"""Expand: ops of a backend's own domain as the ops that their references say they are."""

from __future__ import annotations

from caffeforge.runtime.arguments import arguments
from caffeforge.runtime.builder import Builder
from caffeforge.runtime.graph import Graph, Node


def expand(graph: Graph) -> Graph:
    """Return a graph over the same values in which every op that has a reference is replaced by it."""
    if not any(_has_reference(node) for node in graph.nodes):
        return graph
    nodes: list[Node] = []
    for node in graph.nodes:
        nodes += _expanded(node)
    return Graph(graph.name, graph.inputs, graph.outputs, nodes)


def _has_reference(node: Node) -> bool:
    return node.op.custom is not None and node.op.custom.reference is not None


def _expanded(node: Node) -> list[Node]:
    if node.op.custom is None or node.op.custom.reference is None:
        return [node]
    builder = Builder(node.name, node.origin)
    node.op.custom.reference(builder, node.op, *arguments(node))
    for inner in builder.nodes:
        for value in inner.outputs:
            value.producer = inner
    return [found for inner in builder.nodes for found in _expanded(inner)]
