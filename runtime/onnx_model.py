"""A hub graph as an ONNX model in memory, for onnxruntime and for ONNX's checker.

Weights are no part of the model. They are its inputs under their own names, or named as data outside it:
whoever runs it binds them to the memory in which they lie, so a model of any size is small and made in
milliseconds.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import onnx
from onnx import ModelProto, TensorProto, helper

from caffeforge.generated import hub
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.graph import Graph, Value
from caffeforge.runtime.onnx_node import OPSET, PACKED, element_type, onnx_node, tensor, type_proto

# Constants of at most so many elements lie in the model: kernels want some constant, a copy costs nothing.
SMALL: Final = 256

# What an engine makes one of several of, where it knows the weights.
_FOLDED: Final = (hub.Conv, hub.ConvTranspose, hub.BatchNormalization, hub.Mul, hub.Add, hub.Sub, hub.Div)


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


def known_weights(graph: Graph) -> list[Value]:
    """Return the weights that an engine folds into others or lays out anew, if it knows them when it loads.

    Those of matrix products are not among them: an engine would only hold a second copy, as large as the
    first, to be a little faster.
    """
    others = {value for node in graph.nodes if not isinstance(node.op, _FOLDED) for value in node.inputs}
    return [value for value in weights(graph) if value not in others]


def to_model(graph: Graph, opset: int = OPSET, known: Collection[Value] = ()) -> ModelProto:
    """Return `graph` as a model that passes ONNX's checker.

    Its inputs are the graph's inputs, then `weights(graph)`. Names of values and nodes are kept.

    Args:
        graph: nodes of ONNX's domain.
        opset: the hub's, or an older one in which the graph's ops have the same form.
        known: weights that are no inputs but initializers whose data lies elsewhere, for an engine that is
            given them when it loads the model. Checkers look for a file then, so none is asked.

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
    held = set(weights(graph))
    initializers += [_initializer(value) for value in graph.constants() if value not in held]
    initializers += [_elsewhere(value) for value in known]
    bound = [value for value in weights(graph) if value not in known]
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
    if known:
        return model
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        raise GraphError(f"no valid ONNX model: {' '.join(str(error).split())}", where=graph.name) from None
    return model


def _initializer(value: Value) -> TensorProto:
    assert value.data is not None  # graph.constants() yields no other
    return tensor(value.name, value.data.numpy(), value.dtype)


def _elsewhere(value: Value) -> TensorProto:
    proto = TensorProto(name=value.name, data_type=element_type(value.dtype), dims=value.shape[:])
    proto.data_location = TensorProto.EXTERNAL
    proto.external_data.add(key="location", value=value.name)
    return proto


def _elements(value: Value) -> int:
    assert value.data is not None
    return value.data.size
