"""What lowerings cost: for each kind of operation that took several layers, how many of which types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from caffeforge.runtime.emit import C, Call


def lowering_notes(calls: Sequence[C]) -> list[str]:
    """Return a sentence for each kind of op that became several layers, and for each note of a rule."""
    by_node: dict[str, list[Call]] = {}
    for call in calls:
        node = call.root or call.node
        by_node.setdefault(node.name, []).append(call)
    kinds: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    noted: dict[tuple[str, str], list[str]] = {}
    for name, made in by_node.items():
        op = (made[0].root or made[0].node).op.op_type
        if len(made) > 1:
            kinds.setdefault((op, tuple(call.kind for call in made)), []).append(name)
        for note in dict.fromkeys(note for call in made for note in call.notes):
            noted.setdefault((op, note), []).append(name)
    lowered = [f"{_times(op, names)}: {_layers(types)}" for (op, types), names in kinds.items()]
    return lowered + [f"{_times(op, names)}: {note}" for (op, note), names in noted.items()]


def _times(op: str, names: Sequence[str]) -> str:
    listed = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    return f"{len(names)} {op} ({listed})"


def _layers(types: Sequence[str]) -> str:
    counts = Counter(types)
    listed = ", ".join(f"{count} {kind}" if count > 1 else kind for kind, count in counts.items())
    return f"written as {len(types)} layers each: {listed}"
