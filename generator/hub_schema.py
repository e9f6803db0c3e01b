"""The hub's operators as data: ``schemas/hub/opset.json`` with the decisions of ``ops.yaml`` applied."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from caffeforge.generator.diagnostics import Diagnostics
from caffeforge.generator.expression import Name, Printer, Scope
from caffeforge.generator.python_text import name as python_name
from caffeforge.generator.types import ANY, OF_ATTRIBUTE, Type
from caffeforge.generator.yaml_reader import source_of
from caffeforge.generator.yaml_source import Mapping, Node, Scalar, Sequence, load

KINDS = {
    "INT": "int",
    "INTS": "ints",
    "FLOAT": "float",
    "FLOATS": "floats",
    "STRING": "string",
    "STRINGS": "strings",
    "TENSOR": "tensor",
    "SPARSE_TENSOR": "tensor",
    "GRAPH": "graph",
    "TYPE_PROTO": "type",
}
HELD = {
    "int": "int",
    "ints": "tuple[int, ...]",
    "float": "float",
    "floats": "tuple[float, ...]",
    "bool": "bool",
    "string": "str",
    "strings": "tuple[str, ...]",
    "tensor": "object",
    "graph": "object",
    "type": "object",
}
STATIC_KINDS = ("int", "ints", "float", "floats", "bool")
OP_KEYS = ("drop", "require", "default", "static")


@dataclass(frozen=True)
class Formal:
    """One formal input or output; `option` is single, optional or variadic."""

    name: str
    option: str
    static: bool = False


@dataclass(frozen=True)
class Attribute:
    """One field of a hub op.

    Attributes:
        computed: Python over earlier fields that gives the default, empty if the default is a literal.
        static: ONNX passes it as an input; `dtype` is that input's element type, empty for the operand's.
    """

    name: str
    kind: str
    required: bool = False
    default: Any = None
    computed: str = ""
    static: bool = False
    dtype: str = ""

    @property
    def python(self) -> str:
        return python_name(self.name)

    @property
    def type(self) -> Type:
        """The type that expressions see; that of graphs and tensors is any."""
        return OF_ATTRIBUTE.get(self.kind, ANY)


@dataclass(frozen=True)
class HubOp:
    """One operator of the hub."""

    name: str
    since: int
    inputs: tuple[Formal, ...]
    outputs: tuple[Formal, ...]
    attributes: tuple[Attribute, ...]
    domain: str = ""

    @property
    def class_name(self) -> str:
        """The name of its class."""
        return self.name.rpartition(".")[2]

    @property
    def code(self) -> str:
        """The class as generated code names it: those of a backend's own domain stand in its ``ops``."""
        return f"ops.{self.class_name}" if self.domain else f"hub.{self.name}"

    def attribute(self, name: str) -> Attribute | None:
        """Return the field called `name`, None if there is none."""
        return next((a for a in self.attributes if a.name == name), None)


@dataclass(frozen=True)
class HubSchema:
    """All operators by name, and ai.onnx's opset version they are of."""

    opset: int
    ops: dict[str, HubOp]


def read(opset_json: str, ops_yaml: str, file: str, printer: Printer) -> HubSchema:
    """Return the hub's operators; what ops.yaml gets wrong goes to the printer's diagnostics.

    Args:
        opset_json: text of the opset description.
        ops_yaml: text of the decisions on top of it.
        file: the name of ops.yaml in diagnostics.
        printer: prints expressions and holds the diagnostics.
    """
    described = json.loads(opset_json)
    ops = {name: _op(name, data) for name, data in described["ops"].items() if not data["deprecated"]}
    decisions = load(ops_yaml, file, printer.diagnostics)
    for key, node in decisions.entries if decisions else ():
        if key.text not in ops:
            printer.diagnostics.unknown("unknown-op", key.position, "op", key.text, ops)
        elif isinstance(node, Mapping):
            ops[key.text] = _Decisions(described["ops"][key.text], printer).apply(ops[key.text], node)
        else:
            printer.diagnostics.error(
                "hub-entry", node.position, f"the entry of {key.text} must be a mapping"
            )
    return HubSchema(described["opset"], ops)


