"""Prints ``coverage.py``: what the rules of a mapping say, as data for reports and ``caffeforge explain``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from caffeforge.generator.arrival import Arrival
from caffeforge.generator.compatibility import Dropped
from caffeforge.generator.mapping import (
    Alternative,
    Condition,
    ConstraintRule,
    MappingFile,
    PatternRule,
    RewritesFile,
    Rule,
)
from caffeforge.generator.names import place
from caffeforge.generator.net_constraints import NET
from caffeforge.generator.onnx_rules import ITSELF, OnnxRules
from caffeforge.generator.python_text import Code, call, dict_of, literal, tuple_of
from caffeforge.generator.source import Source

T = TypeVar("T")


@dataclass(frozen=True)
class _Text:
    """A condition as it is printed."""

    rule: str
    expression: str
    sentence: str = ""

    def code(self) -> str:
        parts = [self.rule, self.expression] + ([self.sentence] if self.sentence else [])
        return str(call("Condition", [literal(part) for part in parts], 0, margin=24))


def backend_context(
    mapping: MappingFile, types: Iterable[str], dropped: Sequence[Dropped], found: Arrival
) -> dict[str, Any]:
    """Return what the template prints for a backend; inherited rules that do not fit are left out."""
    known = list(types)
    gone = {(d.subject, d.rule) for d in dropped}
    read = {r.name.text for r in mapping.layers if (r.name.text, place(r.name.position)) not in gone}
    unread = [str(literal(name)) for name in known if name not in read]
    limits = [(r.type.text, r.require) for r in mapping.constraints if not _is_gone(r, gone)]
    limits += [(NET, mapping.net.require)] if mapping.net.require else []
    lost = [call("Dropped", [literal(d.subject), literal(d.rule), literal(d.reason)], 0) for d in dropped]
    return {
        "ops": _entries("OPS", mapping.ops, gone),
        "layers": _entries("LAYERS", [rule for rule in mapping.layers if rule.name.text in known], gone),
        "constraints": _constraints(limits),
        "patterns": _patterns("PATTERNS", mapping.patterns),
        "unread": tuple_of("UNREAD: Final[tuple[str, ...]] = ", unread, 0),
        "dropped": tuple_of("DROPPED: Final[tuple[Dropped, ...]] = ", lost, 0),
        "known": _pairs("KNOWN", found.known),
        "open": _pairs("OPEN", found.open),
        "assumed": _pairs("ASSUMED", found.assumed),
        "unknown": tuple_of(
            "UNKNOWN: Final[tuple[str, ...]] = ", [str(literal(f.name)) for f in found.unknown], 0
        ),
    }


def _is_gone(rule: ConstraintRule, gone: set[tuple[str, str]]) -> bool:
    return (rule.type.text, place(rule.type.position)) in gone


def _pairs(table: str, pairs: Sequence[tuple[str, str]]) -> Code:
    return tuple_of(f"{table}: Final[tuple[tuple[str, str], ...]] = ", [str(literal(p)) for p in pairs], 0)


def hub_context(rewrites: RewritesFile) -> dict[str, Any]:
    """Return what the template prints for the lowerings and fusions that all backends share."""
    return {
        "lowerings": _entries("LOWERINGS", rewrites.lowerings, set()),
        "fusions": _patterns("FUSIONS", [*rewrites.fusions, *rewrites.folds]),
    }


def versions_context(rules: OnnxRules) -> dict[str, Any]:
    """Return what the template prints for the rules of opsets: with each the last that it holds for."""
    found: dict[str, list[str]] = {}
    for rule in rules.rules:
        found.setdefault(rule.rule.name.text, []).append(
            tuple_of("", [str(rule.until), str(_entry(_named(rule.rule)))], 0, 12)
        )
    printed = [f"{literal(name)}: {tuple_of('', entries, 0, 12)}" for name, entries in found.items()]
    return {"rules": dict_of("RULES: Final[Mapping[str, tuple[tuple[int, Entry], ...]]] = ", printed, 0)}


def _named(rule: Rule) -> Rule:
    """Return a rule that calls the op by its name where it says that it is the same."""
    alternatives = []
    for alternative in rule.alternatives:
        layers = [
            replace(entry, type=rule.name) if entry.type.text == ITSELF else entry
            for entry in alternative.layers
        ]
        alternatives.append(replace(alternative, layers=tuple(layers)))
    return replace(rule, alternatives=tuple(alternatives))


def limits_context(constraints: Sequence[ConstraintRule]) -> dict[str, Any]:
    """Return what the template prints of what a vendor refuses of an opset's ops."""
    return {"constraints": _constraints((rule.type.text, rule.require) for rule in constraints)}


