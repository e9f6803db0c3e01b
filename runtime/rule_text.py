"""Rules and conditions in words: what ``caffeforge explain`` prints of each."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence

from caffeforge.runtime.coverage import Condition, Entry, Lets, PatternText, Way

NAMES = 6  # so many similar names are listed


def entry_lines(entry: Entry, unit: str = "layer") -> Iterator[str]:
    """Yield the conditions that all ways share, then each way, then the named values they speak of."""
    yield from _conditions(entry.conditions, "  ")
    for number, way in enumerate(entry.ways, 1):
        head = f"  {number}. " if len(entry.ways) > 1 else "  "
        indent = " " * len(head)
        yield f"{head}{_yields(way, unit)}  [{way.rule}]"
        if way.note:
            yield f"{indent}{'only where approximations are allowed: ' if way.approximate else ''}{way.note}"
        yield from _conditions(way.conditions, indent)
        if way.parts:
            yield f"{indent}  of these some only where {', or where '.join(p.expression for p in way.parts)}"
        yield from (f"{indent}  {line}" for line in way.rewrite.splitlines())
        yield from _lets(way.let, list(_texts(way)), indent)
    shown = [text for way in entry.ways for text in (*_texts(way), *dict(way.let).values())]
    shown += [condition.expression for condition in entry.conditions]
    yield from _lets(entry.let, shown, "  ")
    if entry.otherwise:
        yield f"  in short: {entry.otherwise}"


def _texts(way: Way) -> Iterator[str]:
    yield way.rewrite
    yield way.inputs
    yield from (condition.expression for condition in (*way.conditions, *way.parts))


def _yields(way: Way, unit: str) -> str:
    if way.layers:
        return f"{unit} {way.layers[0]}" if len(way.layers) == 1 else f"{unit}s {' + '.join(way.layers)}"
    if way.hook:
        return f"what the hook {way.hook} builds"
    if way.inputs:
        return f"an input of the net for each of {way.inputs}"
    return "ops" if way.rewrite else "nothing"


def _conditions(conditions: Sequence[Condition], indent: str) -> Iterator[str]:
    for condition in conditions:
        if condition.sentence:
            yield f"{indent}needs {condition.expression}  [{condition.rule}]"
            yield f"{indent}  else: {condition.sentence}"
        else:
            yield f"{indent}when {condition.expression}"


def _lets(let: Lets, shown: list[str], indent: str) -> Iterator[str]:
    """Yield the named values that `shown` speaks of, and those which they speak of."""
    used: list[str] = []
    for name, expression in reversed(let):
        if any(re.search(rf"(?<![\w.]){re.escape(name)}\b", text) for text in shown):
            used.append(f"{indent}where {name} = {expression}")
            shown = [*shown, expression]
    yield from reversed(used)


def pattern_lines(text: PatternText) -> Iterator[str]:
    """Yield what a pattern looks for, and under which conditions."""
    yield from (f"      {line}" for line in text.match.splitlines())
    yield from _conditions(text.conditions, "      ")


def constraint_lines(name: str, conditions: Sequence[Condition], unit: str = "layer") -> Iterator[str]:
    """Yield the conditions that a chip makes on a layer or op, under a title."""
    if conditions:
        yield f"  constraints on {unit} {name}"
        yield from _conditions(conditions, "    ")


def indented(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines further in."""
    return (f"  {line}" for line in lines)


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """Return similar names, best first; case does not count."""
    lower: dict[str, list[str]] = {}
    for other in known:
        lower.setdefault(other.lower(), []).append(other)
    stem = re.sub(r"_?\d?d$", "", name.rpartition(".")[2].lower())  # as of torch.nn.Conv2d
    found = dict.fromkeys([stem] if stem in lower else [])
    found |= dict.fromkeys(difflib.get_close_matches(name.lower(), lower, NAMES, 0.6))
    return [other for key in found for other in lower[key]][:NAMES]
