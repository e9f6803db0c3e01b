"""Nodes that give what they are given."""

from __future__ import annotations

from typing import Final

import numpy as np

from caffeforge.generated import hub
from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.onnx_simplify.edit import remove, take_place

# Ops that keep the order of elements: they change nothing where the shape stays.
_KEEP_ORDER: Final = (hub.Reshape, hub.Flatten, hub.Expand, hub.Squeeze, hub.Unsqueeze, hub.Tile)
_NEUTRAL: Final = {"Add": 0, "Sub": 0, "Mul": 1, "Div": 1}


def without_identities(graph: Graph) -> int:
    """Remove nodes that give one of their operands; return how many."""
    gone = []
    for node in graph.nodes:
        value = _given(node)
        if value is not None and take_place(graph, node.outputs[0], value):
            gone.append(node)
    remove(graph, gone)
    return len(gone)


def _given(node: Node) -> Value | None:
    """Return the operand that a node gives as it is, None if it computes something."""
    first = node.inputs[0] if node.inputs else None
    if first is None or len(node.outputs) != 1:
        return None
    result, op = node.outputs[0], node.op
    same = first.dims == result.dims and first.dtype == result.dtype
    if isinstance(op, (hub.Identity, hub.Dropout)) or (isinstance(op, hub.Cast) and same):
        return first if not isinstance(op, hub.Dropout) or not op.training_mode else None
    if op.op_type in _NEUTRAL:
        return _without_effect(node)
    if not same:
        return None
    if isinstance(op, _KEEP_ORDER) or (isinstance(op, (hub.Concat, hub.Sum)) and len(node.inputs) == 1):
        return first
    if isinstance(op, hub.Transpose):
        return first if list(op.perm) == list(range(first.rank)) else None
    if isinstance(op, hub.Pad):
        return first if op.pads is not None and not any(op.pads) else None
    if isinstance(op, hub.Slice):
        known = op.starts is not None and op.ends is not None
        return first if known and all(step == 1 for step in op.steps or ()) else None
    return None


def _without_effect(node: Node) -> Value | None:
    """Return the operand to which a node adds zeros, or that it multiplies with ones."""
    neutral = _NEUTRAL[node.op.op_type]
    places = ((0, 1), (1, 0)) if node.op.op_type in ("Add", "Mul") else ((0, 1),)
    for kept, other in places:
        value, constant = node.inputs[kept], node.inputs[other]
        if value is None or constant is None or constant.data is None or value.data is not None:
            continue
        if value.dims == node.outputs[0].dims and bool(np.all(constant.data.numpy() == neutral)):
            return value
    return None
