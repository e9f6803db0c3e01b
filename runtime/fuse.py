"""Fuse: replace nodes that together are one op, where the target has a rule of its own for that op."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from caffeforge.runtime.builder import Builder
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.graph import Graph, Node
from caffeforge.runtime.op import Op
from caffeforge.runtime.pattern import Match, Pattern, match
from caffeforge.runtime.refusal import Refused, working_out

PASSES = 100  # far more than patterns can be nested
Accepts = Callable[[Node], bool]


def fuse(graph: Graph, patterns: Iterable[Pattern], accepts: Accepts) -> list[str]:
    """Apply patterns to `graph` in place until none matches; a larger pattern is tried before a smaller.

    Args:
        graph: it must pass ``Graph.verify``, and does so afterwards.
        patterns: what to look for.
        accepts: tells whether the target takes a node as it is; a replacement with another is not made.

    Returns:
        One sentence for each replacement.

    Raises:
        GraphError: patterns replace each other's results for ever.
    """
    by_root: dict[type[Op], list[Pattern]] = {}
    for pattern in sorted(patterns, key=lambda p: -len(p.nodes)):
        by_root.setdefault(pattern.nodes[-1].op, []).append(pattern)
    notes: list[str] = []
    for _ in range(PASSES):
        before = len(notes)
        if not _pass(graph, by_root, accepts, notes):
            return notes
    raise GraphError(f"patterns undo each other without end: {'; '.join(notes[before:])}", where=graph.name)


def _pass(graph: Graph, by_root: dict[type[Op], list[Pattern]], accepts: Accepts, notes: list[str]) -> bool:
    """Go through the graph once, from its end, so that the largest matches are seen whole."""
    users, outputs = graph.users(), set(graph.outputs)
    gone: set[int] = set()
    replaced: dict[int, list[Node]] = {}
    for root in reversed(graph.nodes):
        for pattern in by_root.get(type(root.op), ()) if id(root) not in gone else ():
            found = match(pattern, root, users, outputs)
            if found is None or any(id(node) in gone for node in found.nodes):
                continue
            new = _replacement(pattern, root, found, accepts)
            if new is not None:
                gone.update(map(id, found.nodes))
                replaced[id(root)] = new
                notes.append(
                    f"{root.name}: {len(found.nodes)} operations are one, {pattern.name} ({pattern.rule})"
                )
                break
    nodes: list[Node] = []
    for node in graph.nodes:
        nodes += replaced.get(id(node), [] if id(node) in gone else [node])
    graph.nodes = nodes
    for node in nodes:
        node.own_outputs()
    return bool(replaced)


def _replacement(pattern: Pattern, root: Node, found: Match, accepts: Accepts) -> list[Node] | None:
    builder = Builder(root.name, root.origin)
    try:
        with working_out(pattern.rule):
            pattern.function(builder, **found.values)
    except (Refused, GraphError):
        return None
    return builder.nodes if all(map(accepts, builder.nodes)) else None
