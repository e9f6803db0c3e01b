"""The hub's operators as data: ``schemas/hub/opset.json`` with the decisions of ``ops.yaml`` applied."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from caffeforge.generator import opset_file
from caffeforge.generator.diagnostics import Diagnostics
from caffeforge.generator.expression import Name, Printer, Scope
from caffeforge.generator.mapping import CustomOp
from caffeforge.generator.opset_file import KINDS
from caffeforge.generator.python_text import name as python_name
from caffeforge.generator.types import ANY, OF_ATTRIBUTE, Type
from caffeforge.generator.yaml_reader import source_of
from caffeforge.generator.yaml_source import Mapping, Node, Scalar, Sequence, load

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
ELEMENTS = {
    "int": ("tensor(int64)", "tensor(int32)"),
    "float": ("tensor(float)",),
    "bool": ("tensor(bool)",),
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
    home: str = "ops."  # what stands before a class of a backend's own domain where it is used

    @property
    def class_name(self) -> str:
        """The name of its class."""
        return self.name.rpartition(".")[2]

    @property
    def code(self) -> str:
        """The class as generated code names it: those of a backend's own domain stand in its ``ops``."""
        return f"{self.home}{self.class_name}" if self.domain else f"hub.{self.name}"

    def attribute(self, name: str) -> Attribute | None:
        """Return the field called `name`, None if there is none."""
        return next((a for a in self.attributes if a.name == name), None)


@dataclass(frozen=True)
class HubSchema:
    """All operators by name, and ai.onnx's opset version they are of.

    Attributes:
        own: those that ONNX does not have, as they are declared.
    """

    opset: int
    ops: dict[str, HubOp]
    own: list[CustomOp] = field(default_factory=list)


def read(opset_json: str, ops_yaml: str, files: tuple[str, str], printer: Printer) -> HubSchema:
    """Return the hub's operators; what is wrong goes to the printer's diagnostics.

    Args:
        opset_json: text of the opset description.
        ops_yaml: text of the decisions on top of it.
        files: the names of the two in diagnostics.
        printer: prints expressions and holds the diagnostics.
    """
    diagnostics = printer.diagnostics
    described = opset_file.read(opset_json, files[0], diagnostics) or {"opset": 0, "ops": {}}
    ops = {name: _op(name, data) for name, data in described["ops"].items() if not data["deprecated"]}
    decisions = load(ops_yaml, files[1], diagnostics)
    for key, node in decisions.entries if decisions and ops else ():
        if "." in key.text:
            continue  # an op that ONNX does not have
        if key.text not in ops:
            diagnostics.unknown("unknown-op", key.position, "op", key.text, ops)
        elif isinstance(node, Mapping):
            ops[key.text] = _Decisions(described["ops"][key.text], printer).apply(ops[key.text], node)
        else:
            diagnostics.error("hub-entry", node.position, f"the entry of {key.text} must be a mapping")
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
        if not entry.entries:
            self.diagnostics.error("no-effect", entry.position, f"the entry of {op.name} says nothing")
        for key, node in entry.entries:
            if key.text not in OP_KEYS:
                self.diagnostics.unknown("unknown-key", key.position, "key", key.text, OP_KEYS)
                continue
            op = getattr(self, f"_{key.text}")(op, node)
        return op

    def _names(self, node: Node) -> list[Scalar]:
        names = node.items if isinstance(node, Sequence) else ()
        words = [item for item in names if isinstance(item, Scalar)]
        if not words or len(words) < len(names):
            self.diagnostics.error("hub-entry", node.position, "a list of names is expected here")
        return words

    def _entries(self, node: Node) -> list[tuple[Scalar, Scalar]]:
        entries = node.entries if isinstance(node, Mapping) else ()
        words = [(key, value) for key, value in entries if isinstance(value, Scalar)]
        if not words or len(words) < len(entries):
            self.diagnostics.error("hub-entry", node.position, "a mapping of names to words is expected here")
        return words

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
        for key, value in self._entries(node):
            attribute = op.attribute(key.text)
            if not self._known(op, key) or attribute is None:
                continue
            if attribute.required:
                sentence = f"{key.text} must be given, so that a default has no effect"
                self.diagnostics.error("no-effect", key.position, sentence)
            names = {a.name: Name(a.python, type=a.type) for a in op.attributes if a.required}
            code = self.printer.print(source_of(value), Scope(names), attribute.type)
            changed = (replace(a, computed=code) if a.name == key.text else a for a in op.attributes)
            op = replace(op, attributes=tuple(changed))
        return op

    def _static(self, op: HubOp, node: Node) -> HubOp:
        for key, kind in self._entries(node):
            formal = next((f for f in op.inputs if f.name == key.text), None)
            if formal is None:
                known = [f.name for f in op.inputs]
                self.diagnostics.unknown(
                    "unknown-input", key.position, f"input of {op.name}", key.text, known
                )
                continue
            if kind.text not in STATIC_KINDS:
                self.diagnostics.unknown("unknown-kind", kind.position, "kind", kind.text, STATIC_KINDS)
                continue
            problem = self._static_problem(op, formal, kind.text)
            if problem:
                self.diagnostics.error("hub-static", key.position, problem)
                continue
            attribute = Attribute(key.text, kind.text, static=True, dtype=self._dtype(op, key.text))
            inputs = tuple(replace(f, static=True) if f is formal else f for f in op.inputs)
            op = replace(op, inputs=inputs, attributes=(*op.attributes, attribute))
        return op

    def _static_problem(self, op: HubOp, formal: Formal, kind: str) -> str:
        """Return why an input cannot be a field of the kind, empty if it can."""
        if formal.option == "variadic":
            return f"{formal.name} stands for any number of inputs and can be no field"
        if op.attribute(formal.name) is not None:
            return f"{op.name} has an attribute {formal.name} too"
        word = next(p["type"] for p in self.described["inputs"] if p["name"] == formal.name)
        allowed = self.described["types"].get(word, [word])
        if not set(ELEMENTS[kind.removesuffix("s")]) & set(allowed):
            return f"{formal.name} holds no {kind.removesuffix('s')}: it is {', '.join(allowed[:3])}"
        return ""

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
