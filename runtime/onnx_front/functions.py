"""Functions: calls of a model's own are inlined; ops that the hub lacks are said by their function body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, defs

from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.graph import Value
from caffeforge.runtime.onnx_front.items import type_of
from caffeforge.runtime.onnx_front.kept import names_read
from caffeforge.runtime.onnx_front.model_file import opsets
from caffeforge.runtime.onnx_front.scope import Scope

if TYPE_CHECKING:
    from caffeforge.runtime.onnx_front.importer import Importer

_DEEPEST = 64  # calls within calls; a function that calls itself never ends


class Functions:
    """The functions of one model."""

    def __init__(self, model: ModelProto) -> None:
        self._own = {(f.domain, f.name, f.overload): f for f in model.functions}
        self._depth = 0

    def find(self, node: NodeProto, domain: str) -> FunctionProto | None:
        """Return the model's own function that a node calls, None if it calls none."""
        return self._own.get((domain, node.op_type, node.overload)) or self._own.get(
            (node.domain, node.op_type, node.overload)
        )

    def body_of(self, node: NodeProto, inputs: Sequence[Value | None], opset: int) -> FunctionProto | None:
        """Return how ONNX says one of its ops by others, None if it does not."""
        try:
            schema: Any = defs.get_schema(node.op_type, opset, "")
        except Exception:  # onnx raises a class that it does not name
            return None
        if schema.has_function:
            found: FunctionProto = schema.function_body
            return found
        if schema.has_context_dependent_function:
            types = [b"" if v is None else type_of(v).SerializeToString() for v in inputs]
            made = schema.get_context_dependent_function(node.SerializeToString(), types)
            return FunctionProto.FromString(made) if made else None
        return None

    def inline(
        self,
        importer: Importer,
        body: FunctionProto,
        node: NodeProto,
        inputs: Sequence[Value | None],
        scope: Scope,
    ) -> list[Value]:
        """Import the nodes of a function in place of the node that calls it; return its results.

        Raises:
            FrontEndError: the calls never end.
        """
        self._depth += 1
        if self._depth > _DEEPEST:
            raise FrontEndError(f"function {body.name} calls itself")
        given = dict(zip(body.input, inputs, strict=False))
        values = {name: value for name, value in given.items() if value is not None}
        imports = {**scope.opsets, **opsets(body)} if body.opset_import else scope.opsets
        stem = importer.current
        inner = Scope(values, imports, f"{stem}/", names_read(body.node, body.output))
        absent = set(body.input) - set(values)
        attributes = {a.name: a for a in body.attribute_proto} | {a.name: a for a in node.attribute}
        nodes = [_instantiated(inner_node, attributes, absent) for inner_node in body.node]
        importer.visit_all(nodes, inner)
        self._depth -= 1
        wanted = [name for name, _ in zip(body.output, node.output, strict=False)]
        return [inner.find(name) or Value("", "float32", ()) for name in wanted]


def _instantiated(node: NodeProto, given: Mapping[str, AttributeProto], absent: set[str]) -> NodeProto:
    """Return a node of a function with the caller's attributes, without the inputs that it leaves out."""
    made = NodeProto()
    made.CopyFrom(node)
    for index, name in enumerate(made.input):
        if name in absent:
            made.input[index] = ""
    _fill(made, given)
    return made


def _fill(node: NodeProto, given: Mapping[str, AttributeProto]) -> None:
    filled: list[Any] = []
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            if attribute.ref_attr_name in given:
                copy = AttributeProto()
                copy.CopyFrom(given[attribute.ref_attr_name])
                copy.name = attribute.name
                filled.append(copy)
            continue
        for graph in (attribute.g, *attribute.graphs) if attribute.g.node or attribute.graphs else ():
            for inner in graph.node:
                _fill(inner, given)
        filled.append(attribute)
    kept = [AttributeProto.FromString(a.SerializeToString()) for a in filled]
    del node.attribute[:]
    node.attribute.extend(kept)
