"""Legalize: find, for every node, layers of the backend; report all nodes for which there are none.

A node's alternatives are tried in order: the backend's own rules, then the lowerings shared by all, then
the reference of a custom op. One counts if its conditions hold and all that it yields is legal in turn
(depth first; a lowering that leads back to itself is refused). Refusals are remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from caffeforge.generated.hub.lowerings import IMPOSSIBLE
from caffeforge.generated.hub.lowerings import RULES as LOWERINGS
from caffeforge.runtime.backend import Alternative, Backend
from caffeforge.runtime.emit import Emit, LayerCall
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.plane_places import with_plane_places
from caffeforge.runtime.refusal import Refused, working_out
from caffeforge.runtime.refusals import Refusal, refused

FLOATS = ("float32", "float16", "bfloat16", "float64")
# Ops that yield places along an axis, far below 2**24, and ops that only move what they are given.
PLACES = frozenset({"ArgMax", "ArgMin", "MaxPool", "Places", "TopK"})
MOVES = frozenset(
    {"Concat", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Tile"}
    | {"GatherElements", "GatherND", "MaxUnpool", "OneHot", "ReverseSequence", "Transpose", "Unsqueeze"}
)
DEPTH = 50  # lowerings below one another; more means that one never ends, with other constants each time
Key = tuple[object, ...]


def legalize(graph: Graph, backend: Backend, *, approximate: bool = False) -> list[LayerCall]:
    """Return the layers that compute `graph`, in order, over its values.

    Args:
        graph: it must pass ``Graph.verify``.
        backend: the target.
        approximate: take alternatives that their rules call approximations.

    Raises:
        LegalizeError: with one paragraph for each node that the backend cannot express.
    """
    legalizer = _Legalizer(backend, approximate)
    calls: list[LayerCall] = []
    refusals: list[Refusal] = []
    for node in with_plane_places(graph, lambda node: directly(node, backend)):
        found = legalizer.node(node, ())
        _give_back(node)
        if isinstance(found, Refusal):
            refusals.append(found)
            continue
        for call in found:
            call.root = node
        calls += found
    if refusals:
        raise refused(backend.name, graph.name, refusals)
    return calls


def directly(node: Node, backend: Backend) -> bool:
    """Tell whether a rule of the backend's own writes `node` as layers."""
    rule = backend.rules.get(type(node.op))
    if rule is None or _obstacle(node):
        return False
    for alternative in rule.alternatives:
        emit = Emit(node, alternative.rule, backend)
        try:
            with working_out(alternative.rule):
                alternative.function(emit, node.op, *arguments(node))
        except (Refused, GraphError):
            continue
        finally:
            _give_back(node)
        return not emit.nodes
    return False


def _give_back(node: Node) -> None:
    """Undo what trying a rewrite does to the results of `node`: they stay its own, whatever rules build."""
    for value in node.outputs:
        value.producer = node


