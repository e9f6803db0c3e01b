"""Which conditions of a backend's rules were true and which false while its examples ran.

A condition that no example ever makes false could say anything weaker, and no test would tell. Seen are the
conditions of ops, layers, patterns and constraints, and those under which one layer of a list is written. An
application is put to all alternatives of its op's rule, also to those behind the one that is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from caffeforge.runtime import coverage
from caffeforge.runtime.backend import Alternative, Backend, Reader, Rule
from caffeforge.runtime.coverage import ANY, Condition, Way
from caffeforge.runtime.emit import Emit
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.op import full_name
from caffeforge.runtime.pattern import Pattern
from caffeforge.runtime.read import Read
from caffeforge.runtime.refusal import Refused
from caffeforge.runtime.rule_tests import Trial
from caffeforge.runtime.watched import Test, Watched, watched

UNSAID = "does not hold"  # how a refusal begins whose condition has no sentence of its own
# What an alternative may run into that is asked although an earlier one is taken.
OBSTACLES: Final = (Refused, GraphError, ArithmeticError, LookupError, TypeError, ValueError)


class Seen(NamedTuple):
    """One condition, and what it was seen to be.

    Attributes:
        subject: the op, layer type or pattern.
        condition: its text and place.
        true: it held at least once.
        false: it did not hold at least once.
    """

    subject: str
    condition: Condition
    true: bool
    false: bool


class Untaken(NamedTuple):
    """An alternative by which no example was written."""

    subject: str
    rule: str


class Watch:
    """Notes what conditions of generated functions are."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, Condition], set[bool]] = {}

    def found(self) -> list[Seen]:
        """Return the conditions in the order of the rules."""
        return [Seen(*key, True in values, False in values) for key, values in self.seen.items()]

    def watched(
        self,
        subject: str,
        conditions: Sequence[Condition],
        function: Callable[..., None],
        choices: Sequence[Condition] = (),
    ) -> Watched:
        """Return a function that notes what its conditions are; `choices` refuse nothing."""
        for condition in (*conditions, *choices):
            self.seen.setdefault((subject, condition), set())
        asked: list[Condition | None] = []

        def heard(index: int, value: bool) -> None:
            condition = asked[index]
            if condition is None:
                return
            if condition in choices:
                self.seen[subject, condition].add(value)
            elif value:
                self.seen[subject, condition].add(False)
            elif condition not in asked[index + 1 :]:  # the last part of it holds as well
                self.seen[subject, condition].add(True)

        found = watched(function, heard)
        asked += _conditions_of(found.tests, conditions, choices)
        return found


class Observer(Watch):
    """Watches the conditions of one backend; `backend` is what must be used in its place."""

    def __init__(self, backend: Backend) -> None:
        super().__init__()
        self.covered = coverage.of(backend)
        self.backend = replace(
            backend,
            rules={op: self._rule(full_name(op), rule) for op, rule in backend.rules.items()},
            patterns=tuple(self._pattern(pattern) for pattern in backend.patterns),
            readers={name: self._reader(name, reader) for name, reader in backend.readers.items()},
            constraints={
                name: self.watched(name, self.covered.constraints.get(name, ()), check).run
                for name, check in backend.constraints.items()
            },
        )
        if backend.constrain_any is not None:
            found = self.watched(ANY, self.covered.constraints[ANY], backend.constrain_any)
            self.backend = replace(self.backend, constrain_any=found.run)

    def untaken(self, trials: Iterable[Trial]) -> list[Untaken]:
        """Return the alternatives for ops by which none of the examples was written, in order."""
        taken = {place for trial in trials for rule in trial.rules for place in rule.split(" > ")}
        ways = [(op, way) for op, entry in self.covered.ops.items() for way in entry.ways]
        return [Untaken(op, way.rule) for op, way in ways if way.rule not in taken and not way.approximate]

    def _rule(self, op: str, rule: Rule) -> Rule:
        functions = [self._alternative(op, alternative) for alternative in rule.alternatives]

        def first(e: Emit, *args: Any) -> None:
            for alternative, function in zip(rule.alternatives, functions, strict=True):
                _try(function, Emit(e.node, alternative.rule, e.backend), *args)
            for value in e.node.outputs:
                value.producer = e.node
            functions[0](e, *args)

        pairs = zip(rule.alternatives, [first, *functions[1:]], strict=True)
        return replace(rule, alternatives=tuple(replace(a, function=f) for a, f in pairs))

    def _alternative(self, op: str, alternative: Alternative) -> Callable[..., None]:
        entry = self.covered.ops.get(op)
        ways = [way for way in entry.ways if way.rule == alternative.rule] if entry is not None else []
        if entry is None or len(ways) != 1:
            return alternative.function
        conditions = (*ways[0].conditions, *entry.conditions)
        return self.watched(op, conditions, alternative.function, ways[0].parts).run

    def _pattern(self, pattern: Pattern) -> Pattern:
        conditions = self.covered.patterns[pattern.name].conditions
        return replace(pattern, function=self.watched(pattern.name, conditions, pattern.function).run)

    def _reader(self, layer: str, reader: Reader) -> Reader:
        entry = self.covered.layers.get(layer)
        if entry is None:
            return reader
        conditions = (*entry.conditions, *(c for way in entry.ways for c in way.conditions))
        choices = tuple(way.conditions[0] for way in entry.ways if _is_choice(way))
        found = self.watched(layer, conditions, reader.function, choices)

        def function(r: Read, param: Any) -> None:
            _try(found.ask, Read(r.layer, r.bottoms), param)
            found.run(r, param)

        return replace(reader, function=function)


def _is_choice(way: Way) -> bool:
    """Tell whether a layer's way begins with ``when:``."""
    return bool(way.conditions) and not way.conditions[0].sentence


def _try(function: Callable[..., None], *args: Any) -> None:
    try:
        function(*args)
    except OBSTACLES:
        return


def _conditions_of(
    tests: Sequence[Test], conditions: Sequence[Condition], choices: Sequence[Condition]
) -> list[Condition | None]:
    """Return the condition that each test is of, None for one that the mapping does not say."""
    left = list(choices)
    found: list[Condition | None] = []
    for test in tests:
        if test.refuses is not None:
            sentence, place = test.refuses
            said = [c for c in conditions if c.rule == place and sentence.startswith(c.sentence or UNSAID)]
            found.append(said[0] if said else None)
        else:
            found.append(left.pop(0) if left and not test.inner else None)
    return found
