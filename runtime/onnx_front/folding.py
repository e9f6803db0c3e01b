"""What depends on constants alone: moved lazily where only the order changes, else computed."""

from __future__ import annotations

from caffeforge.generated import hub
from caffeforge.runtime import array
from caffeforge.runtime.fold import fold
from caffeforge.runtime.graph import Node, Value, constant

_RESHAPES = (hub.Reshape, hub.Squeeze, hub.Unsqueeze, hub.Flatten)


def folded(node: Node) -> list[Value]:
    """Return the results of a node over constants, as constants without a name."""
    source = node.inputs[0]
    if source is not None and source.data is not None and len(node.outputs) == 1:
        dims = node.outputs[0].shape
        if isinstance(node.op, _RESHAPES):
            return [constant("", array.reshape(source.data, dims[:]))]
        if isinstance(node.op, hub.Transpose):
            return [constant("", array.transpose(source.data, node.op.perm))]
    fold(node)
    found = []
    for value in node.outputs:
        assert value.data is not None  # fold gives it
        found.append(constant("", value.data))
    return found
