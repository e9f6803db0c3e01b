"""What a generated emitter is called with: a node's operands and results, those that are fields left out."""

from __future__ import annotations

from collections.abc import Sequence

from caffeforge.runtime.graph import Node, Value


def arguments(node: Node) -> Sequence[object]:
    """Return inputs that are no fields of the op, then results, as an emitter takes them."""
    arguments: list[object] = []
    given: list[Value | None] = [*node.inputs]
    for index, formal in enumerate(node.op.inputs):
        if formal.option == "variadic":
            arguments.append(tuple(given[index:]))
        elif not formal.static:
            arguments.append(given[index] if index < len(given) else None)
    for index, formal in enumerate(node.op.outputs):
        if formal.option == "variadic":
            arguments.append(tuple(node.outputs[index:]))
        else:
            arguments.append(node.outputs[index] if index < len(node.outputs) else None)
    return arguments
