"""Nodes that the hub could not say, written as their file had them where versions are the same."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from caffeforge.generated import onnx as versions
from caffeforge.runtime.onnx_out.emit import OnnxEmit, OpCall
from caffeforge.runtime.op import Op
from caffeforge.runtime.refusal import Refused

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto


def is_kept(op: Op) -> bool:
    """Tell whether an op is a node as a file had it; only the ONNX front end makes such ones."""
    module = sys.modules.get("caffeforge.runtime.onnx_front.kept")
    return module is not None and isinstance(op, module.Kept)


def write_kept(e: OnnxEmit, op: Any, *_: object) -> None:
    """Write a kept node as it is.

    Raises:
        Refused: an op in it has another version in the target's opset, or is the file's own function.
    """
    from onnx import ModelProto

    model = ModelProto.FromString(op.model)
    *before_it, node = model.graph.node
    if before_it:
        raise Refused("it reads a sequence of tensors", e.rule)
    old = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 1)
    for inner in _nodes(node):
        if inner.domain not in ("", "ai.onnx"):
            if _is_own(model, inner):
                raise Refused(f"{inner.domain}.{inner.op_type} is a function of the file", e.rule)
            continue
        before, after = (versions.find(inner.op_type, opset) for opset in (old, e.backend.opset))
        if before is not after:
            where = f"{inner.op_type} of opset {old} is another one in opset {e.backend.opset}"
            raise Refused(f"{where}: {op.reason}", e.rule)
    domain = "" if node.domain == "ai.onnx" else node.domain
    since = before.since if not domain and (before := versions.find(node.op_type, old)) else 0
    call = OpCall(
        e.stem, node.op_type, domain, since, (), list(e.node.inputs), list(e.node.outputs), e.node, e.rule
    )
    call.proto = op.model
    e.calls.append(call)


def _nodes(node: NodeProto) -> Iterator[NodeProto]:
    """Yield a node and those of the graphs within it."""
    yield node
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from _nodes(inner)


def _is_own(model: ModelProto, node: NodeProto) -> bool:
    return any((f.domain, f.name) == (node.domain, node.op_type) for f in model.functions)
