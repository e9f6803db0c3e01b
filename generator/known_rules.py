"""The rules of known layers laid over those of a base: new types, more ways, and further conditions."""

from __future__ import annotations

from collections.abc import Iterable

from caffeforge.generator.inheritance import with_alternatives
from caffeforge.generator.known_fit import Fitted
from caffeforge.generator.yaml_source import Mapping, Node, Scalar, Sequence


def lay_over(base: Mapping, fits: Iterable[Fitted]) -> Mapping:
    """Return a mapping with the types and rules of known layers.

    An op's ways go before those that the mapping has, those of a fallback behind them.
    """
    for fit in fits:
        of_base = fit.known.adds and not fit.known.like_type
        base = _amended(base, fit) if of_base else _with_types(base, fit)
        if fit.known.in_place:
            base = _with_in_place(base, fit)
        for ways, rule in ((fit.ops, _before), (fit.fallback, _behind)):
            for op, node in ways:
                entry = rule(node, _entry(base, "ops", op.text))
                base = _with(base, "ops", [(op, _with_examples(entry, op.text, fit))])
    return base


def _with_types(base: Mapping, fit: Fitted) -> Mapping:
    param: Node = Sequence((), fit.known.id.position)
    if fit.field:
        param = Scalar(fit.field, fit.known.id.position)
    base = _with(base, "types", [(word, param) for word in fit.types])
    rule = fit.known.layers
    like = _entry(base, "layers", fit.known.like_type)
    if like is not None:
        rule = _joined(like, rule) if isinstance(rule, Mapping) else like
    return _with(base, "layers", [(word, rule) for word in fit.types if rule is not None])


def _with_in_place(base: Mapping, fit: Fitted) -> Mapping:
    """Return a mapping by which nets may have the types in place when they are read."""
    net = base.get("net")
    held = net.get("takes_in_place") if isinstance(net, Mapping) else None
    types = Sequence((*(held.items if isinstance(held, Sequence) else ()), *fit.types), fit.known.id.position)
    return _with(base, "net", [(Scalar("takes_in_place", fit.known.id.position), types)])


def _amended(base: Mapping, fit: Fitted) -> Mapping:
    """Return a mapping whose rule for a type has further values and conditions, and more ways first."""
    for word in fit.types:
        rule = _entry(base, "layers", word.text)
        if rule is not None and isinstance(fit.known.layers, Mapping):
            base = _with(base, "layers", [(word, _joined(rule, fit.known.layers))])
    return base


def _entry(base: Mapping, section: str, name: str) -> Mapping | None:
    """Return an entry of a mapping, None if it has none."""
    entries = base.get(section)
    rule = entries.get(name) if isinstance(entries, Mapping) else None
    return rule if isinstance(rule, Mapping) else None


def _with(base: Mapping, section: str, entries: list[tuple[Scalar, Node]]) -> Mapping:
    """Return a mapping with entries of a section in the places of those that have their names."""
    old = base.get(section)
    key = next((k for k, _ in base.entries if k.text == section), Scalar(section, base.position))
    held = old if isinstance(old, Mapping) else Mapping((), base.position)
    new = _replaced(held, Mapping(tuple(entries), held.position))
    rest = [e for e in base.entries if e[0].text != section]
    return Mapping((*rest, (key, new)), base.position)


def _with_examples(rule: Mapping, op: str, fit: Fitted) -> Mapping:
    """Return a rule with the examples of a known layer that are applications of its op."""
    own = tuple(text for text in fit.known.example if text.text.rpartition(" = ")[2].startswith(f"{op}("))
    if not own:
        return rule
    old = rule.get("example")
    items = old.items if isinstance(old, Sequence) else () if old is None else (old,)
    key = Scalar("example", own[0].position)
    rest = tuple(entry for entry in rule.entries if entry[0].text != "example")
    return Mapping((*rest, (key, Sequence((*items, *own), own[0].position))), rule.position)


def _before(ways: Node, rule: Mapping | None) -> Mapping:
    """Return a rule that tries some ways first, as by ``prepend:``."""
    return _alone(ways) if rule is None else with_alternatives(rule, _ways(ways), ())


def _behind(ways: Node, rule: Mapping | None) -> Mapping:
    """Return a rule that tries some ways last, as by ``append:``."""
    return _alone(ways) if rule is None else with_alternatives(rule, (), _ways(ways))


def _ways(node: Node) -> tuple[Node, ...]:
    return node.items if isinstance(node, Sequence) else (node,)


def _alone(ways: Node) -> Mapping:
    return Mapping(((Scalar("any_of", ways.position), Sequence(_ways(ways), ways.position)),), ways.position)


def _joined(shared: Mapping, own: Mapping) -> Mapping:
    """Return one entry with the keys of two: values and conditions are added, values of one name replaced.

    Alternatives of `own` go before those of `shared`.
    """
    entries = dict((key.text, (key, node)) for key, node in shared.entries if key.text != "witness")
    for key, node in own.entries:
        common = entries.get(key.text)
        if common is not None and isinstance(common[1], Mapping) and isinstance(node, Mapping):
            node = _replaced(common[1], node)
        elif common is not None and isinstance(common[1], Sequence) and isinstance(node, Sequence):
            first, then = (node, common[1]) if key.text == "any_of" else (common[1], node)
            node = Sequence((*first.items, *then.items), node.position)
        entries[key.text] = (key, node)
    return Mapping(tuple(entries.values()), own.position)


def _replaced(old: Mapping, new: Mapping) -> Mapping:
    """Return the entries of `old`, those of `new` in the places of their names or behind."""
    given = dict((key.text, (key, node)) for key, node in new.entries)
    entries = [given.pop(key.text, (key, node)) for key, node in old.entries]
    return Mapping((*entries, *given.values()), new.position)
