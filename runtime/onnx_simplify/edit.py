"""Changing a graph: a value takes the place of a result, and nodes that nothing needs go."""

from __future__ import annotations

from collections.abc import Iterable

from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.islands import needed


def take_place(graph: Graph, result: Value, value: Value) -> bool:
    """Let what reads `result` read `value`; return whether that can be.

    An output keeps its name: `value` takes it over, which an input, a constant or another output cannot.
    """
    if result in graph.outputs:
        if value.producer is None or value in graph.outputs:
            return False
        value.name = result.name
        graph.outputs = [value if output is result else output for output in graph.outputs]
    for node in graph.nodes:
        node.inputs = [value if operand is result else operand for operand in node.inputs]
    return True


def remove(graph: Graph, nodes: Iterable[Node]) -> None:
    """Remove nodes, and those whose results nothing needs then."""
    gone = set(map(id, nodes))
    graph.nodes = [node for node in graph.nodes if id(node) not in gone]
    graph.nodes = needed(graph, graph.outputs)


def only_reader(graph: Graph, value: Value) -> Node | None:
    """Return the one node that reads a value once, None if there are others or it is an output."""
    readers = [node for node in graph.nodes for operand in node.inputs if operand is value]
    return readers[0] if len(readers) == 1 and value not in graph.outputs else None
