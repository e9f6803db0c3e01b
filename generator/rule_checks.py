"""Whether each part of a rule has an effect: values are read, alternatives reached, conditions can differ."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from keyword import iskeyword

from caffeforge.generator.diagnostics import Diagnostics, Position
from caffeforge.generator.mapping import (
    Alternative,
    ConstraintRule,
    LayerEntry,
    MappingFile,
    PatternRule,
    RewritesFile,
    Rule,
)
from caffeforge.generator.names import CONSTANTS, place
from caffeforge.generator.python_text import is_name
from caffeforge.generator.source import Source, SourceError
from caffeforge.generator.yaml_reader import source_of
from caffeforge.generator.yaml_source import Mapping as YamlMapping
from caffeforge.generator.yaml_source import Node, Scalar
from caffeforge.generator.yaml_source import Sequence as YamlSequence


@dataclass
class RuleChecks:
    """Checks rules; those of another file than `file` are inherited, and may have lost what read a value."""

    file: str
    diagnostics: Diagnostics
    reported: set[Position] = field(default_factory=set)

    def mapping(self, mapping: MappingFile) -> None:
        """Report what has no effect in a mapping."""
        constrained = {rule.type.text for rule in mapping.constraints}
        for rule in mapping.ops:
            self._rule(rule, ())
            self._unreachable_op(rule, constrained)
        for rule in mapping.layers:
            self._rule(rule, [c for c in mapping.constraints if c.type.text == rule.name.text])
            self._older(rule)
            self._unreachable_layer(rule)
        for pattern in mapping.patterns:
            self._pattern(pattern)
        for conditions in (*(c.require for c in mapping.constraints), mapping.net.require):
            for condition in conditions:
                self._condition(condition.source)

    def ops(self, rules: Sequence[Rule]) -> None:
        """Report what has no effect in rules that write ops."""
        for rule in rules:
            self._rule(rule, ())

    def rewrites(self, rewrites: RewritesFile) -> None:
        """Report what has no effect in the hub's rewrites."""
        for rule in rewrites.lowerings:
            self._rule(rule, ())
        for pattern in (*rewrites.fusions, *rewrites.folds):
            self._pattern(pattern)

    def _pattern(self, rule: PatternRule) -> None:
        sources = [rule.rewrite, *(c.source for c in rule.require)]
        sources += [rule.when] if rule.when is not None else []
        self._lets(rule.let, names_of(sources))
        for condition in [c.source for c in rule.require] + ([rule.when] if rule.when is not None else []):
            self._condition(condition)

    def _rule(self, rule: Rule, constraints: Sequence[ConstraintRule]) -> None:
        read = [names_of(sources_of(alternative)) for alternative in rule.alternatives]
        extra = names_of(c.source for constraint in constraints for c in constraint.require)
        read[0] |= extra  # constraints see the values of the first alternative
        shared = set.union(*read) | {
            name for a in rule.alternatives for _, source in a.let for name in names_of([source])
        }
        counts = [key for alternative in rule.alternatives for key, _ in alternative.let]
        for alternative, names in zip(rule.alternatives, read, strict=True):
            common = [entry for entry in alternative.let if counts.count(entry[0]) > 1]
            own = [entry for entry in alternative.let if entry not in common]
            self._lets(common, shared)
            self._lets(own, names)
            self._tops(alternative)
            sources = [c.source for c in alternative.require]
            sources += [alternative.when] if alternative.when is not None else []
            sources += [entry.when for entry in alternative.layers if entry.when is not None]
            for source in sources:
                self._condition(source)

    def _older(self, rule: Rule) -> None:
        """Report fields of before: that the rule does not read."""
        lets = [source for a in rule.alternatives for _, source in a.let]
        read = names_of([*lets, *(source for a in rule.alternatives for source in sources_of(a))])
        for key, _ in rule.older:
            if key.text not in read:
                self._error("unused-let", key.position, f"the rule does not read {key.text}", "remove it")

    def _lets(self, let: Sequence[tuple[Scalar, Source]], read: set[str]) -> None:
        """Report values that neither `read` nor a later value names."""
        for index, (key, _) in enumerate(let):
            later = names_of(source for _, source in let[index + 1 :])
            if key.text not in read | later and is_name(key.text) and not iskeyword(key.text):
                self._error("unused-let", key.position, f"nothing reads {key.text}", "remove it")

    def _tops(self, alternative: Alternative) -> None:
        """Report names of tops that no later layer reads."""
        for index, entry in enumerate(alternative.layers):
            later = names_of(s for e in alternative.layers[index + 1 :] for s in _entry_sources(e))
            if entry.top is not None and entry.top.text not in later:
                self._error("unused-let", entry.top.position, f"no later layer reads {entry.top.text}")

    def _condition(self, source: Source) -> None:
        if not names_of([source]) and _parses(source):
            self._error("constant-condition", source.position, "the condition is always the same")

    def _unreachable_layer(self, rule: Rule) -> None:
        """Report alternatives behind one that always holds, or that ask what an earlier one asked."""
        asked: dict[str, Position] = {}
        for index, alternative in enumerate(rule.alternatives):
            if alternative.when is None:
                if index + 1 < len(rule.alternatives):
                    self._after(rule.alternatives[index + 1], alternative.position)
                return
            text = _plain(alternative.when)
            if text in asked:
                self._after(alternative, asked[text])
            asked.setdefault(text, alternative.position)

    def _unreachable_op(self, rule: Rule, constrained: set[str]) -> None:
        """Report alternatives behind one that cannot refuse."""
        for index, alternative in enumerate(rule.alternatives[:-1]):
            if _always_holds(alternative, rule, constrained):
                self._after(rule.alternatives[index + 1], alternative.position)
                return

    def _after(self, alternative: Alternative, first: Position) -> None:
        at = f"line {first.line}" if first.file == alternative.position.file else place(first)
        sentence = f"this is never reached: the alternative at {at} always comes first"
        hint = "give that one a condition (when:), or put it last"
        self._error("unreachable", alternative.position, sentence, hint)

    def _error(self, id: str, position: Position, sentence: str, hint: str = "") -> None:
        if position.file == self.file and position not in self.reported:
            self.reported.add(position)
            self.diagnostics.error(id, position, sentence, hint)


