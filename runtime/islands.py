"""Cuts a graph into islands that one engine runs: ONNX's own nodes, and all others.

onnxruntime has kernels of a few ops for an older opset only; those are islands too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from caffeforge.runtime.array import TEXT
from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.miscomputed import is_miscomputed
from caffeforge.runtime.onnx_node import OPSET, PACKED

# Opset 22 added element types to these and nothing else; onnxruntime (1.32) has kernels up to 21 only.
_OLDER: Final = {"GlobalLpPool": 21, "MaxRoiPool": 21, "RoiAlign": 21}


@dataclass(frozen=True)
class Island:
    """Consecutive nodes as a graph: its inputs come from before, its outputs are read later or asked for.

    Attributes:
        opset: the version of ONNX's domain that all nodes are of; None if none is of that domain.
        kernels: whether onnxruntime computes them as ONNX says.
    """

    graph: Graph
    opset: int | None
    kernels: bool = True


def needed(graph: Graph, goals: Iterable[Value]) -> list[Node]:
    """Return the nodes that `goals` depend on, in the graph's order."""
    wanted = set(goals)
    kept = []
    for node in reversed(graph.nodes):
        if not wanted.isdisjoint(node.outputs):
            kept.append(node)
            wanted.update(value for value in node.inputs if value is not None)
    return kept[::-1]


def islands(nodes: Sequence[Node], goals: Iterable[Value]) -> list[Island]:
    """Cut `nodes`, which are in order, so that running the islands one after another computes `goals`."""
    runs = [(kind, list(run)) for kind, run in groupby(nodes, _kind)]
    read_later = set(goals)
    found = []
    for (opset, kernels), run in reversed(runs):
        computed = {value: None for node in run for value in node.outputs}
        read = {v: None for node in run for v in node.inputs if v is not None and v.data is None}
        outputs = [value for value in computed if value in read_later]
        inputs = [value for value in read if value not in computed]
        name = outputs[0].name if outputs else run[-1].name
        found.append(Island(Graph(name, inputs, outputs, run), opset, kernels))
        read_later.update(inputs)
    return found[::-1]


def _kind(node: Node) -> tuple[int | None, bool]:
    if node.op.domain:
        return None, True
    return _OLDER.get(node.op.op_type, OPSET), not (is_miscomputed(node) or _is_held_otherwise(node))


def _is_held_otherwise(node: Node) -> bool:
    """Tell whether a node reads or yields what onnxruntime does not hold in memory as NumPy does.

    Constants of such types can lie in the model.
    """
    values = [value for value in node.inputs if value is not None and value.data is None] + node.outputs
    return any(value.dtype == TEXT or value.dtype in PACKED for value in values)
