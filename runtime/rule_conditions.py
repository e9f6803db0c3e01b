"""Which conditions of a backend's rules were seen true and false while its examples ran.

A condition that no example ever makes false could say anything weaker, and no test would tell. Seen are
the conditions of ops, of patterns, of constraints and of layers with one way to be read: a rule that holds
made all of its conditions true, one that does not names the condition that was false. What a rule asks by
``when:`` among several readings of a layer, or within a list of layers, leaves no trace and is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from caffeforge.runtime import coverage
from caffeforge.runtime.backend import Alternative, Backend, Reader
from caffeforge.runtime.coverage import Condition
from caffeforge.runtime.pattern import Pattern
from caffeforge.runtime.refusal import Refused

UNSAID = "does not hold"  # how a refusal begins whose condition has no sentence of its own


class Seen(NamedTuple):
    """One condition, and what it was seen to be.

    Attributes:
        subject: the op, layer type or pattern.
        condition: its text and place.
        true: it held at least once.
        false: it refused at least once.
    """

    subject: str
    condition: Condition
    true: bool
    false: bool


class Observer:
    """Watches the conditions of one backend; `backend` is what must be used in its place."""

    def __init__(self, backend: Backend) -> None:
        self.covered = coverage.of(backend)
        self.seen: dict[tuple[str, Condition], set[bool]] = {}
        rules = {}
        for op, rule in backend.rules.items():
            alternatives = tuple(self._alternative(op.op_type, a) for a in rule.alternatives)
            rules[op] = replace(rule, alternatives=alternatives)
        patterns = tuple(self._pattern(pattern) for pattern in backend.patterns)
        readers = {name: self._reader(name, reader) for name, reader in backend.readers.items()}
        constraints = {
            name: self._watched(name, self.covered.constraints.get(name, ()), check)
            for name, check in backend.constraints.items()
        }
        self.backend = replace(
            backend, rules=rules, patterns=patterns, readers=readers, constraints=constraints
        )

    def found(self) -> list[Seen]:
        """Return the conditions in the order of the rules."""
        return [Seen(*key, True in values, False in values) for key, values in self.seen.items()]

    def _alternative(self, op: str, alternative: Alternative) -> Alternative:
        entry = self.covered.ops.get(op)
        ways = [way for way in entry.ways if way.rule == alternative.rule] if entry is not None else []
        if entry is None or len(ways) != 1:
            return alternative
        conditions = (*ways[0].conditions, *entry.conditions)
        ordered = not entry.conditions  # else those of the alternative may stand after the common ones
        return replace(
            alternative, function=self._watched(op, conditions, alternative.function, ordered=ordered)
        )

    def _pattern(self, pattern: Pattern) -> Pattern:
        conditions = self.covered.patterns[pattern.name].conditions
        return replace(pattern, function=self._watched(pattern.name, conditions, pattern.function))

    def _reader(self, layer: str, reader: Reader) -> Reader:
        entry = self.covered.layers.get(layer)
        if entry is None or len(entry.ways) != 1:
            return reader
        conditions = (*entry.ways[0].conditions, *entry.conditions)
        return replace(reader, function=self._watched(layer, conditions, reader.function, ordered=False))

    def _watched(
        self,
        subject: str,
        conditions: Sequence[Condition],
        function: Callable[..., None],
        *,
        ordered: bool = True,
    ) -> Callable[..., None]:
        for condition in conditions:
            self.seen.setdefault((subject, condition), set())

        def watched(*args: Any, **captures: Any) -> None:
            try:
                function(*args, **captures)
            except Refused as reason:
                self._refused(subject, conditions, reason, ordered=ordered)
                raise
            for condition in conditions:
                self.seen[subject, condition].add(True)

        return watched

    def _refused(
        self, subject: str, conditions: Sequence[Condition], reason: Refused, *, ordered: bool
    ) -> None:
        """Note the condition that a refusal names; one for another cause tells nothing of them."""
        for index, condition in enumerate(conditions):
            said = condition.sentence or UNSAID
            if condition.rule == reason.rule and reason.sentence.startswith(said):
                self.seen[subject, condition].add(False)
                for before in conditions[:index] if ordered else ():
                    self.seen[subject, before].add(True)
                return