def names_of(sources: Iterable[Source]) -> set[str]:
    """Return the names that the sources read; a source that cannot be parsed reads none."""
    return set().union(*(source.names() for source in sources)) - set(CONSTANTS)


def _parses(source: Source) -> bool:
    try:
        source.expression()
    except SourceError:
        return False
    return True


def _plain(source: Source) -> str:
    try:
        return ast.unparse(source.expression())
    except SourceError:
        return source.text


def sources_of(alternative: Alternative) -> Iterator[Source]:
    """Yield the expressions and the rewrite of an alternative, its let: aside."""
    yield from (condition.source for condition in alternative.require)
    yield from (s for s in (alternative.when, alternative.rewrite, alternative.inputs) if s is not None)
    for entry in alternative.layers:
        yield from _entry_sources(entry)


def _entry_sources(entry: LayerEntry) -> Iterator[Source]:
    yield from (*entry.blobs, *(entry.bottoms or ()))
    if entry.when is not None:
        yield entry.when
    for _, node in entry.fields:
        yield from _field_sources(node)


def _field_sources(node: Node) -> Iterator[Source]:
    if isinstance(node, Scalar):
        yield source_of(node)
    elif isinstance(node, YamlSequence):
        for item in node.items:
            yield from _field_sources(item)
    elif isinstance(node, YamlMapping):
        for _, value in node.entries:
            yield from _field_sources(value)


def _always_holds(alternative: Alternative, rule: Rule, constrained: set[str]) -> bool:
    """Tell whether nothing in an alternative can refuse, so that none behind it is ever asked.

    What it yields can be refused too: a rewrite's nodes, constants as bottoms, blobs that are no constants,
    sizes that are not known; where one of those occurs, a later alternative may be meant for that case.
    """
    own = [c for c in alternative.require if not all(c in a.require for a in rule.alternatives)]
    if alternative.when is not None or own or not alternative.layers:
        return False
    for entry in alternative.layers:
        if entry.type.text in constrained or entry.blobs or entry.bottoms is not None:
            return False
        for source in _entry_sources(entry):
            try:
                tree = source.expression()
            except SourceError:
                return False
            if any(isinstance(n, (ast.Call, ast.Attribute, ast.Subscript)) for n in ast.walk(tree)):
                return False
    return True
