"""Legalize: find, for every node, layers or ops of a target; report all nodes for which there are none.

A node's alternatives are tried in order: the backend's own rules, then the lowerings shared by all, then
the reference of a custom op. One counts if its conditions hold and all that it yields is legal in turn
(depth first; a lowering that leads back to itself is refused). Refusals are remembered.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Generic, Protocol

from caffeforge.runtime.arguments import arguments as arguments
from caffeforge.runtime.backend import Alternative, Backend, Rule
from caffeforge.runtime.caffe_target import CaffeTarget
from caffeforge.runtime.collector import paused
from caffeforge.runtime.emit import C, Emission, LayerCall
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.folds.channels import join_channels
from caffeforge.runtime.folds.orders import join_orders
from caffeforge.runtime.folds.padding import join_padding
from caffeforge.runtime.folds.phases import join_phases
from caffeforge.runtime.folds.samples import join_samples
from caffeforge.runtime.graph import Graph, Node
from caffeforge.runtime.op import full_name
from caffeforge.runtime.plane_places import with_plane_places
from caffeforge.runtime.refusal import Refused, working_out
from caffeforge.runtime.refusals import Refusal, refused
from caffeforge.runtime.simplify import simplify

DEPTH = 50  # lowerings below one another; more means that one never ends, with other constants each time
Key = tuple[object, ...]


class Target(Protocol[C]):
    """What nodes are to become."""

    @property
    def name(self) -> str: ...

    def rule(self, node: Node) -> Rule | None:
        """Return the target's own rule for a node's op."""

    def lowering(self, node: Node) -> Rule | None:
        """Return the rule that all targets share, if it holds for this one."""

    def why_not(self, node: Node) -> str:
        """Return why the target cannot express an op that it has no rule for, empty if nobody knows."""

    def hint(self, node: Node) -> str:
        """Return what would help where a node is refused, empty if nothing is known."""

    def obstacle(self, node: Node) -> str:
        """Return why the target cannot express a node whatever the rules say, or an empty string."""

    def run(self, node: Node, alternative: Alternative, counts: dict[str, int] | None) -> Emission[C]:
        """Return what an alternative yields for a node.

        Raises:
            Refused: it does not hold.
        """


@paused()
def legalize(
    graph: Graph, backend: Backend, *, approximate: bool = False, folded: bool = True, fold: bool = False
) -> list[LayerCall]:
    """Return the layers of a Caffe dialect that compute `graph`; see `legalized`.

    Not `folded`, they are those that rules write, each for itself. With `fold`, layers of different modules
    are joined as well, where the result of one then has no blob any more.
    """
    target = CaffeTarget(backend)

    def accepts(node: Node) -> bool:
        return written_directly(node, target)

    nodes = with_plane_places(graph, accepts)
    if not folded:
        return legalized(graph, target, nodes, approximate=approximate)
    whole = Graph(graph.name, graph.inputs, graph.outputs, nodes)
    whole.nodes = join_channels(whole, fold, accepts)
    whole.nodes = join_orders(whole, fold)
    whole.nodes = join_samples(whole, fold, accepts)
    whole.nodes = join_padding(whole, fold, accepts)
    whole.nodes = join_phases(whole, accepts)
    calls = legalized(graph, target, whole.nodes, approximate=approximate)
    simpler = simplify(graph, calls, accepts, Legalizer(target, approximate).layers, modules=fold)
    for node in graph.nodes:
        node.own_outputs()
    return simpler


@paused()
def legalized(
    graph: Graph, target: Target[C], nodes: Iterable[Node] | None = None, *, approximate: bool = False
) -> list[C]:
    """Return the layers or ops that compute `graph`, in order, over its values.

    Args:
        graph: it must pass ``Graph.verify``.
        target: what they are of.
        nodes: what stands for the graph's nodes; None for themselves.
        approximate: take alternatives that their rules call approximations.

    Raises:
        LegalizeError: with one paragraph for each node that the target cannot express.
    """
    legalizer = Legalizer(target, approximate)
    calls: list[C] = []
    refusals: list[Refusal] = []
    for node in graph.nodes if nodes is None else nodes:
        found = legalizer.node(node, ())
        node.own_outputs()
        if isinstance(found, Refusal):
            if legalizer.recalled:  # what it says may name values of an earlier node
                found = _refusal_of(node, target, approximate) or found
            found.hint = found.hint or target.hint(node)
            refusals.append(found)
            continue
        for call in found:
            call.root = node
        calls += found
    if refusals:
        raise refused(target.name, graph.name, refusals)
    return calls


def _refusal_of(node: Node, target: Target[C], approximate: bool) -> Refusal | None:
    """Return why a node is refused, worked out for it alone."""
    found = Legalizer(target, approximate).node(node, ())
    node.own_outputs()
    return found if isinstance(found, Refusal) else None


def directly(node: Node, backend: Backend) -> bool:
    """Tell whether a rule of the dialect's own writes `node` as layers."""
    return written_directly(node, CaffeTarget(backend))


