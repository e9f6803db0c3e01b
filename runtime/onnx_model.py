"""A hub graph as an ONNX model in memory, for onnxruntime and for ONNX's checker.

Weights are inputs of the model under their own names: whoever runs it binds them to the memory in which
they lie, so a model of any size is small and made in milliseconds.
"""

from __future__ import annotations

from typing import Final

import onnx
from onnx import ModelProto, TensorProto, helper

from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.graph import Graph, Value
from caffeforge.runtime.onnx_node import OPSET, PACKED, onnx_node, tensor, type_proto

# Constants of at most so many elements lie in the model: kernels want some constant, a copy costs nothing.
SMALL: Final = 256


def weights(graph: Graph) -> list[Value]:
    """Return the constants that `to_model` makes inputs of the model, in order of first use.

    All others lie in the model: small ones, those at positions where an op wants a constant, and those of
    less than a byte an element, which onnxruntime does not take by reference.
    """
    static = {
        value
        for node in graph.nodes
        for formal, value in zip(node.op.inputs, node.inputs, strict=False)
        if formal.static and value is not None
    }
    large = [value for value in graph.constants() if value not in static and _elements(value) > SMALL]
    return [value for value in large if value.dtype not in PACKED]


def to_model(graph: Graph, opset: int = OPSET) -> ModelProto:
    """Return `graph` as a model that passes ONNX's checker.

    Its inputs are the graph's inputs, then `weights(graph)`. Names of values and nodes are kept.

    Args:
        graph: nodes of ONNX's domain.
        opset: the hub's, or an older one in which the graph's ops have the same form.

    Raises:
        GraphError: the graph has no node, a node whose op is not ONNX's, or does not pass the checker.
    """
    if not graph.nodes:
        raise GraphError("a graph without nodes has no ONNX model", where=graph.name)
    taken = {value.name for value in graph.values()}
    nodes, initializers = [], []
    for node in graph.nodes:
        proto, statics = onnx_node(node, taken)
        nodes.append(proto)
        initializers += statics
    bound = weights(graph)
    initializers += [_initializer(value) for value in graph.constants() if value not in set(bound)]
    made = helper.make_graph(
        nodes,
        graph.name or "graph",
        [helper.make_value_info(value.name, type_proto(value)) for value in (*graph.inputs, *bound)],
        [helper.make_value_info(value.name, type_proto(value)) for value in graph.outputs],
        initializers,
    )
    imports = [helper.make_opsetid("", opset)]
    model: ModelProto = helper.make_model(
        made,
        opset_imports=imports,
        ir_version=helper.find_min_ir_version_for(imports),
        producer_name="caffeforge",
    )
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        raise GraphError(f"no valid ONNX model: {' '.join(str(error).split())}", where=graph.name) from None
    return model


def _initializer(value: Value) -> TensorProto:
    assert value.data is not None  # graph.constants() yields no other
    return tensor(value.name, value.data.numpy(), value.dtype)


def _elements(value: Value) -> int:
    assert value.data is not None
    return value.data.size
