"""A node as its file had it, with the names of the model that is written."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto, ModelProto, NodeProto

from caffeforge.runtime.onnx_out.emit import OpCall
from caffeforge.runtime.onnx_out.names import Names


def renamed(call: OpCall, names: Names) -> NodeProto:
    """Return the node of a call that holds one, with the names of its operands and results now."""
    model = ModelProto.FromString(call.proto)
    (node,) = model.graph.node
    operands = (value for value in call.operands if value is not None)
    known = {info.name: names[value] for info, value in zip(model.graph.input, operands, strict=True)}
    given = zip((info.name for info in model.graph.output), call.results, strict=True)
    results = {name: value for name, value in given if value is not None}
    node.name = names.of_node(call)
    node.input[:] = [known.get(name, "") for name in node.input]
    node.output[:] = [names[results[name]] if name in results else "" for name in node.output]
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            _rename(graph, known, names)
    return node


def _rename(graph: GraphProto, outer: Mapping[str, str], names: Names) -> None:
    """Give the values of an inner graph names that no other value of the model has."""
    known = dict(outer)
    for value in graph.input:
        known[value.name] = value.name = names.fresh(value.name)
    for tensor in graph.initializer:
        known[tensor.name] = tensor.name = names.fresh(tensor.name)
    for node in graph.node:
        node.input[:] = [known.get(name, name) for name in node.input]
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                _rename(inner, known, names)
        for index, name in enumerate(node.output):
            if name:
                node.output[index] = known[name] = names.fresh(name)
    for value in (*graph.output, *graph.value_info):
        value.name = known.get(value.name, value.name)