class _Legalizer:
    """Finds layers for one node at a time; remembers what was refused."""

    def __init__(self, backend: Backend, approximate: bool) -> None:
        self.backend = backend
        self.approximate = approximate
        self.refused: dict[Key, Refusal] = {}
        self.counts: dict[str, dict[str, int]] = {}  # names given, by stem

    def node(self, node: Node, above: tuple[Key, ...]) -> list[LayerCall] | Refusal:
        """Return layers for `node`, below the nodes `above` whose lowering it is part of."""
        key = _key(node)
        if key in self.refused:
            return replace(self.refused[key], node=node)
        refusal = self._refusal(node)
        obstacle = _obstacle(node)
        if obstacle:
            refusal.reasons.append(("", obstacle))
        elif key in above or len(above) > DEPTH:
            refusal.reasons.append(("", "the lowering leads back to itself"))
            refusal.cyclic = True
        else:
            for alternative in self._alternatives(node):
                found = self._alternative(node, alternative, (*above, key), refusal)
                if found is not None:
                    return found
        if not refusal.cyclic:
            self.refused[key] = refusal
        return refusal

    def _alternatives(self, node: Node) -> list[Alternative]:
        rules = (self.backend.rules.get(type(node.op)), LOWERINGS.get(type(node.op)))
        found = [a for rule in rules if rule is not None for a in rule.alternatives]
        found = [a for a in found if self.approximate or not a.approximate]
        if node.op.custom is not None and node.op.custom.reference is not None:
            found.append(Alternative(node.op.custom.reference, f"the reference of {node.op.op_type}"))
        return found

    def _refusal(self, node: Node) -> Refusal:
        rule = self.backend.rules.get(type(node.op))
        refusal = Refusal(node, otherwise=rule.otherwise if rule else "")
        name = f"{node.op.domain}.{node.op.op_type}" if node.op.domain else node.op.op_type
        if not self._alternatives(node) and type(node.op) in IMPOSSIBLE:
            refusal.reasons.append(("", IMPOSSIBLE[type(node.op)]))
        elif not self._alternatives(node):
            refusal.reasons.append(("", f"{self.backend.name} has no rule for {name}"))
            refusal.hint = f"say it by other ops, or add a rule for {name} under ops: of the mapping"
        return refusal

    def _alternative(
        self, node: Node, alternative: Alternative, above: tuple[Key, ...], refusal: Refusal
    ) -> list[LayerCall] | None:
        """Return the layers of one alternative, or None with the reason added to `refusal`."""
        counts = self.counts.setdefault(node.name, {})
        before = dict(counts)
        calls = self._layers(node, alternative, above, refusal)
        if calls is None:
            counts.clear()
            counts.update(before)
            return None
        for call in calls if alternative.note else ():
            call.notes = (*call.notes, alternative.note)
            call.approximate |= alternative.approximate
        return calls

    def _layers(
        self, node: Node, alternative: Alternative, above: tuple[Key, ...], refusal: Refusal
    ) -> list[LayerCall] | None:
        emit = Emit(node, alternative.rule, self.backend, self.counts[node.name])
        try:
            with working_out(alternative.rule):
                alternative.function(emit, node.op, *arguments(node))
        except Refused as reason:
            refusal.reasons.append((reason.rule or alternative.rule, reason.sentence))
            return None
        except GraphError as error:
            refusal.reasons.append((alternative.rule, error.what))
            return None
        calls = list(emit.layers)
        for inner in emit.nodes:
            found = self.node(inner, above)
            if isinstance(found, Refusal):
                refusal.reasons.append((alternative.rule, f"its lowering needs {inner.op.op_type}"))
                refusal.below.append(found)
                refusal.cyclic |= found.cyclic
                return None
            for call in found:
                call.rule = f"{alternative.rule} > {call.rule}"
            calls += found
        return calls


def _key(node: Node) -> Key:
    """Return what the rules can see of a node; a constant counts as itself, whatever its name."""
    operands = tuple((v.dtype, v.dims, v.data) if v is not None else None for v in node.inputs)
    results = tuple((v.dtype, v.dims) for v in node.outputs)
    return (node.op, operands, results)


def _obstacle(node: Node) -> str:
    """Return why no Caffe layer can stand for `node` whatever the rules say, or an empty string."""
    for formal, value in zip(node.op.inputs, node.inputs, strict=False):
        if formal.static and value is not None:
            return f"{formal.name} must be known when the model is converted, {value.name} is computed"
    for value in (*node.inputs, *node.outputs):
        if value is not None and not _fits(value, node):
            return f"{value.name} is {value.dtype}, a Caffe blob holds float32"
    return ""


def _fits(value: Value, node: Node) -> bool:
    """Tell whether a blob holds exactly what `value` may be: floats, truth values, small whole numbers."""
    if value.data is not None or value.dtype in (*FLOATS, "bool"):
        return True
    if value.dtype not in ("int32", "int64"):
        return False
    if node.op.op_type == "Cast":
        return value in node.inputs and _is_place(value)
    return node.op.op_type in PLACES | MOVES


def _is_place(value: Value) -> bool:
    """Tell whether a whole number is known to be small."""
    source = value.producer
    if source is None:
        return False
    if source.op.op_type in MOVES:
        whole = [v for v in source.inputs if v is not None and v.dtype == value.dtype]
        return all(_is_place(v) for v in whole)
    return source.op.op_type in PLACES


def arguments(node: Node) -> Sequence[object]:
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
