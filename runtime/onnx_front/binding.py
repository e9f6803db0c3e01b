"""Binding a node to the class of its op's version, which says what operands and attributes it has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from onnx import AttributeProto, NodeProto

from caffeforge.generated import onnx as versions
from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.op import Formal, VersionedOp, python_name

# What attributes are called in ONNX's opsets, by the type that a file gives them.
_KINDS: Final = {
    AttributeProto.FLOAT: "float",
    AttributeProto.INT: "int",
    AttributeProto.STRING: "string",
    AttributeProto.TENSOR: "tensor",
    AttributeProto.GRAPH: "graph",
    AttributeProto.FLOATS: "floats",
    AttributeProto.INTS: "ints",
    AttributeProto.STRINGS: "strings",
}

# Of exporters that leave what they cannot translate in the file.
_HINTS: Final = {"tf2onnx": "it is an op of TensorFlow that tf2onnx left as it was: convert to a later opset"}


def bound(
    node: NodeProto, opset: int, read: Callable[[AttributeProto], Any], producer: str = ""
) -> VersionedOp:
    """Return the node's op as an opset defines it, with its attributes, each of which `read` reads.

    `producer` is what wrote the file.

    Raises:
        FrontEndError: the opset has no such op, or the op has other operands, results or attributes.
    """
    cls = versions.find(node.op_type, opset)
    if cls is None:
        name = node.op_type if isinstance(node.op_type, str) else "of a name that is no text"
        raise FrontEndError(
            f"ONNX has no operator {name} in opset {opset}",
            hint=_HINTS.get(producer, "an op of a custom domain must name its domain"),
        )
    op = f"{node.op_type}-{cls.since}"
    _check_count(op, "input", cls.inputs, node.input)
    _check_count(op, "output", cls.outputs, node.output)
    kinds = {attribute.name: attribute.kind for attribute in cls.attributes}
    given = {}
    for attribute in node.attribute:
        if attribute.name not in kinds:
            raise FrontEndError(f"{op} has no attribute {attribute.name}")
        found = _KINDS.get(attribute.type, kinds[attribute.name])
        if found != kinds[attribute.name]:
            raise FrontEndError(f"attribute {attribute.name} of {op} is {kinds[attribute.name]}, not {found}")
        given[python_name(attribute.name)] = read(attribute)
    try:
        return cls(**given)
    except TypeError as error:
        missing = str(error).rpartition(": ")[2]
        raise FrontEndError(f"{op} lacks the attribute {missing}") from None


def _check_count(op: str, side: str, formals: Sequence[Formal], names: Sequence[str]) -> None:
    """Refuse more operands or results than an op has, and operands that are missing."""
    variadic = bool(formals) and formals[-1].option == "variadic"
    if len(names) > len(formals) and not variadic:
        raise FrontEndError(f"{op} has {len(formals)} {side}s, {len(names)} are given")
    if side == "output":
        return
    for index, formal in enumerate(formals):
        if formal.option == "single" and not (index < len(names) and names[index]):
            raise FrontEndError(f"{op} wants its input {formal.name}")