def written_directly(node: Node, target: Target[C]) -> bool:
    """Tell whether a rule of the target's own writes `node`, without other nodes in between."""
    rule = target.rule(node)
    if rule is None or target.obstacle(node):
        return False
    for alternative in rule.alternatives:
        try:
            with working_out(alternative.rule):
                emit = target.run(node, alternative, None)
        except (Refused, GraphError):
            continue
        finally:
            node.own_outputs()
        return not emit.nodes
    return False


class Legalizer(Generic[C]):
    """Finds layers or ops for one node at a time; remembers what was refused."""

    def __init__(self, target: Target[C], approximate: bool) -> None:
        self.target = target
        self.approximate = approximate
        self.refused: dict[Key, Refusal] = {}
        self.counts: dict[str, dict[str, int]] = {}  # names given, by stem
        self.recalled = False  # the last refusal says what was remembered of another node

    def node(self, node: Node, above: tuple[Key, ...]) -> list[C] | Refusal:
        """Return layers for `node`, below the nodes `above` whose lowering it is part of."""
        key = _key(node)
        self.recalled &= bool(above)
        if key in self.refused:
            self.recalled = True
            return replace(self.refused[key], node=node)
        refusal = self._refusal(node)
        obstacle = self.target.obstacle(node)
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

    def layers(self, node: Node) -> list[C]:
        """Return the layers of a node that a rule of the target's own is known to write."""
        found = self.node(node, ())
        if isinstance(found, Refusal):
            raise refused(self.target.name, node.name, [found])
        return found

    def _alternatives(self, node: Node) -> list[Alternative]:
        rules = (self.target.rule(node), self.target.lowering(node))
        found = [a for rule in rules if rule is not None for a in rule.alternatives]
        found = [a for a in found if self.approximate or not a.approximate]
        if node.op.custom is not None and node.op.custom.reference is not None:
            found.append(Alternative(node.op.custom.reference, f"the reference of {node.op.op_type}"))
        return found

    def _refusal(self, node: Node) -> Refusal:
        rule = self.target.rule(node)
        refusal = Refusal(node, otherwise=rule.otherwise if rule else "")
        name = full_name(node.op)
        if not self._alternatives(node) and self.target.why_not(node):
            refusal.reasons.append(("", self.target.why_not(node)))
        elif not self._alternatives(node):
            refusal.reasons.append(("", f"{self.target.name} has no rule for {name}"))
            refusal.hint = f"say it by other ops, or add a rule for {name} under ops: of the mapping"
        return refusal

    def _alternative(
        self, node: Node, alternative: Alternative, above: tuple[Key, ...], refusal: Refusal
    ) -> list[C] | None:
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
    ) -> list[C] | None:
        try:
            with working_out(alternative.rule):
                emit = self.target.run(node, alternative, self.counts[node.name])
        except Refused as reason:
            refusal.reasons.append((reason.rule or alternative.rule, reason.sentence))
            return None
        except GraphError as error:
            refusal.reasons.append((alternative.rule, error.what))
            return None
        calls = list(emit.calls)
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