def _op(name: str, data: dict[str, Any]) -> HubOp:
    attributes = tuple(
        Attribute(key, KINDS[a["type"]], a.get("required", False), _frozen(a.get("default")))
        for key, a in data["attributes"].items()
    )
    formals = {
        side: tuple(Formal(p["name"], p["option"].lower()) for p in data[side])
        for side in ("inputs", "outputs")
    }
    return HubOp(name, data["since"], formals["inputs"], formals["outputs"], attributes)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


class _Decisions:
    """Applies one op's entry of ops.yaml."""

    def __init__(self, described: dict[str, Any], printer: Printer) -> None:
        self.described = described
        self.printer = printer
        self.diagnostics: Diagnostics = printer.diagnostics

    def apply(self, op: HubOp, entry: Mapping) -> HubOp:
        for key, node in entry.entries:
            if key.text not in OP_KEYS:
                self.diagnostics.unknown("unknown-key", key.position, "key", key.text, OP_KEYS)
                continue
            op = getattr(self, f"_{key.text}")(op, node)
        return op

    def _names(self, node: Node) -> list[Scalar]:
        if isinstance(node, Sequence):
            return [item for item in node.items if isinstance(item, Scalar)]
        self.diagnostics.error("hub-entry", node.position, "a list of names is expected here")
        return []

    def _known(self, op: HubOp, name: Scalar) -> bool:
        if op.attribute(name.text) is None:
            known = [a.name for a in op.attributes]
            self.diagnostics.unknown(
                "unknown-attribute", name.position, f"attribute of {op.name}", name.text, known
            )
            return False
        return True

    def _drop(self, op: HubOp, node: Node) -> HubOp:
        dropped = {name.text for name in self._names(node) if self._known(op, name)}
        return replace(op, attributes=tuple(a for a in op.attributes if a.name not in dropped))

    def _require(self, op: HubOp, node: Node) -> HubOp:
        required = {name.text for name in self._names(node) if self._known(op, name)}
        changed = (
            replace(a, required=True, default=None) if a.name in required else a for a in op.attributes
        )
        return replace(op, attributes=tuple(changed))

    def _default(self, op: HubOp, node: Node) -> HubOp:
        for key, value in node.entries if isinstance(node, Mapping) else ():
            if not self._known(op, key) or not isinstance(value, Scalar):
                continue
            names = {a.name: Name(a.python, type=a.type) for a in op.attributes if a.required}
            code = self.printer.print(source_of(value), Scope(names))
            changed = (replace(a, computed=code) if a.name == key.text else a for a in op.attributes)
            op = replace(op, attributes=tuple(changed))
        return op

    def _static(self, op: HubOp, node: Node) -> HubOp:
        for key, kind in node.entries if isinstance(node, Mapping) else ():
            formal = next((f for f in op.inputs if f.name == key.text), None)
            if formal is None:
                known = [f.name for f in op.inputs]
                self.diagnostics.unknown(
                    "unknown-input", key.position, f"input of {op.name}", key.text, known
                )
                continue
            if not isinstance(kind, Scalar) or kind.text not in STATIC_KINDS:
                text = kind.text if isinstance(kind, Scalar) else "a list"
                self.diagnostics.unknown("unknown-kind", kind.position, "kind", text, STATIC_KINDS)
                continue
            attribute = Attribute(key.text, kind.text, static=True, dtype=self._dtype(op, key.text))
            inputs = tuple(replace(f, static=True) if f is formal else f for f in op.inputs)
            op = replace(op, inputs=inputs, attributes=(*op.attributes, attribute))
        return op

    def _dtype(self, op: HubOp, name: str) -> str:
        """Return an input's element type; empty if it is that of the first input."""
        kind = next(p["type"] for p in self.described["inputs"] if p["name"] == name)
        first = self.described["inputs"][0]["type"]
        allowed = self.described["types"].get(kind, [kind])
        if kind == first:
            return ""
        if "tensor(int64)" in allowed:
            return "int64"
        return "float32" if "tensor(float)" in allowed else allowed[0][len("tensor(") : -1]
