"""Moves one after the other that are one move, and nodes that are there twice."""

from __future__ import annotations

from typing import Final

from caffeforge.generated import hub
from caffeforge.runtime.graph import Graph, Node, Symbol, Value
from caffeforge.runtime.onnx_simplify.edit import remove, take_place

_RESHAPES: Final = (hub.Reshape, hub.Flatten, hub.Squeeze, hub.Unsqueeze)


def as_changes_of_shape(graph: Graph) -> int:
    """Say by Reshape what only moves axes of one element; return how often.

    The order of elements stays, and changes of shape before or behind can be joined with it.
    """
    count = 0
    for node in graph.nodes:
        value = node.inputs[0] if isinstance(node.op, hub.Transpose) else None
        if value is None or not isinstance(node.op, hub.Transpose):
            continue
        real = [axis for axis in node.op.perm if value.dims[axis] != 1]
        shape = _shape(node.outputs[0])
        if real == sorted(real) and shape is not None and list(node.op.perm) != sorted(node.op.perm):
            node.op = hub.Reshape(shape=shape)
            count += 1
    return count


def join_moves(graph: Graph) -> int:
    """Make one of two transposes, or of two changes of shape, in a row; return how many."""
    count = 0
    for node in graph.nodes:
        before = node.inputs[0].producer if node.inputs and node.inputs[0] is not None else None
        if before is None or before.inputs[0] is None:
            continue
        if isinstance(node.op, hub.Transpose) and isinstance(before.op, hub.Transpose):
            first = before.op.perm
            node.op = hub.Transpose(perm=tuple(first[axis] for axis in node.op.perm))
        elif isinstance(node.op, _RESHAPES) and isinstance(before.op, _RESHAPES):
            shape = _shape(node.outputs[0])
            if shape is None:
                continue
            node.op = hub.Reshape(shape=shape)
        else:
            continue
        node.inputs = [before.inputs[0]]
        count += 1
    remove(graph, ())
    return count


def _shape(value: Value) -> tuple[int, ...] | None:
    """Return a shape for Reshape, None if more than one size is not known."""
    symbols = [dim for dim in value.dims if isinstance(dim, Symbol)]
    if len(symbols) > 1 or 0 in value.dims:
        return None
    return tuple(-1 if isinstance(dim, Symbol) else dim for dim in value.dims)


def join_duplicates(graph: Graph) -> int:
    """Let what reads a node's results read those of an earlier node that is the same; return how many."""
    seen: dict[object, Node] = {}
    gone = []
    for node in graph.nodes:
        if node.op.op_type.startswith(("Random", "Bernoulli", "Multinomial")):
            continue
        key = (node.op, tuple(map(_key, node.inputs)), len(node.outputs))
        first = seen.setdefault(key, node)
        if first is not node and not any(value in graph.outputs for value in node.outputs):
            for result, value in zip(node.outputs, first.outputs, strict=True):
                take_place(graph, result, value)
            gone.append(node)
    remove(graph, gone)
    return len(gone)


def _key(value: Value | None) -> object:
    """Return what makes an operand the same: small constants count by their elements."""
    if value is None or value.data is None or value.data.size > 16:
        return value
    return (value.dtype, value.dims, value.data.numpy().tobytes())
