"""The importer: the nodes of a model, one after the other, become nodes of the hub."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from onnx import AttributeProto, NodeProto, TypeProto

from caffeforge.generated import hub
from caffeforge.generated import onnx as versions
from caffeforge.generated.hub.caffe_ops import CUSTOM as CAFFE_OPS
from caffeforge.runtime.array import Array, Dense, Full
from caffeforge.runtime.errors import CaffeforgeError, FrontEndError, GraphError
from caffeforge.runtime.fold import is_foldable
from caffeforge.runtime.graph import Graph, Node, Origin, Value, constant
from caffeforge.runtime.islands import needed
from caffeforge.runtime.onnx_front import elements as shape_elements
from caffeforge.runtime.onnx_front import generic, gradient, kept, learning_ops
from caffeforge.runtime.onnx_front.binding import bound
from caffeforge.runtime.onnx_front.call import Call, Unconvertible
from caffeforge.runtime.onnx_front.control import CONTROL, Control
from caffeforge.runtime.onnx_front.folding import folded
from caffeforge.runtime.onnx_front.functions import Functions
from caffeforge.runtime.onnx_front.interface import expanded, input_value, name_outputs
from caffeforge.runtime.onnx_front.items import is_tensor
from caffeforge.runtime.onnx_front.keeping import keep
from caffeforge.runtime.onnx_front.model_file import ModelFile, opsets
from caffeforge.runtime.onnx_front.provenance import line_of
from caffeforge.runtime.onnx_front.registry import CONVERSIONS
from caffeforge.runtime.onnx_front.result_types import types_of
from caffeforge.runtime.onnx_front.scope import Scope
from caffeforge.runtime.onnx_front.sequence_ops import TAKE_ITEMS
from caffeforge.runtime.onnx_front.tensors import Tensors
from caffeforge.runtime.onnx_node import OPSET
from caffeforge.runtime.op import CustomOp, Op, VersionedOp, python_name
from caffeforge.runtime.open_sizes import name_apart
from caffeforge.runtime.symbol import names as names_in

# What computes other numbers each time, or stays apart on purpose, is no constant.
_NOT_FOLDED: Final = frozenset(
    {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "Bernoulli", "Multinomial"}
    | {"RandomNormalLike", "RandomUniformLike"}
)

# What a Constant node that gives its elements as an attribute of another kind holds.
_CONSTANTS: Final = {"value_float": np.float32, "value_int": np.int64, "value_string": np.object_}


_HUGE: Final = 1 << 26  # elements


class Importer:
    """One model on its way into the hub.

    Args:
        file: the model.
        shapes: sizes of inputs by name, instead of those that the model declares.
        custom: ops of a backend's own domain, as ``vendory.Focus``, by that name; they stay one node even
            if the file has functions for them.
    """

    def __init__(
        self,
        file: ModelFile,
        shapes: Mapping[str, Sequence[int]] | None = None,
        custom: Mapping[str, CustomOp] | None = None,
    ) -> None:
        self.file = file
        self.producer = file.proto.producer_name
        self.tensors = Tensors(file)
        self.functions = Functions(file.proto)
        self.nodes: list[Node] = []
        self._open_sizes: set[str] = set()  # names of those of inputs, and that own ops brought in
        self.shapes = dict(shapes or {})
        self.custom = {**CAFFE_OPS, **(custom or {})}
        self.reasons: dict[str, str] = {}  # of kept nodes, by name
        self._choices: dict[str, None] = {}
        self.taken: set[str] = set()
        self.node_names: set[str] = set()
        self._elements: dict[Value, shape_elements.Elements] = {}
        self._current: tuple[str, Origin] = ("", Origin())
        self.declared: dict[str, TypeProto] = {}
        self._bound_names: set[str] = set()
        self.helpers: set[str] = set()  # names that no value of the model has
        self._result_types: Sequence[TypeProto | None] = ()
        self._used: Sequence[bool] = ()

    @property
    def current(self) -> str:
        """The name of the node that is being imported."""
        return self._current[0]

    @property
    def notes(self) -> list[str]:
        """What the user should know: choices that were made, and nodes that the hub could not say."""
        kept_ones = (f"{name} is kept as it is: {why}" for name, why in self.reasons.items())
        return [*self._choices, *kept_ones]

    def note(self, text: str) -> None:
        """Say of the node that is being imported what was chosen."""
        self._choices[f"{self.current}: {text}"] = None

    def run(self) -> Graph:
        """Return the graph.

        Raises:
            FrontEndError: naming the node, its index, op and version, and its operands.
        """
        proto = self.file.proto.graph
        names = [value.name for value in proto.output]
        scope = Scope({}, opsets(self.file.proto), "", kept.names_read(proto.node, names))
        told = (v for v in (*proto.value_info, *proto.output) if v.type.WhichOneof("value"))
        self.declared = {v.name: v.type for v in told}
        self.taken = {v.name for v in (*proto.input, *proto.output)}
        self.taken |= {name for node in proto.node for name in node.output}
        self.initializers(proto, scope)
        inputs = [input_value(v, self.shapes.get(v.name)) for v in proto.input if v.name not in scope]
        for value in inputs:
            scope.set(value.name, value)
        self._open_sizes |= {name for value in inputs for dim in value.dims for name in names_in(dim)}
        self.visit_all(proto.node, scope)
        outputs = expanded((name, self._output(name, scope)) for name in names)
        graph = Graph(proto.name or "graph", inputs, [], self.nodes)
        name_outputs(graph, outputs, self.fresh, self.fresh_node)
        graph.nodes = needed(graph, graph.outputs)
        graph.verify()
        return graph

    def initializers(self, proto: Any, scope: Scope) -> None:
        """Bring a graph's constants into scope."""
        for tensor in proto.initializer:
            self.bind(scope, tensor.name, constant("", self.tensors.array(tensor)))
        for sparse in proto.sparse_initializer:
            self.bind(scope, sparse.values.name, constant("", self.tensors.sparse(sparse)))

    def visit_all(self, nodes: Sequence[NodeProto], scope: Scope) -> None:
        """Import nodes, which stand in an order in which each is computed before it is read."""
        for index, node in enumerate(nodes):
            try:
                self._visit(node, scope)
            except CaffeforgeError as error:
                if isinstance(error, FrontEndError) and error.where.startswith("node "):
                    raise
                what = f"{error.where}: {error.what}" if error.where else error.what
                raise FrontEndError(what, where=self._place(node, index, scope), hint=error.hint) from None
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                what = f"its attributes and operands do not fit each other: {error}"
                raise FrontEndError(what, where=self._place(node, index, scope)) from error

    def _place(self, node: NodeProto, index: int, scope: Scope) -> str:
        """Return what errors say of a node: its name, index, op and version, and its operands."""
        domain = "" if node.domain == "ai.onnx" else node.domain
        found = versions.find(node.op_type, scope.opsets.get("", 1)) if not domain else None
        version = f"-{found.since}" if found else ""
        op = f"{domain}.{node.op_type}" if domain else f"{node.op_type}{version}"
        values = [scope.find(name) if name else None for name in node.input]
        operands = ", ".join(value.type_text() if value else "-" for value in values)
        inside = f" in {scope.prefix.rstrip('/')}" if scope.prefix else ""
        return f"node {node.name or ', '.join(node.output)} (number {index}{inside}, {op} of ({operands}))"

    def _visit(self, node: NodeProto, scope: Scope) -> None:
        domain = "" if node.domain == "ai.onnx" else node.domain
        inputs = [scope.read(name) if name else None for name in node.input]
        used = [bool(name) and scope.is_read(name) for name in node.output]
        while used and not used[-1]:
            used.pop()
        if not used:
            return
        before = self._current
        stem = self.fresh_node(scope.prefix + (node.name or next(filter(None, node.output))))
        self._current = (stem, Origin(scope.prefix.rstrip("/"), _op_text(node), line_of(node)))
        declared = {} if scope.prefix else self.declared
        self._result_types = [declared.get(name) for name in node.output]
        self._used = used
        results = self._results(node, domain, inputs, used, scope)
        main = next((v.producer for v in results if v.producer is not None), None)
        if main is not None and main.name.startswith(f"{stem}."):
            main.name = stem  # its helpers are named after it
        for name, wanted, value in zip(node.output, used, results, strict=False):
            if wanted:
                self.bind(scope, name, value)
        self._current = before

    def _results(
        self, node: NodeProto, domain: str, inputs: list[Value | None], used: list[bool], scope: Scope
    ) -> Sequence[Value]:
        body = self.functions.find(node, domain)
        if body is not None and f"{domain}.{node.op_type}" not in self.custom:
            return self.functions.inline(self, body, node, inputs, scope)
        if domain == gradient.DOMAIN and node.op_type == "Gradient":
            return gradient.gradient(self, node, inputs, scope)
        if domain:
            return self._foreign(node, domain, inputs, used, scope)
        if node.op_type == "Constant":
            return [self._constant(node)]
        mark = len(self.nodes)
        try:
            if node.op_type in CONTROL:
                return Control(self, node, scope).results(inputs)
            return self._converted(
                bound(node, scope.opsets.get("", 1), self._attribute, self.producer),
                inputs,
                used,
                len(node.output),
            )
        except Unconvertible as reason:
            del self.nodes[mark:]
            expanded = self.functions.body_of(node, inputs, scope.opsets.get("", 1))
            if expanded is not None:
                return self.functions.inline(self, expanded, node, inputs, scope)
            return keep(self, node, domain, used, scope, str(reason))

    def _converted(
        self, op: VersionedOp, inputs: Sequence[Value | None], used: Sequence[bool], outputs: int
    ) -> Sequence[Value]:
        if op.op_type not in TAKE_ITEMS and not all(map(is_tensor, inputs)):
            raise Unconvertible("it takes what is no tensor")
        try:
            return CONVERSIONS.get(op.op_type, generic.convert)(Call(op, inputs, used, outputs, self))
        except GraphError as error:
            if op.since <= OPSET:
                raise
            raise Unconvertible(
                f"what opset {op.since} added has no place in the hub: {error.what}"
            ) from None

    def _attribute(self, attribute: AttributeProto) -> Any:
        if attribute.type == AttributeProto.TENSOR:
            return self.tensors.array(attribute.t)
        if attribute.type == AttributeProto.TYPE_PROTO:
            return attribute.tp
        if attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
            raise Unconvertible(f"attribute {attribute.name} holds a graph")
        return kept.attribute_value(attribute)

    def _constant(self, node: NodeProto) -> Value:
        if len(node.attribute) != 1:
            raise FrontEndError(f"Constant wants one attribute, {len(node.attribute)} are given")
        (attribute,) = node.attribute
        if attribute.name == "value":
            return constant("", self.tensors.array(attribute.t))
        if attribute.name == "sparse_value":
            return constant("", self.tensors.sparse(attribute.sparse_tensor))
        dtype = _CONSTANTS.get(attribute.name.removesuffix("s"))
        if dtype is None:
            raise FrontEndError(f"Constant has no attribute {attribute.name}")
        return constant("", Dense(np.array(kept.attribute_value(attribute), dtype)))

    def _foreign(
        self,
        node: NodeProto,
        domain: str,
        inputs: list[Value | None],
        used: list[bool],
        scope: Scope,
    ) -> Sequence[Value]:
        """Return the results of an op of another domain: one that the backend declares, or a kept one."""
        declared = self.custom.get(f"{domain}.{node.op_type}")
        mark = len(self.nodes)
        try:
            if declared is None and domain == learning_ops.DOMAIN:
                return learning_ops.Learned(self, node, inputs).results()
            if declared is None:
                raise Unconvertible("it is an op of a custom domain")
            given = {python_name(a.name): self._attribute(a) for a in node.attribute}
        except Unconvertible as reason:
            del self.nodes[mark:]
            return keep(self, node, domain, used, scope, str(reason))
        try:
            op = declared.op(**given)
        except TypeError as error:
            raise FrontEndError(
                f"{domain}.{node.op_type} has other attributes in the backend's mapping: {error}"
            ) from None
        results = self.apply(op, inputs, len(used))
        name_apart(self.nodes[mark:], [v for v in inputs if v is not None], self._open_sizes)
        return results

    def apply(self, op: Op, operands: Sequence[Value | None], count: int) -> list[Value]:
        """Add a node, or fold it; see `call.Builder`."""
        known = shape_elements.propagate(op, operands, self.elements)
        stem, origin = self._current
        types = types_of(op, operands, count, stem, self._result_types, self._used)
        if known is not None and all(isinstance(item, int) for item in known) and count == 1:
            dtype, dims = types[0]
            if all(isinstance(dim, int) for dim in dims):
                return [constant("", Dense(np.array(known, dtype).reshape([int(str(d)) for d in dims])))]
        results = [Value(self.helper(f"{stem}.{op.op_type.lower()}"), *kind) for kind in types]
        node = Node("", op, [self.named(o) for o in operands], results, origin)
        if op.op_type not in _NOT_FOLDED and not op.domain:
            if is_foldable(op, operands) and not _grows(operands, results):
                return folded(node)
            made = _made_constant(op, results)
            if made is not None:
                return [constant("", made)]
        node.name = self.fresh_node(results[0].name)
        self.nodes.append(node)
        if known is not None:
            self._elements[results[0]] = known
        return results

    def named(self, operand: Value | None) -> Value | None:
        """Give an operand without a name one after the node that is being imported."""
        if operand is not None and not operand.name:
            operand.name = self.helper(f"{self._current[0]}.constant")
        return operand

    def elements(self, value: Value) -> shape_elements.Elements | None:
        """Return what is known of an integer tensor's elements, row-major."""
        if value.data is None:
            return self._elements.get(value)
        if value.dtype not in ("int64", "int32") or value.data.size > shape_elements.LONGEST:
            return None
        return tuple(value.data.numpy().reshape(-1).tolist())

    def bind(self, scope: Scope, name: str, value: Value) -> None:
        """Let `name` stand for `value` from here on; a value of its own takes the name too.

        Raises:
            FrontEndError: the graph has given the name before.
        """
        if name in scope:
            raise FrontEndError(f"{name} is computed twice", hint="each name stands for one value in ONNX")
        if is_tensor(value) and self._is_unnamed(value):
            wanted = scope.prefix + name
            self.taken.discard(value.name)
            self.helpers.discard(value.name)
            value.name = wanted if wanted == name and not self._is_bound(wanted) else self.fresh(wanted)
            self._bound_names.add(value.name)
            if scope.prefix:
                self.helpers.add(value.name)
            if value.producer is not None:
                value.producer.origin = replace(value.producer.origin, value=name)
        scope.set(name, value)

    def _is_unnamed(self, value: Value) -> bool:
        return not value.name or value.name in self.helpers

    def _is_bound(self, name: str) -> bool:
        return name in self._bound_names

    def fresh(self, name: str) -> str:
        """Return a name that no value has."""
        return _free(name, self.taken)

    def helper(self, name: str) -> str:
        """Return a name for a value that the model does not name, until `bind` gives it one."""
        found = self.fresh(name)
        self.helpers.add(found)
        return found

    def fresh_node(self, name: str) -> str:
        """Return a name that no node has."""
        return _free(name, self.node_names)

    def _output(self, name: str, scope: Scope) -> Value:
        found = scope.find(name)
        if found is None:
            raise FrontEndError(f"output {name} is computed by no node", where=self.file.name)
        return found


def _op_text(node: NodeProto) -> str:
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


def _grows(operands: Sequence[Value | None], results: Sequence[Value]) -> bool:
    """Tell whether small constants would become a huge one, which is better computed when the model runs."""
    given = sum(value.data.size for value in operands if value is not None and value.data is not None)
    found = sum(math.prod(d for d in value.dims if isinstance(d, int)) for value in results)
    return found > max(_HUGE, 4 * given)


def _made_constant(op: Op, results: Sequence[Value]) -> Array | None:
    """Return what an op without operands yields, if it is the same each time."""
    if not isinstance(op, hub.ConstantOfShape) or op.input is None:
        return None
    given = op.value.numpy().reshape(-1)[0].item() if isinstance(op.value, Array) else 0.0
    return Full(results[0].shape[:], given, results[0].dtype)


def _free(name: str, taken: set[str]) -> str:
    candidate, count = name, 0
    while candidate in taken:
        count += 1
        candidate = f"{name}_{count}"
    taken.add(candidate)
    return candidate
