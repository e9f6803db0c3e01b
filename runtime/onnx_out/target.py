"""An opset of ONNX as a target of the legalizer: its rules, and what would help where a node is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from caffeforge.generated import onnx as versions
from caffeforge.generated.hub.lowerings import RULES as LOWERINGS
from caffeforge.runtime.arguments import arguments
from caffeforge.runtime.backend import Alternative, Rule
from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.legalize import Legalizer
from caffeforge.runtime.onnx_out.backend import OnnxBackend
from caffeforge.runtime.onnx_out.emit import OnnxEmit
from caffeforge.runtime.onnx_out.kept import is_kept, write_kept
from caffeforge.runtime.onnx_out.own_ops import DOMAIN_OF_LOOPS, body_rule, own_rule, stays
from caffeforge.runtime.refusal import Refused
from caffeforge.runtime.refusals import Refusal

_KEPT: Final = Rule((Alternative(write_kept, "as it is", computed=True),))


@dataclass(frozen=True)
class OnnxTarget:
    """See ``legalize.Target``.

    Attributes:
        unread: results that nothing reads; their types may be unknown.
        own_ops: what becomes of ops of domains of their own; see ``own_ops.CHOICES``.
    """

    backend: OnnxBackend
    unread: frozenset[Value] = frozenset()
    own_ops: str = "auto"

    @property
    def name(self) -> str:
        return self.backend.name

    def rule(self, node: Node) -> Rule | None:
        if is_kept(node.op):
            return _KEPT
        if node.op.domain == DOMAIN_OF_LOOPS:
            return _repeated_rule()
        own = self.backend.rules.get(type(node.op))
        if own is None and stays(node.op, self.backend, self.own_ops):
            return own_rule(node.op, self.backend, self.own_ops)
        return own or body_rule(node.op)

    def lowering(self, node: Node) -> Rule | None:
        from caffeforge.runtime.onnx_out.definition import PLACE, is_defined, write_definition

        shared = LOWERINGS.get(type(node.op)) if type(node.op) in self.backend.lowerings else None
        found = shared.alternatives if shared is not None else ()
        if not node.op.domain and is_defined(node.op.op_type):
            found = (*found, Alternative(write_definition, PLACE, computed=True))
        return Rule(found) if found else None

    def why_not(self, node: Node) -> str:
        op = node.op.op_type
        found = versions.VERSIONS.get(op, ()) if not node.op.domain else ()
        return f"{op} came with opset {found[0]}" if found and found[0] > self.backend.opset else ""

    def hint(self, node: Node) -> str:
        """Return the lowest opset that can express the node; what a vendor lacks no opset can give."""
        if self.backend.is_subset or node.op.domain:
            return ""
        for opset in range(self.backend.opset + 1, versions.LAST + 1):
            target = OnnxTarget(_opset(opset), self.unread)
            if not isinstance(Legalizer(target, False).node(node, ()), Refusal):
                return f"opset {opset} can express it: onnx_opset{opset}"
        return ""

    def obstacle(self, node: Node) -> str:
        return ""

    def run(self, node: Node, alternative: Alternative, counts: dict[str, int] | None) -> OnnxEmit:
        emit = OnnxEmit(node, alternative.rule, self.backend, counts, self.unread)
        if not alternative.computed:
            _refuse_computed(node, alternative)
        alternative.function(emit, node.op, *arguments(node))
        return emit


def _repeated_rule() -> Rule:
    from caffeforge.runtime.onnx_out.bodies.repeated import write_repeated

    return Rule((Alternative(write_repeated, "a Loop", computed=True),))


def _refuse_computed(node: Node, alternative: Alternative) -> None:
    """Refuse a rule that reads as a field what is an operand here."""
    for formal, value in zip(node.op.inputs, node.inputs, strict=False):
        if formal.static and value is not None:
            raise Refused(
                f"{formal.name} must be known when the model is converted, {value.name} is computed",
                alternative.rule,
            )


def unread(graph: Graph) -> frozenset[Value]:
    """Return the results that neither a node reads nor the graph gives."""
    read = {value for node in graph.nodes for value in node.inputs} | set(graph.outputs)
    return frozenset(value for node in graph.nodes for value in node.outputs if value not in read)


def _opset(opset: int) -> OnnxBackend:
    from caffeforge.runtime.backends import find_any

    found = find_any(f"onnx_opset{opset}")
    assert isinstance(found, OnnxBackend)
    return found
