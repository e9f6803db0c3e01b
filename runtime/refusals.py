"""Why a target cannot express a node: what a report shows, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from caffeforge.runtime.errors import LegalizeError
from caffeforge.runtime.graph import Node


@dataclass
class Refusal:
    """One node that cannot be expressed.

    Attributes:
        reasons: for each alternative its rule and the sentence that did not hold.
        below: what lowerings met that were tried.
        otherwise: what the target can express, in the mapping's words.
        hint: what would help.
        cyclic: a lowering led back to a node above this one, so the reasons hold for this place only.
    """

    node: Node
    reasons: list[tuple[str, str]] = field(default_factory=list)
    below: list[Refusal] = field(default_factory=list)
    otherwise: str = ""
    hint: str = ""
    cyclic: bool = False

    def text(self, indent: str = "") -> str:
        """Return the refusal as indented lines."""
        types = ", ".join(v.type_text() for v in self.node.inputs if v is not None)
        lines = [f"{indent}{self.node.name}: {self.node.op!r} on {types}, from {self.node.origin}"]
        for rule, sentence in self.reasons:
            lines.append(f"{indent}    {rule}: {sentence}" if rule else f"{indent}    {sentence}")
        lines += [refusal.text(indent + "    ") for refusal in self.below]
        if self.otherwise:
            lines.append(f"{indent}    can be expressed: {self.otherwise}")
        if self.hint:
            lines.append(f"{indent}    hint: {self.hint}")
        return "\n".join(lines)

    def document(self) -> dict[str, Any]:
        """Return the refusal as JSON holds it."""
        node = self.node
        return {
            "node": node.name,
            "op": node.op.op_type,
            "fields": {attribute.name: _plain(value) for attribute, value in node.op.fields()},
            "inputs": [value.type_text() if value is not None else None for value in node.inputs],
            "module": node.origin.module,
            "source": node.origin.source,
            "source_op": node.origin.op,
            "alternatives": [{"rule": rule, "refused": sentence} for rule, sentence in self.reasons],
            "below": [refusal.document() for refusal in self.below],
            "otherwise": self.otherwise,
            "hint": self.hint,
        }


def refused(backend: str, graph: str, refusals: Sequence[Refusal]) -> LegalizeError:
    """Return the error that reports all of a graph's refused nodes."""
    count = "1 operation" if len(refusals) == 1 else f"{len(refusals)} operations"
    listed = "\n".join(refusal.text("  ") for refusal in refusals)
    document = {"backend": backend, "graph": graph, "refused": [r.document() for r in refusals]}
    return LegalizeError(f"{backend} cannot express {count} of {graph}:\n{listed}", document=document)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, (int, float, str, bool)) else repr(value)
