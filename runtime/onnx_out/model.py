"""The ops of a graph, with names, as the model that a file will hold; weights stay where they lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from onnx import GraphProto, ModelProto, NodeProto, OperatorSetIdProto, helper

from caffeforge.generated import hub
from caffeforge.generated import onnx as versions
from caffeforge.runtime.array import Array
from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.onnx_node import attribute_proto, tensor, type_proto
from caffeforge.runtime.onnx_out.emit import OpCall
from caffeforge.runtime.onnx_out.local_functions import VERSION, LocalFunctions
from caffeforge.runtime.onnx_out.names import Names
from caffeforge.runtime.onnx_out.renamed import renamed

SMALL: Final = 64  # elements of constants that are merged where they are the same
INPUTS_HOLD_WEIGHTS: Final = 4  # before this IR version each initializer is an input too
WITH_FUNCTIONS: Final = 8  # the IR version that brought local functions
WITH_OVERLOADS: Final = 10  # and the one that tells functions of one name apart


@dataclass
class OnnxModel:
    """A model without the bytes of its weights.

    Attributes:
        calls: its nodes.
        inputs: values that are fed.
        weights: constants by name, in order of first use.
        names: of all values and nodes.
        functions: what ops of domains of their own compute.
    """

    name: str
    opset: int
    calls: list[OpCall]
    inputs: list[Value]
    outputs: list[Value]
    weights: dict[str, Array]
    names: Names
    metadata: dict[str, str] = field(default_factory=dict)
    functions: LocalFunctions | None = None

    @property
    def ir_version(self) -> int:
        """The IR version that came with the opset, or a later one if local functions need it."""
        version: int = helper.find_min_ir_version_for([helper.make_opsetid("", self.opset)])
        if self.functions is not None and self.functions.found:
            version = max(version, WITH_OVERLOADS if self.functions.overloads else WITH_FUNCTIONS)
        return version

    def proto(self) -> ModelProto:
        """Return the model without weights and without its graph's initializers."""
        imports = [helper.make_opsetid("", self.opset), *self._domains()]
        model = ModelProto(ir_version=self.ir_version, producer_name="caffeforge", opset_import=imports)
        model.graph.CopyFrom(self._graph())
        if self.functions is not None:
            model.functions.extend(self.functions.found.values())
        for key, value in self.metadata.items():
            model.metadata_props.add(key=key, value=value)
        return model

    def whole(self) -> ModelProto:
        """Return the model with its weights, copied."""
        model = self.proto()
        model.graph.initializer.extend(tensor(n, a.numpy(), a.dtype) for n, a in self.weights.items())
        return model

    def _domains(self) -> Iterator[OperatorSetIdProto]:
        functions = self.functions.found.values() if self.functions is not None else ()
        within = (node.domain for function in functions for node in function.node)
        for domain in dict.fromkeys(d for d in chain((call.domain for call in self.calls), within) if d):
            yield helper.make_opsetid(domain, VERSION)

    def _graph(self) -> GraphProto:
        graph = GraphProto(name=self.name)
        graph.node.extend(self._node(call) for call in self.calls)
        graph.input.extend(helper.make_value_info(self.names[v], type_proto(v)) for v in self.inputs)
        if self.ir_version < INPUTS_HOLD_WEIGHTS:
            for name, array in self.weights.items():
                graph.input.append(
                    helper.make_value_info(name, type_proto(Value(name, array.dtype, array.shape)))
                )
        graph.output.extend(helper.make_value_info(self.names[v], type_proto(v)) for v in self.outputs)
        read = {value for call in self.calls for value in call.operands if value is not None}
        for call in self.calls:
            for value in call.results:
                if value is not None and value in read and value not in self.outputs:
                    graph.value_info.append(helper.make_value_info(self.names[value], type_proto(value)))
        return graph

    def _node(self, call: OpCall) -> NodeProto:
        if call.proto:
            return renamed(call, self.names)
        proto = NodeProto(op_type=call.op_type, domain=call.domain, name=self.names.of_node(call))
        if call.overload:
            proto.overload = call.overload
        proto.input.extend("" if v is None else self.names[v] for v in call.operands)
        proto.output.extend("" if v is None else self.names[v] for v in call.results)
        proto.attribute.extend(attribute_proto(a, value, call.name) for a, value in call.attributes)
        return proto


def assemble(graph: Graph, calls: Sequence[OpCall], opset: int, style: str) -> OnnxModel:
    """Return the model of `calls`, which compute `graph`.

    Args:
        graph: the source's; its constants keep their names.
        calls: its ops, in order.
        opset: that of the calls.
        style: ``path`` for names as they are, ``c`` for C identifiers.
    """
    own = set(graph.constants())
    listed = list(calls)
    outputs = [_computed(value, graph, listed, opset) for value in graph.outputs]
    merged: dict[object, Value] = {}
    weights: dict[Value, None] = {}
    for call in listed:
        for index, value in enumerate(call.operands):
            if value is None or value.data is None:
                continue
            if value not in own and value.data.size <= SMALL:
                elements = tensor("", value.data.numpy(), value.dtype).raw_data
                value = merged.setdefault((value.dtype, value.dims, elements), value)
                call.operands[index] = value
            weights[value] = None
    names = Names(style)
    for value in (*graph.inputs, *outputs):
        names.keep(value)
    for value in weights:
        names.keep(value)
    for call in listed:
        names.add_node(call)
        for result in call.results:
            if result is not None:
                names.keep(result)
    held = {names[value]: value.data for value in weights if value.data is not None}
    return OnnxModel(
        names.word(graph.name or "graph"), opset, listed, list(graph.inputs), outputs, held, names
    )


def _computed(value: Value, graph: Graph, calls: list[OpCall], opset: int) -> Value:
    """Return an output that a node yields: what is an input at the same time is copied."""
    if value.producer is not None or value not in graph.inputs:
        return value
    copy = Value(f"{value.name}_out", value.dtype, value.dims)
    node = Node(copy.name, hub.Identity(), [value], [copy])
    cls = versions.find("Identity", opset)
    assert cls is not None  # every opset has it
    calls.append(OpCall(node.name, "Identity", "", cls.since, (), [value], [copy], node, "an output"))
    return copy
