"""Legalize: find, for every node, layers of the backend; report all nodes for which there are none.

A node's alternatives are tried in order. One counts if its conditions hold and all that it yields is
legal in turn (depth first; a lowering that leads back to itself is refused).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from caffeforge.generated.hub.lowerings import RULES as LOWERINGS
from caffeforge.runtime.backend import Alternative, Backend
from caffeforge.runtime.emit import Emit, LayerCall
from caffeforge.runtime.errors import GraphError, LegalizeError
from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.refusal import Refused

FLOATS = ("float32", "float16", "bfloat16", "float64")


@dataclass
class Refusal:
    """Why a node cannot be expressed: a sentence per alternative, with what its lowering met below it."""

    node: Node
    reasons: list[tuple[str, str]] = field(default_factory=list)  # (rule, sentence)
    below: list[Refusal] = field(default_factory=list)
    otherwise: str = ""

    def text(self, indent: str = "") -> str:
        """Return the refusal as indented lines."""
        types = ", ".join(v.type_text() for v in self.node.inputs if v is not None)
        lines = [f"{indent}{self.node.name}: {self.node.op!r} on {types}, from {self.node.origin}"]
        lines += [
            f"{indent}    {rule}: {sentence}" if rule else f"{indent}    {sentence}"
            for rule, sentence in self.reasons
        ]
        lines += [refusal.text(indent + "    ") for refusal in self.below]
        if self.otherwise:
            lines.append(f"{indent}    can be expressed: {self.otherwise}")
        return "\n".join(lines)


def legalize(graph: Graph, backend: Backend) -> list[LayerCall]:
    """Return the layers that compute `graph`, in order, over its values.

    Raises:
        LegalizeError: with one paragraph for each node that the backend cannot express.
    """
    calls: list[LayerCall] = []
    refusals: list[Refusal] = []
    for node in graph.nodes:
        found = _node(node, backend, ())
        if isinstance(found, Refusal):
            refusals.append(found)
        else:
            calls += found
    if refusals:
        count = "1 operation" if len(refusals) == 1 else f"{len(refusals)} operations"
        listed = "\n".join(refusal.text("  ") for refusal in refusals)
        raise LegalizeError(f"{backend.name} cannot express {count} of {graph.name}:\n{listed}")
    return calls


def directly(node: Node, backend: Backend) -> bool:
    """Tell whether a rule of the backend's own writes `node` as layers."""
    rule = backend.rules.get(type(node.op))
    if rule is None or _obstacle(node):
        return False
    for alternative in rule.alternatives:
        emit = Emit(node, alternative.rule, backend)
        try:
            alternative.function(emit, node.op, *_arguments(node))
        except (Refused, GraphError):
            continue
        return not emit.nodes
    return False


def _node(node: Node, backend: Backend, above: tuple[object, ...]) -> list[LayerCall] | Refusal:
    rule, shared = backend.rules.get(type(node.op)), LOWERINGS.get(type(node.op))
    alternatives = [a for r in (rule, shared) if r is not None for a in r.alternatives]
    if node.op.custom is not None and node.op.custom.reference is not None:
        alternatives.append(Alternative(node.op.custom.reference, f"the reference of {node.op.op_type}"))
    refusal = Refusal(node, otherwise=rule.otherwise if rule else "")
    obstacle = _obstacle(node)
    key = (node.op, tuple((v.dtype, v.dims, v.data is None) for v in node.inputs if v is not None))
    if not alternatives:
        refusal.reasons.append(("", f"{backend.name} has no rule for {node.op.op_type}"))
    elif obstacle:
        refusal.reasons.append(("", obstacle))
    elif key in above:
        refusal.reasons.append(("", "the lowering leads back to itself"))
    else:
        for alternative in alternatives:
            found = _alternative(node, alternative, backend, (*above, key), refusal)
            if found is not None:
                return found
    return refusal


def _obstacle(node: Node) -> str:
    """Return why no Caffe layer can stand for `node` whatever the rules say, or an empty string."""
    for formal, value in zip(node.op.inputs, node.inputs, strict=False):
        if formal.static and value is not None:
            return f"{formal.name} must be known when the model is converted, {value.name} is computed"
    for value in (*node.inputs, *node.outputs):
        if value is not None and value.dtype not in FLOATS:
            return f"{value.name} is {value.dtype}, a Caffe blob holds float32"
    return ""


def _alternative(
    node: Node, alternative: Alternative, backend: Backend, above: tuple[object, ...], refusal: Refusal
) -> list[LayerCall] | None:
    emit = Emit(node, alternative.rule, backend)
    try:
        alternative.function(emit, node.op, *_arguments(node))
    except Refused as refused:
        refusal.reasons.append((refused.rule or alternative.rule, refused.sentence))
        return None
    except GraphError as error:
        refusal.reasons.append((alternative.rule, error.what))
        return None
    calls = list(emit.layers)
    for inner in emit.nodes:
        found = _node(inner, backend, above)
        if isinstance(found, Refusal):
            refusal.reasons.append((alternative.rule, f"its lowering needs {inner.op.op_type}"))
            refusal.below.append(found)
            return None
        calls += found
    return calls


def _arguments(node: Node) -> Sequence[object]:
    """Return inputs that are no fields of the op, then results, as an emitter takes them."""
    arguments: list[object] = []
    given: list[Value | None] = [*node.inputs]
    for index, formal in enumerate(node.op.inputs):
        if formal.option == "variadic":
            arguments.append(tuple(given[index:]))
        elif not formal.static:
            arguments.append(given[index] if index < len(given) else None)
    for index, formal in enumerate(node.op.outputs):
        if formal.option == "variadic":
            arguments.append(tuple(node.outputs[index:]))
        else:
            arguments.append(node.outputs[index] if index < len(node.outputs) else None)
    return arguments