def _entries(table: str, rules: Sequence[Rule], gone: set[tuple[str, str]]) -> Code:
    printed = []
    for rule in rules:
        name = rule.name.text
        fitting = [a for a in rule.alternatives if (name, place(a.position)) not in gone]
        if fitting and (name, place(rule.name.position)) not in gone:
            printed.append(f"{literal(name)}: {_entry(replace(rule, alternatives=tuple(fitting)))}")
    return dict_of(f"{table}: Final[Mapping[str, Entry]] = ", printed, 0)


def _entry(rule: Rule) -> Code:
    """Return one rule; what all its alternatives begin with is printed once."""
    lets = [alternative.let for alternative in rule.alternatives]
    requires = [alternative.require for alternative in rule.alternatives]
    let, require = _prefix(lets), _prefix(requires)
    if len(rule.alternatives) == 1:
        let, require = (), ()
    ways = [_way(a, len(let), len(require)) for a in rule.alternatives]
    args = [str(literal(place(rule.name.position))), str(tuple_of("", ways, 0, 16))]
    if rule.otherwise:
        args.append(f"otherwise={literal(rule.otherwise)}")
    if rule.witness:
        args.append(f"witness={literal(rule.witness)}")
    if let:
        args.append(f"let={_lets(let)}")
    if require:
        args.append(f"conditions={_conditions([_required(c) for c in require])}")
    return call("Entry", args, 0, margin=16)


def _way(alternative: Alternative, lets: int, requires: int) -> str:
    args = [str(literal(place(alternative.position)))]
    if alternative.layers:
        args.append(f"layers={literal(tuple(entry.type.text for entry in alternative.layers))}")
    texts = {"rewrite": alternative.rewrite, "inputs": alternative.inputs}
    args += [f"{key}={_text(source)}" for key, source in texts.items() if source is not None]
    if alternative.hook is not None:
        args.append(f"hook={literal(alternative.hook.text)}")
    if alternative.note:
        args.append(f"note={literal(alternative.note)}")
    if alternative.approximate:
        args.append("approximate=True")
    if alternative.let[lets:]:
        args.append(f"let={_lets(alternative.let[lets:])}")
    own = _own_conditions(alternative.when, alternative.require[requires:])
    if own:
        args.append(f"conditions={_conditions(own)}")
    parts = [_asked(entry.when) for entry in alternative.layers if entry.when is not None]
    if parts:
        args.append(f"parts={_conditions(parts)}")
    return str(call("Way", args, 0, margin=20))


def _constraints(limits: Iterable[tuple[str, Sequence[Condition]]]) -> Code:
    printed = [f"{literal(kind)}: {_conditions([_required(c) for c in held])}" for kind, held in limits]
    return dict_of("CONSTRAINTS: Final[Mapping[str, tuple[Condition, ...]]] = ", printed, 0)


def _patterns(table: str, rules: Sequence[PatternRule]) -> Code:
    printed = []
    for rule in rules:
        args = [str(literal(place(rule.name.position))), _text(rule.match), _text(rule.rewrite)]
        own = _own_conditions(rule.when, rule.require)
        if rule.let:
            args.append(f"let={_lets(rule.let)}")
        if own:
            args.append(f"conditions={_conditions(own)}")
        printed.append(f"{literal(rule.name.text)}: {call('PatternText', args, 0, margin=16)}")
    return dict_of(f"{table}: Final[Mapping[str, PatternText]] = ", printed, 0)


def _prefix(lists: Sequence[tuple[T, ...]]) -> tuple[T, ...]:
    """Return the elements with which all lists begin."""
    count = 0
    for items in zip(*lists, strict=False):
        if any(item != items[0] for item in items):
            break
        count += 1
    return lists[0][:count]


def _own_conditions(when: Source | None, require: Sequence[Condition]) -> list[_Text]:
    first = [] if when is None else [_asked(when)]
    return [*first, *(_required(condition) for condition in require)]


def _asked(when: Source) -> _Text:
    return _Text(place(when.position), _one_line(when))


def _required(condition: Condition) -> _Text:
    return _Text(place(condition.source.position), _one_line(condition.source), condition.sentence)


def _conditions(conditions: Sequence[_Text]) -> Code:
    return tuple_of("", [condition.code() for condition in conditions], 0, 24)


def _lets(let: Sequence[tuple[Any, Source]]) -> Code:
    return tuple_of("", [str(literal((key.text, _one_line(source)))) for key, source in let], 0, 24)


def _one_line(source: Source) -> str:
    return " ".join(source.text.split())


def _text(source: Source) -> str:
    return str(literal(source.text.strip()))
