"""What one alternative of a rule yields for one node: ops of an ONNX target's opset, or nodes of the hub."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from caffeforge.generated import onnx as versions
from caffeforge.runtime.array import Dense
from caffeforge.runtime.builder import Operand
from caffeforge.runtime.emit import Emission
from caffeforge.runtime.graph import Node, Value, constant
from caffeforge.runtime.op import Attribute, Formal, VersionedOp, python_name
from caffeforge.runtime.refusal import Refused

if TYPE_CHECKING:
    from caffeforge.runtime.onnx_out.backend import OnnxBackend

BY_NAME: Final = "onnx/opset.json"  # the place of the rule for what goes by name
_UNTYPED: Final = {"int": "int64", "ints": "int64", "float": "float32", "floats": "float32", "bool": "bool"}
# Static integers that ONNX wants as one element in one dimension; all others are scalars.
_ONE_ELEMENT: Final = frozenset({("TopK", "K")})


@dataclass
class OpCall:
    """An op of the target's opset over values.

    Attributes:
        attributes: what is written, in the order of their names.
        since: the opset that brought this version of the op; 0 for one of a domain of its own.
        node: what the rule wrote it for.
        rule: where that rule stands, after those whose lowering led to it.
        root: the node of the source's graph that it is part of.
        notes: what the rules say that a report should say.
        approximate: a rule that led to it is an approximation.
        proto: a serialized model of the node alone, for one that is written as its file had it.
        overload: of the local function that says what an op of a domain of its own computes.
        has_function: there is such a function.
    """

    name: str
    op_type: str
    domain: str
    since: int
    attributes: tuple[tuple[Attribute, Any], ...]
    operands: list[Value | None]
    results: list[Value | None]
    node: Node
    rule: str
    root: Node | None = None
    notes: tuple[str, ...] = ()
    approximate: bool = False
    proto: bytes = b""
    overload: str = ""
    has_function: bool = False

    @property
    def main(self) -> Value | None:
        """Its first result."""
        return self.results[0] if self.results else None

    @property
    def kind(self) -> str:
        """What reports call it."""
        return f"{self.domain}.{self.op_type}" if self.domain else self.op_type


class OnnxEmit(Emission[OpCall]):
    """Handed to a generated emitter, which calls `op`, or `value` and `apply` for a rewrite."""

    def __init__(
        self,
        node: Node,
        rule: str,
        backend: OnnxBackend,
        counts: dict[str, int] | None = None,
        unread: Collection[Value] = (),
    ) -> None:
        super().__init__(node, rule, counts)
        self.backend = backend
        self.unread = unread

    def op(
        self,
        op_type: str,
        fields: Mapping[str, Any] | None = None,
        operands: Sequence[Operand] | None = None,
    ) -> None:
        """Append the opset's version of an op, which yields the node's results.

        Args:
            op_type: its name.
            fields: attributes that the rule gives; None leaves one out. All others go by name.
            operands: all inputs; None where they go by name.

        Raises:
            Refused: the opset has no such op, or it takes no such types.
        """
        cls = versions.find(op_type, self.backend.opset)
        if cls is None:
            raise Refused(f"opset {self.backend.opset} has no {op_type}", self.rule)
        if self.backend.allowed is not None and op_type not in self.backend.allowed:
            raise Refused(f"{self.backend.name} takes no {op_type}{source_of(self.backend)}", self.rule)
        given = {a.name: (a, value) for a, value in self.node.op.fields()}
        attributes = tuple(self._attributes(cls, given, fields or {}))
        inputs = self._by_name(cls, given) if operands is None else self.operands(operands)
        results = self._results()
        if len(results) > len(cls.outputs) and not _is_variadic(cls.outputs):
            name = self.node.op.outputs[len(cls.outputs)].name
            raise Refused(f"{op_type} has no result {name} in opset {self.backend.opset}", self.rule)
        while inputs and inputs[-1] is None:
            inputs.pop()
        name = self.stem if not self.calls else self.fresh(op_type)
        call = OpCall(name, op_type, "", cls.since, attributes, inputs, results, self.node, self.rule)
        if op_type in self.backend.host:
            call.notes = (f"{op_type} is left to the CPU by the vendor's tools{source_of(self.backend)}",)
        self._check(cls, call)
        self.calls.append(call)

    def _results(self) -> list[Value | None]:
        """Return the node's results without those that may be left out and that nothing reads."""
        formals = self.node.op.outputs
        results: list[Value | None] = [
            None
            if value in self.unread and index < len(formals) and formals[index].option == "optional"
            else value
            for index, value in enumerate(self.node.outputs)
        ]
        while results and results[-1] is None:
            results.pop()
        return results

    def _attributes(
        self, cls: type[VersionedOp], own: Mapping[str, tuple[Attribute, Any]], fields: Mapping[str, Any]
    ) -> Iterator[tuple[Attribute, Any]]:
        for attribute in cls.attributes:
            held = own.get(attribute.name)
            value = fields.get(attribute.name, held[1] if held is not None else None)
            if value is not None:
                yield attribute, value

    def _by_name(
        self, cls: type[VersionedOp], own: Mapping[str, tuple[Attribute, Any]]
    ) -> list[Value | None]:
        """Return the operands at the places of their names in a version, constants for fields among them."""
        op, inputs = self.node.op, self.node.inputs
        names = [formal.name for formal in cls.inputs]
        operands: list[Value | None] = [None] * len(names)
        for index, formal in enumerate(op.inputs):
            if formal.option == "variadic":
                return [*operands[:index], *inputs[index:]]
            place = names.index(formal.name) if formal.name in names else index
            value = inputs[index] if index < len(inputs) else None
            if value is None and formal.static and formal.name in own and formal.name in names:
                value = self._constant(formal, own[formal.name])
            if value is None:
                continue
            if place >= len(names) or (names[place] != formal.name and names[place] in _names(op.inputs)):
                hint = f"opset {self.backend.opset} wants it known when the model is converted"
                raise Refused(f"{formal.name} is computed when the model runs, {hint}", self.rule)
            operands[place] = value
        return operands

    def _constant(self, formal: Formal, field: tuple[Attribute, Any]) -> Value:
        """Return a field as the constant that the opset has in its place."""
        attribute, value = field
        first = next((v for v in self.node.inputs if v is not None), None)
        dtype = attribute.dtype or (first.dtype if first is not None else _UNTYPED[attribute.kind])
        elements = [value] if (self.node.op.op_type, formal.name) in _ONE_ELEMENT else value
        name = f"{self.stem}.{python_name(formal.name)}"
        return constant(name, Dense(_typed(elements, dtype, name)))

    def _check(self, cls: type[VersionedOp], call: OpCall) -> None:
        from caffeforge.runtime.onnx_out.types import complaint, not_taken

        read = [None if value in self.unread else value for value in call.results]
        found = complaint(cls, call.operands, read) or not_taken(cls, call.operands, self.backend)
        if found:
            raise Refused(found, self.rule)
        self.constrain()

    def constrain(self) -> None:
        """Check what the vendor refuses of the node.

        Raises:
            Refused: it does.
        """
        constrain = self.backend.constraints.get(type(self.node.op))
        if constrain is not None:
            from caffeforge.runtime.arguments import arguments

            constrain(self, self.node.op, *arguments(self.node))


def source_of(backend: OnnxBackend) -> str:
    """Return where a vendor says what it takes, as the end of a sentence."""
    return f" (source: {backend.source})" if backend.source else ""


def by_name(e: OnnxEmit, *_: object) -> None:
    """Write an op as the opset's op of the same name: all its parts have a place there."""
    e.op(e.node.op.op_type)


def _typed(elements: Any, dtype: str, name: str) -> np.ndarray[Any, Any]:
    """Return numbers as an array of a type that holds them."""
    if dtype in ("bfloat16",) or dtype.startswith(("float8", "float4", "int4", "uint4", "int2", "uint2")):
        from caffeforge.runtime.onnx_node import numpy_dtype

        return np.asarray(elements).astype(numpy_dtype(dtype))
    given = np.asarray(elements)
    cast = given.astype(dtype)
    if cast.dtype.kind in "iu" and not np.array_equal(cast, given):
        raise Refused(f"{elements} is no {dtype}", name)
    return cast


def _names(formals: Sequence[Formal]) -> list[str]:
    return [formal.name for formal in formals]


def _is_variadic(formals: Sequence[Formal]) -> bool:
    return bool(formals) and formals[-1].option == "variadic"
