"""Keeping a node as it is: its operands, those of its inner graphs, and the types of its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from onnx import NodeProto, TypeProto

from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.graph import Node, Origin, Symbol, Value
from caffeforge.runtime.onnx_front import kept, learning_ops
from caffeforge.runtime.onnx_front.items import Items, constructing, is_tensor
from caffeforge.runtime.onnx_front.result_types import dims_of
from caffeforge.runtime.onnx_front.scope import Scope
from caffeforge.runtime.onnx_node import DTYPES

if TYPE_CHECKING:
    from caffeforge.runtime.onnx_front.importer import Importer

_ZIP_MAP: Final = "export the classifier by skl2onnx with options={'zipmap': False}"


def keep(
    importer: Importer, node: NodeProto, domain: str, used: Sequence[bool], scope: Scope, reason: str
) -> list[Value]:
    """Add a node as it is, with what its inner graphs read as further operands; return its results.

    Raises:
        FrontEndError: the type of a result is not known, or is no tensor.
    """
    names = dict.fromkeys(name for name in node.input if name)
    names.update((n, None) for graph in kept.inner_graphs(node) for n in kept.captured(graph))
    given = {name: scope.read(name) for name in names}
    operands, before = _tensors(given)
    alone = kept.model_of([*before, node], used, importer.file.proto, scope.opsets, operands)
    types = kept.inferred(alone)
    results = []
    for index, (name, wanted) in enumerate(zip(node.output, used, strict=False)):
        if not wanted:
            results.append(Value("", "float32", ()))
            continue
        kind = types.get(name) or (importer.declared.get(name) if not scope.prefix else None)
        if node.op_type == "Loop" and (kind is None or not kind.tensor_type.HasField("shape")):
            kind = kept.stacked_type(node, given, name) or kind
        if domain == learning_ops.DOMAIN and (kind is None or not kind.tensor_type.HasField("shape")):
            kind = learning_ops.result_type(node, index) or kind
        results.append(
            _typed(
                importer.helper(f"{importer.current}.{name}"), name, kind, _carried(node, given, name), reason
            )
        )
    cls = kept.kept_class(domain, node.op_type)
    op = cls(kept.plain_attributes(node), alone.SerializeToString(), reason)
    name = f"{domain}.{node.op_type}" if domain else node.op_type
    origin = Origin(scope.prefix.rstrip("/"), name, source=reason)  # which a backend's refusal shows
    named = [value for value in results if value.name]
    importer.nodes.append(Node(importer.current, op, list(operands.values()), named, origin))
    importer.reasons[importer.current] = reason
    return results


def _tensors(given: Mapping[str, Value]) -> tuple[dict[str, Value], list[NodeProto]]:
    """Return the tensors among the operands and within them, and nodes that make sequences of these."""
    operands: dict[str, Value] = {}
    before = []
    for name, value in given.items():
        if isinstance(value, Items):
            made, items = constructing(name, value)
            before.append(made)
            operands |= items
        elif is_tensor(value):
            operands[name] = value
        else:
            raise FrontEndError(f"it reads {name}, an optional that holds nothing")
    return operands, before


def _carried(node: NodeProto, operands: Mapping[str, Value], name: str) -> Value | None:
    """Return what a loop's result of that name begins as; its rank stays."""
    index = list(node.output).index(name) + 2
    if node.op_type != "Loop" or index >= len(node.input):
        return None
    return operands[node.input[index]]


def _typed(fresh: str, name: str, kind: TypeProto | None, start: Value | None, reason: str) -> Value:
    if kind is not None and not kind.HasField("tensor_type"):
        word = (kind.WhichOneof("value") or "").removesuffix("_type")
        maps = kind.sequence_type.elem_type.HasField("map_type")
        raise FrontEndError(
            f"its result {name} is of type {word}, which is no tensor: {reason}",
            hint=_ZIP_MAP if maps else "",
        )
    if kind is None or not kind.HasField("tensor_type") or kind.tensor_type.elem_type not in DTYPES:
        raise FrontEndError(
            f"the type of its result {name} is not known, or is no tensor: {reason}",
            hint="declare it in the model's value_info, or the op in the backend's mapping",
        )
    if kind.tensor_type.HasField("shape"):
        return Value(fresh, DTYPES[kind.tensor_type.elem_type], dims_of(kind, fresh))
    if start is not None:
        return Value(fresh, start.dtype, [Symbol(f"{fresh}.{axis}") for axis in range(start.rank)])
    raise FrontEndError(
        f"how many dimensions its result {name} has is not known: {reason}",
        hint="declare its shape in the model's value_info, or the op in the backend's mapping",
    )
