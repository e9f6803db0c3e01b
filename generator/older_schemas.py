"""Rules over schemas that have less than the base's: fields of later Caffes, and one size for all axes.

Many vendors' Caffe left the common line early. A rule says by ``before:`` what a layer computed before it had
a field; and where the base has a size for each axis, a schema with one for all fits what goes through
``spatial()``, which takes both.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from caffeforge.generator.compatibility import HasMessage, Touched
from caffeforge.generator.expression import Name, Printer, Scope
from caffeforge.generator.mapping import Alternative, Condition, LayerEntry, Rule
from caffeforge.generator.names import free_name
from caffeforge.generator.proto import ProtoField
from caffeforge.generator.rule_checks import sources_of
from caffeforge.generator.source import Source, SourceError
from caffeforge.generator.yaml_reader import source_of
from caffeforge.generator.yaml_source import Scalar

Older = Mapping[
    str, Mapping[str, Source]
]  # layer type -> field -> its value where the schema has no such field


def values(rules: Sequence[Rule]) -> Older:
    """Return what the rules for layer types say by ``before:``."""
    return {rule.name.text: {key.text: source for key, source in rule.older} for rule in rules}


@dataclass(frozen=True)
class Missing:
    """A field of ``before:`` that the schema does not have: the name that stands for it, and its value."""

    name: Name
    value: str


def missing(rule: Rule, fields: Sequence[ProtoField], printer: Printer) -> dict[str, Missing]:
    """Return what stands for the fields of ``before:`` that a layer's message does not have."""
    known, empty, found = {field.name for field in fields}, Scope({}), {}
    for key, source in rule.older:
        if key.text not in known:
            kind = replace(printer.infer(source, empty), values=None)
            name = Name(free_name(key.text), "lib.NEVER", kind)
            found[key.text] = Missing(name, printer.print(source, empty))
    return found


def without_missing(
    alternative: Alternative, types: Mapping[str, Sequence[str]], older: Older
) -> Alternative:
    """Return an alternative that writes no field which only later Caffes have.

    It holds only where what it would write there is what a layer without the field computes.

    Args:
        alternative: one way to write an op.
        types: the names of the fields of each layer type.
        older: see `values`.
    """
    entries, conditions = [], []
    for entry in alternative.layers:
        missing = list(_missing(entry, types, older))
        conditions += [_is_older(key, node, older[entry.type.text][key.text]) for key, node in missing]
        gone = {key.text for key, _ in missing}
        entries.append(replace(entry, fields=tuple(e for e in entry.fields if e[0].text not in gone)))
    return replace(alternative, layers=tuple(entries), require=(*alternative.require, *conditions))


def _missing(
    entry: LayerEntry, types: Mapping[str, Sequence[str]], older: Older
) -> Iterator[tuple[Scalar, Scalar]]:
    kind = entry.type.text
    for key, node in entry.fields if kind in types else ():
        is_known = key.text in types[kind] or key.text not in older.get(kind, {})
        if not is_known and isinstance(node, Scalar):
            yield key, node


def _is_older(key: Scalar, node: Scalar, older: Source) -> Condition:
    given = source_of(node)
    text = f"({given.text}) == {older.text}"
    return Condition(Source(text, given.position), f"there is no field {key.text} for another value here")


def sizes(rules: Sequence[Rule], types: Mapping[str, HasMessage]) -> dict[Touched, int]:
    """Return the fields that rules for layers read by ``spatial()`` only, and the size of an absent one.

    Where the base has such a field for each axis, one for all axes does as well.
    """
    found: dict[Touched, int] = {}
    for rule in rules:
        if rule.name.text in types:
            message = types[rule.name.text].message
            found |= {(message, name): size for name, size in _sizes(rule).items()}
    return found


def sides(rules: Sequence[Rule], types: Mapping[str, HasMessage]) -> frozenset[Touched]:
    """Return the fields for one axis that rules for layers give to ``spatial()`` and ask by ``has()`` only.

    Whether they are set decides, as in Caffe; their default, which some schemas have, means nothing.
    """
    found: set[Touched] = set()
    for rule in rules:
        if rule.name.text in types:
            message = types[rule.name.text].message
            found |= {(message, name) for name in _uses(rule).sides}
    return frozenset(found)


def _sizes(rule: Rule) -> dict[str, int]:
    uses = _uses(rule)
    return {name: size for name, size in uses.sizes.items() if name not in uses.other}


@dataclass(frozen=True)
class _Spatial:
    """What a rule reads by ``spatial()``.

    Attributes:
        sizes: the fields for all axes, and the size of an absent one.
        sides: the fields for one axis that nothing else reads.
        other: the names that are read in another way than the fields for all axes.
    """

    sizes: Mapping[str, int]
    sides: frozenset[str]
    other: frozenset[str]


NOTHING = _Spatial({}, frozenset(), frozenset())


def _uses(rule: Rule) -> _Spatial:
    sources = [s for a in rule.alternatives for s in (*sources_of(a), *(source for _, source in a.let))]
    if not any("spatial(" in source.text for source in sources):
        return NOTHING  # as of nearly all rules
    found: dict[str, int] = {}
    sides: set[str] = set()
    other: set[str] = set()  # read by something else than has() and as the first operand of spatial()
    read: set[str] = set()  # likewise, but for the second and third
    for source in sources:
        try:
            nodes = [node for tree in _trees(source) for node in ast.walk(tree)]
        except SourceError:
            return NOTHING
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        spatial = [c for c in calls if ast.unparse(c.func) == "spatial" and len(c.args) == 5]
        asked = {id(c.args[0]) for c in calls if ast.unparse(c.func) == "has" and c.args}
        given = asked | {id(side) for call in spatial for side in call.args[1:3]}
        asked |= {id(call.args[0]) for call in spatial}
        for call in spatial:
            if isinstance(call.args[0], ast.Name) and isinstance(call.args[3], ast.Constant):
                found[call.args[0].id] = int(call.args[3].value)  # type: ignore[arg-type]
            sides |= {side.id for side in call.args[1:3] if isinstance(side, ast.Name)}
        other |= {n.id for n in nodes if isinstance(n, ast.Name) and id(n) not in asked}
        read |= {n.id for n in nodes if isinstance(n, ast.Name) and id(n) not in given}
    return _Spatial(found, frozenset(sides - read), frozenset(other))


def _trees(source: Source) -> Sequence[ast.AST]:
    try:
        return [source.expression()]
    except SourceError:
        return source.statements()
