"""Reads the mapping of a vendor's part of an opset: which ops it takes, and what it refuses of them."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as Map
from dataclasses import dataclass, field
from typing import Any

from caffeforge.generator.diagnostics import Diagnostics
from caffeforge.generator.emitters import Emitters
from caffeforge.generator.expression import Scope
from caffeforge.generator.hub_schema import HubOp
from caffeforge.generator.mapping import Alternative, ConstraintRule, CustomOp
from caffeforge.generator.mapping_reader import read_custom
from caffeforge.generator.names import function_name, place
from caffeforge.generator.onnx_rules import OnnxRuleReader
from caffeforge.generator.python_text import Code, dict_of, doc, literal
from caffeforge.generator.yaml_source import Mapping, Node, Scalar

KEYS = ("backend", "extends", "source", "allowed", "host", "casts", "constraints", "custom")
ELEMENT_TYPES = (
    "bool", "float16", "bfloat16", "float32", "float64", "int4", "int8", "int16", "int32", "int64", "uint4",
    "uint8", "uint16", "uint32", "uint64", "string",
)  # fmt: skip


@dataclass(frozen=True)
class Subset:
    """What a vendor takes of an opset.

    Attributes:
        backend: its name.
        source: where the vendor says which ops it takes.
        allowed: their names; empty for all.
        host: those that the vendor's tools leave to the CPU.
        types: the element types that it takes of those of which it says so, by name.
        casts: types that its tools make others of, by themselves.
        constraints: conditions by the hub's op.
        custom: ops of its own domain.
    """

    backend: Scalar
    source: str
    allowed: tuple[Scalar, ...]
    host: tuple[Scalar, ...]
    types: tuple[tuple[Scalar, tuple[Scalar, ...]], ...]
    casts: tuple[tuple[Scalar, Scalar], ...]
    constraints: tuple[ConstraintRule, ...]
    custom: tuple[CustomOp, ...]


def read_subset(root: Mapping, diagnostics: Diagnostics) -> Subset:
    """Return what the mapping says; its mistakes of form go to `diagnostics`."""
    return _Reader(diagnostics).subset(root)


class _Reader(OnnxRuleReader):
    def subset(self, root: Mapping) -> Subset:
        self._keys(root, KEYS)
        allowed = root.get("allowed")
        listed = isinstance(allowed, Mapping)
        entries = self._entries(root, "allowed") if listed else ()
        typed = tuple((key, self._typed(node)) for key, node in entries)
        backend = self._word(root.get("backend"), "the backend's name")
        if backend is None:
            self.diagnostics.error("backend-name", root.position, "backend: must give the backend's name")
        return Subset(
            backend or Scalar("", root.position),
            self._text(root.get("source"), "a source"),
            tuple(key for key, _ in typed) if listed else self._words(allowed) if allowed is not None else (),
            self._words(host) if (host := root.get("host")) is not None else (),
            tuple((key, words) for key, words in typed if words),
            tuple(self._casts(root)),
            self._constraints(root),
            read_custom(root, self.diagnostics),
        )

    def _typed(self, node: Node) -> tuple[Scalar, ...]:
        """Return element types, of which there are none behind an op that takes all."""
        return () if isinstance(node, Scalar) and node.is_null else self._words(node)

    def _constraints(self, root: Mapping) -> tuple[ConstraintRule, ...]:
        """Return the conditions of each op; an entry may be for several ops."""
        found: dict[str, ConstraintRule] = {}
        for key, node in self._entries(root, "constraints"):
            conditions = tuple(self._conditions(node, ("expr", "else", "source")))
            for name in key.text.split():
                before = found.get(name)
                if before is None:
                    found[name] = ConstraintRule(Scalar(name, key.position), conditions)
                else:
                    found[name] = ConstraintRule(before.type, (*before.require, *conditions))
        return tuple(found.values())

    def _casts(self, root: Mapping) -> Iterator[tuple[Scalar, Scalar]]:
        for key, node in self._entries(root, "casts"):
            word = self._word(node, "an element type")
            if word is not None:
                yield key, word


@dataclass
class ConstraintEmitters(Emitters):
    """Prints a function for the constraints of each op."""

    prefix: str = "check"
    taken: set[str] = field(default_factory=set)

    def table(self, constraints: tuple[ConstraintRule, ...]) -> dict[str, Any]:
        """Return what the template of ``constraints.py`` prints."""
        functions, entries = [], []
        for rule in constraints:
            op = self.hub.ops.get(rule.type.text)
            if op is None:
                at = rule.type.position
                self.printer.diagnostics.unknown("unknown-op", at, "op", rule.type.text, self.hub.ops)
                continue
            name = function_name(self.prefix, op.class_name, 0, 1, self.taken)
            self.taken.add(name)
            made = self._function(name, op, Alternative(rule.type.position, require=rule.require))
            comment = doc(f"What is refused of {op.name} ({place(rule.type.position)}).")
            functions.append(made | {"comment": comment})
            entries.append(f"{op.code}: {name}")
        head = "CONSTRAINTS: Final[Mapping[type[Op], Callable[..., None]]] = "
        return {"functions": functions, "table": dict_of(head, entries, 0)}

    def _unmentioned(self, op: HubOp, alternative: Alternative) -> list[str]:
        return []

    def _layers(self, op: HubOp, alternative: Alternative, scope: Scope) -> list[str]:
        return []


def unknown_ops(subset: Subset, known: Map[str, int], opset: int, diagnostics: Diagnostics) -> list[Code]:
    """Report allowed ops that the opset has not; return the others as literals."""
    for word in (*subset.allowed, *subset.host):
        if word.text not in known:
            diagnostics.unknown("unknown-op", word.position, f"op of opset {opset}", word.text, known)
    return [literal(word.text) for word in subset.allowed if word.text in known]


def type_table(subset: Subset, diagnostics: Diagnostics) -> dict[str, Code]:
    """Return what the template prints of element types; unknown ones go to `diagnostics`."""
    entries = [f"{literal(op.text)}: {literal(tuple(w.text for w in words))}" for op, words in subset.types]
    casts = [f"{literal(given.text)}: {literal(made.text)}" for given, made in subset.casts]
    named = [word for _, words in subset.types for word in words]
    named += [word for pair in subset.casts for word in pair]
    for word in named:
        if word.text not in ELEMENT_TYPES:
            diagnostics.unknown("unknown-type", word.position, "element type", word.text, ELEMENT_TYPES)
    return {
        "types": dict_of("TYPES: Final[Mapping[str, tuple[str, ...]]] = ", entries, 0),
        "casts": dict_of("CASTS: Final[Mapping[str, str]] = ", casts, 0),
    }
