"""Why a target cannot express a node: what a report shows, as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from caffeforge.runtime.errors import LegalizeError
from caffeforge.runtime.graph import Node

SHOWN = 6  # nodes alike that a report names
HINT = (
    "what cannot be expressed can stay outside: --outputs-at ends the net at the outputs of modules before it"
)


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

    def text(self, indent: str = "", alike: Sequence[Node] = ()) -> str:
        """Return the refusal as indented lines; `alike` are further nodes of which all of it is true."""
        lines = [
            f"{indent}{self.node.name}: {self.node.op!r} on {_operands(self.node)}, from {self.node.origin}"
        ]
        if alike:
            others = ", ".join(f"{node.name} from {node.origin}" for node in alike[:SHOWN])
            more = f", and {len(alike) - SHOWN} more" if len(alike) > SHOWN else ""
            lines.append(f"{indent}    and {len(alike)} like it: {others}{more}")
        for rule, sentence in dict.fromkeys(self.reasons):  # what alternatives have in common is said once
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


def cause(document: Mapping[str, Any]) -> str:
    """Return why a node, as ``Refusal.document`` tells of it, is refused at last: the innermost sentence."""
    if document["below"]:
        return cause(document["below"][-1])
    reasons = [each["refused"] for each in document["alternatives"] if each["refused"]]
    return str(reasons[-1] if reasons else document["otherwise"])


def refused(backend: str, graph: str, refusals: Sequence[Refusal]) -> LegalizeError:
    """Return the error that reports all of a graph's refused nodes."""
    count = "1 operation" if len(refusals) == 1 else f"{len(refusals)} operations"
    groups: dict[str, list[Refusal]] = {}
    for refusal in refusals:
        groups.setdefault(_likeness(refusal), []).append(refusal)
    listed = "\n".join(first.text("  ", [r.node for r in others]) for first, *others in groups.values())
    document = {"backend": backend, "graph": graph, "refused": [r.document() for r in refusals]}
    what = f"{backend} cannot express {count} of {graph}:\n{listed}"
    return LegalizeError(what, hint=HINT, document=document)


def _likeness(refusal: Refusal) -> str:
    """Return the text of a refusal without its node's own names: alike ones differ in nothing else."""
    node = refusal.node
    text = refusal.text().replace(str(node.origin), "")
    names = {node.name, *(v.name for v in (*node.inputs, *node.outputs) if v is not None)}
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, "_")
    return text


def _operands(node: Node) -> str:
    """Return the types of what a node reads; of several with the names by which conditions call them."""
    given = [value for value in node.inputs if value is not None]
    if len(given) < 2:
        return "".join(value.type_text() for value in given) or "nothing"
    listed = []
    for index, value in enumerate(node.inputs):
        formal = node.op.inputs[min(index, len(node.op.inputs) - 1)]
        name = "" if formal.option == "variadic" else f"{formal.name}: "
        listed += [f"{name}{value.type_text()}"] if value is not None else []
    return ", ".join(listed)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, (int, float, str, bool)) else repr(value)
