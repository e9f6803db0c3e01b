"""Reads the mapping of a vendor's part of an opset: which ops it takes, and what it refuses of them."""

from __future__ import annotations

from collections.abc import Mapping as Map
from dataclasses import dataclass, field
from typing import Any

from caffeforge.generator.diagnostics import Diagnostics
from caffeforge.generator.emitters import Emitters
from caffeforge.generator.expression import Scope
from caffeforge.generator.hub_schema import HubOp
from caffeforge.generator.mapping import Alternative, ConstraintRule
from caffeforge.generator.names import function_name, place
from caffeforge.generator.onnx_rules import OnnxRuleReader
from caffeforge.generator.python_text import Code, dict_of, doc, literal
from caffeforge.generator.yaml_source import Mapping, Scalar

KEYS = ("backend", "extends", "source", "allowed", "constraints")


@dataclass(frozen=True)
class Subset:
    """What a vendor takes of an opset.

    Attributes:
        backend: its name.
        source: where the vendor says which ops it takes.
        allowed: their names; empty for all.
        constraints: conditions by the hub's op.
    """

    backend: Scalar
    source: str
    allowed: tuple[Scalar, ...]
    constraints: tuple[ConstraintRule, ...]


def read_subset(root: Mapping, diagnostics: Diagnostics) -> Subset:
    """Return what the mapping says; its mistakes of form go to `diagnostics`."""
    return _Reader(diagnostics).subset(root)


class _Reader(OnnxRuleReader):
    def subset(self, root: Mapping) -> Subset:
        self._keys(root, KEYS)
        allowed = root.get("allowed")
        backend = self._word(root.get("backend"), "the backend's name")
        if backend is None:
            self.diagnostics.error("backend-name", root.position, "backend: must give the backend's name")
        return Subset(
            backend or Scalar("", root.position),
            self._text(root.get("source"), "a source"),
            self._words(allowed) if allowed is not None else (),
            tuple(
                ConstraintRule(key, tuple(self._conditions(node, ("expr", "else", "source"))))
                for key, node in self._entries(root, "constraints")
            ),
        )


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
    for word in subset.allowed:
        if word.text not in known:
            diagnostics.unknown("unknown-op", word.position, f"op of opset {opset}", word.text, known)
    return [literal(word.text) for word in subset.allowed if word.text in known]
