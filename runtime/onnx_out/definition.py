"""What ONNX itself says of an op: the body of its function, for an opset that lacks the op."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, defs, helper

from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.graph import Node, Value
from caffeforge.runtime.onnx_front.functions import Functions
from caffeforge.runtime.onnx_front.importer import Importer
from caffeforge.runtime.onnx_front.model_file import open_model
from caffeforge.runtime.onnx_node import DTYPES, OPSET, onnx_node, tensor, type_proto
from caffeforge.runtime.onnx_out.emit import OnnxEmit
from caffeforge.runtime.refusal import Refused

PLACE: Final = "ONNX's definition"  # of the rule
_DOMAIN: Final = "caffeforge.definition"


@cache
def is_defined(op_type: str) -> bool:
    """Tell whether ONNX says an op of the hub by other ops."""
    try:
        schema: Any = defs.get_schema(op_type, OPSET, "")
    except Exception:  # onnx raises a class that it does not name
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)


def write_definition(e: OnnxEmit, *_: object) -> None:
    """Say an op by the ops of its definition.

    Raises:
        Refused: the definition says something else of such operands, or cannot be read.
    """
    node = e.node
    proto, statics = onnx_node(node, {value.name for value in (*node.inputs, *node.outputs) if value})
    results = [value for value in node.outputs if value not in e.unread]
    proto.output[:] = [value.name if value in results else "" for value in node.outputs]
    known = {value.name: value for value in node.inputs if value is not None}
    known |= {t.name: Value(t.name, DTYPES[t.data_type], t.dims) for t in statics}
    body = Functions(ModelProto()).body_of(proto, [known.get(name) for name in proto.input], OPSET)
    if body is None:
        raise Refused("ONNX defines it for other operands only", PLACE)
    operands = [value for value in dict.fromkeys(node.inputs) if value is not None]
    model = _model(proto, body, operands, results)
    model.graph.initializer.extend(statics)
    try:
        graph = Importer(open_model(model)).run()
    except CaffeforgeError as error:
        raise Refused(f"its definition cannot be read: {error.what}", PLACE) from None
    fed = [value for value in operands if value.data is None]
    names = {value.name: value for value in fed}
    values = {value: names[value.name] for value in graph.inputs}
    values |= dict(zip(graph.outputs, results, strict=True))
    e.nodes += _spliced(e, graph.nodes, values)


def _model(proto: NodeProto, body: FunctionProto, operands: list[Value], results: list[Value]) -> ModelProto:
    """Return a model that calls the definition as a function of its own."""
    proto.domain = body.domain = _DOMAIN
    body.name = proto.op_type
    graph = GraphProto(name=proto.name, node=[proto])
    for value in operands:
        if value.data is None:
            graph.input.append(helper.make_value_info(value.name, type_proto(value)))
        else:
            graph.initializer.append(tensor(value.name, value.data.numpy(), value.dtype))
    graph.output.extend(helper.make_value_info(value.name, type_proto(value)) for value in results)
    imports = [helper.make_opsetid("", OPSET), helper.make_opsetid(_DOMAIN, 1)]
    return ModelProto(ir_version=10, graph=graph, functions=[body], opset_import=imports)


def _spliced(e: OnnxEmit, nodes: list[Node], values: dict[Value, Value]) -> Iterator[Node]:
    """Yield nodes over the values of the node that they define, with names of their own."""
    for inner in nodes:
        for value in (*inner.inputs, *inner.outputs):
            if value is not None and value not in values:
                values[value] = Value(e.fresh(inner.op.op_type), value.dtype, value.dims, value.data)
        inputs = [None if value is None else values[value] for value in inner.inputs]
        outputs = [values[value] for value in inner.outputs]
        yield Node(outputs[0].name, inner.op, inputs, outputs, e.node.origin)
