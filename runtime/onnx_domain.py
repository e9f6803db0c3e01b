"""A graph with ops of a backend's own domain as an ONNX model: nodes of that domain, with local functions.

A reference is written for given attributes and shapes, so there is one function for each of these: functions
of one op differ in ONNX's ``overload``, and their attributes are constants in their bodies. onnxruntime
tells overloads apart; onnx's reference evaluator (1.23) does not, and runs the last one for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import onnx
from onnx import FunctionProto, ModelProto, NodeProto, TensorProto, helper

from caffeforge.runtime.builder import Builder
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.onnx_model import weights
from caffeforge.runtime.onnx_node import OPSET, attribute_proto, onnx_node, tensor, type_proto
from caffeforge.runtime.op import Op

VERSION = 1  # of a backend's domain: it has one mapping


def to_model_with_functions(graph: Graph, *, bind_weights: bool = False) -> ModelProto:
    """Return `graph` as a model that passes ONNX's checker.

    An op of a domain of its own has a function if its mapping gives a reference; one without can be run only
    by an engine that knows the op.

    Args:
        graph: nodes of ONNX's domain, or of a backend's own.
        bind_weights: make large constants inputs of the model, as ``onnx_model.to_model`` does.

    Raises:
        GraphError: the graph has no node, or does not pass the checker.
    """
    if not graph.nodes:
        raise GraphError("a graph without nodes has no ONNX model", where=graph.name)
    body = _Body({value.name for value in graph.values()})
    for node in graph.nodes:
        body.add(node)
    bound = weights(graph) if bind_weights else []
    held = [_initializer(value) for value in graph.constants() if value not in set(bound)]
    inputs, outputs = (
        [helper.make_value_info(value.name, type_proto(value)) for value in values]
        for values in ((*graph.inputs, *bound), graph.outputs)
    )
    made = helper.make_graph(body.nodes, graph.name or "graph", inputs, outputs, [*held, *body.statics])
    model: ModelProto = helper.make_model(
        made,
        functions=list(body.functions.values()),
        opset_imports=_imports(body.domains),
        ir_version=helper.find_min_ir_version_for([helper.make_opsetid("", OPSET)]),
        producer_name="caffeforge",
    )
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        raise GraphError(f"no valid ONNX model: {' '.join(str(error).split())}", where=graph.name) from None
    return model


_Key = tuple[Op, tuple[str, ...]]


@dataclass
class _Body:
    """The nodes of a model or function in the making; `functions` is shared with those within it."""

    taken: set[str]
    functions: dict[_Key, FunctionProto] = field(default_factory=dict)
    nodes: list[NodeProto] = field(default_factory=list)
    statics: list[TensorProto] = field(default_factory=list)
    domains: dict[str, None] = field(default_factory=dict)

    def add(self, node: Node) -> None:
        """Append a node, and the function of its op if it has a reference."""
        if not node.op.domain:
            proto, statics = onnx_node(node, self.taken)
            self.nodes.append(proto)
            self.statics += statics
            return
        self.domains[node.op.domain] = None
        proto = NodeProto(op_type=node.op.op_type, domain=node.op.domain, name=node.name)
        proto.input.extend(value.name if value is not None else "" for value in node.inputs)
        proto.output.extend(value.name for value in node.outputs)
        proto.attribute.extend(attribute_proto(a, value, node.name) for a, value in node.op.fields())
        if node.op.custom is not None and node.op.custom.reference is not None:
            proto.overload = self._function(node).overload
        self.nodes.append(proto)

    def _function(self, node: Node) -> FunctionProto:
        key = (node.op, tuple(value.type_text() if value is not None else "" for value in node.inputs))
        if key not in self.functions:
            same = [op for op, _ in self.functions if type(op) is type(node.op)]
            self.functions[key] = _function(node, str(len(same)) if same else "", self.functions)
        return self.functions[key]


def _function(node: Node, overload: str, functions: dict[_Key, FunctionProto]) -> FunctionProto:
    """Return what the mapping's reference builds for the op, its operands and its results."""
    assert node.op.custom is not None and node.op.custom.reference is not None
    operands = _named([f"in{index}" for index in range(len(node.inputs))], node.inputs)
    results = [Value(f"out{index}", value.dtype, value.dims) for index, value in enumerate(node.outputs)]
    builder = Builder("body", node.origin)
    node.op.custom.reference(builder, node.op, *operands, *results)
    names = [v.name for n in builder.nodes for v in (*n.inputs, *n.outputs) if v is not None]
    body = _Body(set(names), functions)
    for inner in builder.nodes:
        body.add(inner)
    given = {value for value in operands if value is not None}
    constants = dict.fromkeys(
        v for n in builder.nodes for v in n.inputs if v is not None and v.data is not None and v not in given
    )
    held = [*body.statics, *map(_initializer, constants)]
    return helper.make_function(
        node.op.domain,
        node.op.op_type,
        [f"in{index}" for index in range(len(node.inputs))],
        [value.name for value in results],
        [*(helper.make_node("Constant", [], [t.name], value=t) for t in held), *body.nodes],
        _imports([node.op.domain, *body.domains]),
        [attribute.name for attribute in node.op.attributes],
        overload=overload,
    )


def _named(names: Sequence[str], values: Sequence[Value | None]) -> list[Value | None]:
    """Return values of the same types under other names."""
    return [
        None if value is None else Value(name, value.dtype, value.dims, value.data)
        for name, value in zip(names, values, strict=True)
    ]


def _initializer(value: Value) -> TensorProto:
    assert value.data is not None
    return tensor(value.name, value.data.numpy(), value.dtype)


def _imports(domains: Sequence[str] | dict[str, None]) -> list[onnx.OperatorSetIdProto]:
    return [
        helper.make_opsetid("", OPSET),
        *(helper.make_opsetid(domain, VERSION) for domain in dict.fromkeys(domains)),
    ]
