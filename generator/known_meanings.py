"""Which known layers a backend has: those that fit its schema in one way only, and those of its ``use:``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from caffeforge.generator.compatibility import Dropped
from caffeforge.generator.diagnostics import Diagnostics
from caffeforge.generator.known_layers import KnownLayer
from caffeforge.generator.names import place
from caffeforge.generator.proto import ProtoSchema
from caffeforge.generator.yaml_source import Mapping, Node, Scalar, Sequence

SHARED = ("let", "require", "note", "approximate")  # of a rule with alternatives, beside any_of


@dataclass
class KnownMeanings:
    """Chooses among the known layers.

    Attributes:
        open: parameter fields that several meanings fit, so that none was taken.
    """

    layers: list[KnownLayer]
    diagnostics: Diagnostics
    open: list[Dropped] = field(default_factory=list)

    def chosen(
        self, root: Mapping, base: Mapping, schema: ProtoSchema, base_schema: ProtoSchema | None
    ) -> list[KnownLayer]:
        """Return the known layers of a backend.

        Args:
            root: its own mapping.
            base: the mapping that it extends, empty if there is none.
            schema: its schema.
            base_schema: that of `base`; without one nothing is looked up but what ``use:`` names.
        """
        named = self._named(root, schema)
        layer = base_schema.messages.get("LayerParameter") if base_schema is not None else None
        old = {f.name for f in layer.fields} if layer is not None else None
        own, inherited = _types(root), _types(base)
        taken: list[KnownLayer] = list(named)
        held = own | inherited | {word.text for known in named for word in known.types}
        claimed = _fields(root) | _fields(base) | {known.field for known in named}
        for param in schema.messages["LayerParameter"].fields if old is not None else ():
            if param.name in (old or ()) or param.name in claimed:
                continue
            fits = [k for k in self.layers if k.field == param.name and not k.misfit(schema)]
            fits = [k for k in fits if not held.intersection(word.text for word in k.types)]
            if len(fits) == 1:
                taken += fits
            elif fits:
                self._leave_open(fits)
        return taken

    def _named(self, root: Mapping, schema: ProtoSchema) -> list[KnownLayer]:
        """Return the layers that ``use:`` names; report what is unknown there or does not fit."""
        section = root.get("use")
        if section is None:
            return []
        if not isinstance(section, Mapping):
            sentence = "layer types with the names of their meanings are expected here"
            self.diagnostics.error("yaml-shape", section.position, sentence)
            return []
        named = []
        for key, node in section.entries:
            known = self._meaning(key, node)
            if known is None:
                continue
            own = root.get("types")
            reason = known.misfit(schema)
            if isinstance(own, Mapping) and own.get(key.text) is not None:
                reason = f"types: has an entry for {key.text}"
            elif key.text not in [word.text for word in known.types]:
                reason = f"that is the meaning of {', '.join(word.text for word in known.types)}"
            if reason:
                sentence = f"{key.text} cannot be {known.id.text} here: {reason}"
                self.diagnostics.error("use-fit", node.position, sentence)
            elif known not in named:
                named.append(known)
        return named

    def _meaning(self, key: Scalar, node: Node) -> KnownLayer | None:
        text = node.text if isinstance(node, Scalar) else ""
        found = next((known for known in self.layers if known.id.text == text), None)
        if found is None:
            ids = [k.id.text for k in self.layers if key.text in [word.text for word in k.types]]
            ids = ids or [k.id.text for k in self.layers]
            self.diagnostics.unknown("unknown-meaning", node.position, "meaning of a layer", text, ids)
        return found

    def _leave_open(self, fits: list[KnownLayer]) -> None:
        kind, ids = fits[0].types[0].text, " or ".join(known.id.text for known in fits)
        reason = f"several meanings fit; say which by use: {{{kind}: {ids}}}"
        self.open.append(Dropped(kind, place(fits[0].id.position), reason))


def lay_over(base: Mapping, known: Iterable[KnownLayer]) -> Mapping:
    """Return a mapping with the types and rules of known layers, which go before rules for the same ops."""
    for layer in known:
        named = {word.text for word in layer.types}
        param: Node = Sequence((), layer.id.position)
        if layer.field is not None:
            param = Scalar(layer.field, layer.id.position)
        base = _with(base, "types", [(word, param) for word in layer.types], named)
        rules = [(word, layer.layers) for word in layer.types if layer.layers is not None]
        base = _with(base, "layers", rules, named)
        for ways, rule in ((layer.ops, _before), (layer.fallback, _behind)):
            for op, node in ways:
                base = _with(base, "ops", [(op, rule(node, _entry(base, op.text)))], {op.text})
    return base


def _with(base: Mapping, section: str, entries: list[tuple[Scalar, Node]], replaced: set[str]) -> Mapping:
    """Return a mapping with entries of a section in the places of those that have their names."""
    old = base.get(section)
    kept = [e for e in old.entries if e[0].text not in replaced] if isinstance(old, Mapping) else []
    position = old.position if old is not None else base.position
    key = next((k for k, _ in base.entries if k.text == section), Scalar(section, position))
    rest = [e for e in base.entries if e[0].text != section]
    return Mapping((*rest, (key, Mapping((*kept, *entries), position))), base.position)


def _entry(base: Mapping, op: str) -> Mapping | None:
    """Return the rule that a mapping has for an op, None if it has none."""
    ops = base.get("ops")
    rule = ops.get(op) if isinstance(ops, Mapping) else None
    return rule if isinstance(rule, Mapping) else None


def _before(ways: Node, rule: Mapping | None) -> Mapping:
    """Return a rule that tries some ways first."""
    return _joined_ways(ways, rule, _ways(ways), _alternatives(rule) if rule is not None else ())


def _behind(ways: Node, rule: Mapping | None) -> Mapping:
    """Return a rule that tries some ways last."""
    return _joined_ways(ways, rule, _alternatives(rule) if rule is not None else (), _ways(ways))


def _ways(node: Node) -> tuple[Node, ...]:
    return node.items if isinstance(node, Sequence) else (node,)


def _joined_ways(ways: Node, rule: Mapping | None, first: Iterable[Node], then: Iterable[Node]) -> Mapping:
    """Return a rule with all alternatives in one list; what the old ones shared is in each of them."""
    position = ways.position
    entries: list[tuple[Scalar, Node]] = []
    if rule is not None:
        position = rule.position
        entries = [e for e in rule.entries if e[0].text in ("otherwise", "example", "refused")]
    key = Scalar("any_of", position)
    return Mapping((*entries, (key, Sequence((*first, *then), position))), position)


def _alternatives(rule: Mapping) -> list[Node]:
    listed = rule.get("any_of")
    if not isinstance(listed, Sequence):
        kept = tuple(e for e in rule.entries if e[0].text not in ("otherwise", "example", "refused"))
        return [Mapping(kept, rule.position)]
    shared = Mapping(tuple(e for e in rule.entries if e[0].text in SHARED), rule.position)
    return [_joined(shared, item) if isinstance(item, Mapping) else item for item in listed.items]


def _joined(shared: Mapping, own: Mapping) -> Mapping:
    """Return one alternative with what all of its rule share: values and conditions are added to its own."""
    entries = dict((key.text, (key, node)) for key, node in shared.entries)
    for key, node in own.entries:
        common = entries.get(key.text)
        if common is not None and isinstance(common[1], Mapping) and isinstance(node, Mapping):
            node = Mapping((*common[1].entries, *node.entries), node.position)
        elif common is not None and isinstance(common[1], Sequence) and isinstance(node, Sequence):
            node = Sequence((*common[1].items, *node.items), node.position)
        entries[key.text] = (key, node)
    return Mapping(tuple(entries.values()), own.position)


def _types(mapping: Mapping) -> set[str]:
    section = mapping.get("types")
    return set(section.keys()) if isinstance(section, Mapping) else set()


def _fields(mapping: Mapping) -> set[str | None]:
    """Return the fields of LayerParameter that ``types:`` names."""
    section = mapping.get("types")
    nodes = [node for _, node in section.entries] if isinstance(section, Mapping) else []
    items = [item for node in nodes for item in (node.items if isinstance(node, Sequence) else (node,))]
    return {item.text for item in items if isinstance(item, Scalar)}
