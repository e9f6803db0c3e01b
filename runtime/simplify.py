"""Simplify: what lowerings wrote as several layers and one computes becomes that one; see ``folds/``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from caffeforge.generated.hub.folds import PATTERNS
from caffeforge.runtime.emit import LayerCall
from caffeforge.runtime.folds.affine import join_affine
from caffeforge.runtime.folds.into_weights import join_weights
from caffeforge.runtime.folds.moves import drop_what_moves_nothing, renamed, reshape_once, split_once
from caffeforge.runtime.folds.terms import join_terms
from caffeforge.runtime.folds.undone import leave_undone
from caffeforge.runtime.fuse import fuse
from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.op import Formal, Op

PASSES = 10  # each makes the net smaller; few have anything left to do for a third
Accepts = Callable[[Node], bool]
Write = Callable[[Node], list[LayerCall]]


class _Layers(Op):
    """What a hook wrote as layers and ops at once: it stays as it is."""

    op_type = "Layers"
    domain = "caffeforge"
    inputs = (Formal("inputs", "variadic"),)
    outputs = (Formal("outputs", "variadic"),)


@dataclass
class _Written:
    """The layers of nodes that are written already."""

    calls: dict[Node, list[LayerCall]] = field(default_factory=dict)
    first: dict[str, LayerCall] = field(default_factory=dict)  # of each node's name

    def move(self, old: Node, new: Node) -> None:
        """Let `new` stand for `old`, whose layers read other values now."""
        calls = self.calls.pop(old, None)
        if calls is not None and old is not new:
            places = dict(zip(old.inputs, new.inputs, strict=True))
            for call in calls:
                call.bottoms = tuple(places.get(value) or value for value in call.bottoms)
        if calls is not None:
            self.calls[new] = calls


def simplify(
    graph: Graph, calls: Sequence[LayerCall], accepts: Accepts, write: Write, *, modules: bool = False
) -> list[LayerCall]:
    """Return fewer layers than `calls`, which compute `graph`, for the same outputs.

    Args:
        graph: what the calls compute; it is not changed.
        calls: its layers, in order.
        accepts: tells whether the target writes a node as one rule of its own says.
        write: gives the layers of a node that it accepts.
        modules: also join layers of different modules, where the result of one then has no blob any more.
    """
    written = _Written()
    lowered = Graph(graph.name, graph.inputs, graph.outputs, _leaves(calls, written))

    def layers(node: Node) -> int:
        own = written.calls.get(node)
        return len(own) if own is not None else len(write(node)) if accepts(node) else 0

    for _ in range(PASSES):
        before = lowered.nodes
        _pass(lowered, written, accepts)
        lowered.nodes = join_weights(lowered, layers, modules)
        lowered.nodes = leave_undone(lowered, layers, modules)
        lowered.nodes = join_terms(lowered, accepts, modules)
        if lowered.nodes == before:
            break
    found: list[LayerCall] = []
    for node in lowered.nodes:
        made = written.calls.get(node)
        found += _made_of(write(node), written.first[node.name]) if made is None else made
    return found


def _made_of(calls: Sequence[LayerCall], first: LayerCall) -> Sequence[LayerCall]:
    """Return new layers as part of what `first` was: one of those that they stand for."""
    for call in calls:
        call.root, call.notes, call.approximate = first.root, first.notes, first.approximate
    return calls


def _leaves(calls: Sequence[LayerCall], written: _Written) -> list[Node]:
    """Return the nodes that rules wrote as layers, in order."""
    groups: dict[Node, list[LayerCall]] = {}
    for call in calls:
        groups.setdefault(call.node, []).append(call)
    leaves = []
    for node, group in groups.items():
        tops = {top for call in group for top in call.tops}
        if not set(node.outputs) <= tops:
            read = dict.fromkeys(b for call in group for b in call.bottoms if b not in tops)
            node = Node(node.name, _Layers(), [*read], [*tops], node.origin)
        node.own_outputs()
        written.calls[node] = group
        written.first[node.name] = group[0]
        leaves.append(node)
    return leaves


def _pass(graph: Graph, written: _Written, accepts: Accepts) -> None:
    read = _read(graph)
    _rename(graph, written, drop_what_moves_nothing(graph))
    _replace(graph, reshape_once(graph), set(), accepts)
    _without_unread(graph, read)
    _replace(graph, *split_once(graph), accepts)
    nodes = set(graph.nodes)
    fuse(graph, PATTERNS, accepts)
    _replace(graph, join_affine(graph), set(), accepts)
    _without_unread(graph, read)
    for gone in nodes - set(graph.nodes):
        written.calls.pop(gone, None)


def _rename(graph: Graph, written: _Written, same: Mapping[Value, Value]) -> None:
    nodes = []
    for node in graph.nodes:
        if len(node.outputs) == 1 and node.outputs[0] in same:
            continue
        new = renamed(node, same)
        written.move(node, new)
        nodes.append(new)
    graph.nodes = nodes


def _replace(graph: Graph, new: Mapping[Node, Node], gone: set[Node], accepts: Accepts) -> None:
    """Put nodes in the place of others, where the target takes them."""
    refused = {old for old, node in new.items() if not accepts(node)}
    for node in refused:
        node.own_outputs()
    if refused and gone:
        new, gone = {}, set()
    nodes = [new[n] if n in new and n not in refused else n for n in graph.nodes if n not in gone]
    graph.nodes = nodes
    for node in nodes:
        node.own_outputs()


def _read(graph: Graph) -> set[Value]:
    return {value for node in graph.nodes for value in node.inputs if value is not None}


def _without_unread(graph: Graph, before: set[Value]) -> None:
    """Drop the nodes of which nothing is read any more."""
    kept: list[Node] = []
    wanted = set(graph.outputs)
    for node in reversed(graph.nodes):
        if any(v in wanted or v not in before for v in node.outputs):
            kept.append(node)
            wanted.update(value for value in node.inputs if value is not None)
    graph.nodes = kept[::-1]
