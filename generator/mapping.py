"""A mapping file as data: what ``mapping.yaml`` says, keys checked, expressions still text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from caffeforge.generator.diagnostics import Diagnostics, Position
from caffeforge.generator.expression import Source
from caffeforge.generator.yaml_source import Mapping, Node, Scalar, Sequence

TOP_KEYS = ("backend", "types", "ops", "layers", "net")
OP_KEYS = (
    "let",
    "require",
    "when",
    "layer",
    "emit",
    "rewrite",
    "any_of",
    "fields",
    "blobs",
    "bottoms",
    "otherwise",
)
OP_ALTERNATIVE_KEYS = tuple(key for key in OP_KEYS if key not in ("any_of", "otherwise"))
ENTRY_KEYS = ("layer", "fields", "blobs", "bottoms", "loose", "kept", "when")
LAYER_KEYS = ("ignore", "let", "require", "when", "rewrite", "any_of", "otherwise", "inputs")
ALTERNATIVE_KEYS = ("let", "require", "when", "rewrite")
REWRITES_KEYS = ("lowerings",)
LOWERING_KEYS = ("let", "require", "when", "rewrite", "any_of", "otherwise")
NET_KEYS = ("input", "loose_tops")


@dataclass(frozen=True)
class Condition:
    """An expression that must hold, and the sentence shown when it does not."""

    source: Source
    sentence: str


@dataclass(frozen=True)
class LayerEntry:
    """One layer that a rule writes.

    Attributes:
        fields: parameter fields with the YAML that gives their values.
        bottoms: None for the rule's default: the result of the layer before, or the op's operands.
        loose: how many tops it has besides the one that goes on, which is number `kept`.
        when: the layer is left out where this does not hold.
    """

    type: Scalar
    fields: tuple[tuple[Scalar, Node], ...] = ()
    blobs: tuple[Source, ...] = ()
    bottoms: tuple[Source, ...] | None = None
    loose: int = 0
    kept: int = 0
    when: Source | None = None


@dataclass(frozen=True)
class Alternative:
    """One way to write an op or to read a layer: layers, or the text of a rewrite."""

    position: Position
    let: tuple[tuple[Scalar, Source], ...] = ()
    require: tuple[Condition, ...] = ()
    when: Source | None = None
    layers: tuple[LayerEntry, ...] = ()
    rewrite: Source | None = None
    inputs: Source | None = None


@dataclass(frozen=True)
class Rule:
    """The entry of one op or layer type; `ignore` names fields without meaning for inference."""

    name: Scalar
    alternatives: tuple[Alternative, ...]
    otherwise: str = ""
    ignore: tuple[Scalar, ...] = ()


@dataclass(frozen=True)
class NetRule:
    """How nets are written: the layer of an input, the type that takes loose tops."""

    input: LayerEntry | None = None
    loose_tops: Scalar | None = None


@dataclass
class MappingFile:
    """All of a mapping."""

    backend: Scalar
    types: dict[str, tuple[Scalar, tuple[Scalar, ...]]] = field(default_factory=dict)
    ops: list[Rule] = field(default_factory=list)
    layers: list[Rule] = field(default_factory=list)
    net: NetRule = field(default_factory=NetRule)


@dataclass
class RewritesFile:
    """What all backends share: lowerings, of the same form as ``ops:`` of a mapping."""

    lowerings: list[Rule] = field(default_factory=list)


def read_rewrites(root: Mapping, diagnostics: Diagnostics) -> RewritesFile:
    """Return what ``schemas/hub/rewrites.yaml`` says; its mistakes of form go to `diagnostics`."""
    return _Reader(diagnostics).rewrites(root)


def read(root: Mapping, diagnostics: Diagnostics) -> MappingFile:
    """Return what a mapping says; its mistakes of form go to `diagnostics`."""
    return _Reader(diagnostics).file(root)


class _Reader:
    def __init__(self, diagnostics: Diagnostics) -> None:
        self.diagnostics = diagnostics

    def file(self, root: Mapping) -> MappingFile:
        self._keys(root, TOP_KEYS)
        backend = root.get("backend")
        if not isinstance(backend, Scalar) or not backend.text.isidentifier():
            position = backend.position if backend is not None else root.position
            self.diagnostics.error(
                "backend-name", position, "'backend:' must give the backend's name, an identifier"
            )
            backend = Scalar("backend", position)
        result = MappingFile(backend)
        for key, node in self._entries(root, "types"):
            result.types[key.text] = (key, self._words(node))
        for section, keys in (("ops", OP_KEYS), ("layers", LAYER_KEYS)):
            for key, node in self._entries(root, section):
                getattr(result, section).append(self._rule(key, node, keys))
        result.net = self._net(root.get("net"))
        return result

    def rewrites(self, root: Mapping) -> RewritesFile:
        self._keys(root, REWRITES_KEYS)
        entries = self._entries(root, "lowerings")
        return RewritesFile([self._rule(key, node, LOWERING_KEYS) for key, node in entries])

    def _rule(self, name: Scalar, node: Node, keys: tuple[str, ...]) -> Rule:
        entry = self._mapping(node)
        self._keys(entry, keys)
        otherwise = entry.get("otherwise")
        ignore = entry.get("ignore")
        listed = entry.get("any_of")
        if isinstance(listed, Sequence):
            inner = OP_ALTERNATIVE_KEYS if keys is OP_KEYS else ALTERNATIVE_KEYS
            common = self._alternative(entry)
            alternatives = []
            for item in listed.items:
                self._keys(self._mapping(item), inner)
                one = self._alternative(self._mapping(item))
                self._require_body(one)
                alternatives.append(
                    Alternative(
                        one.position,
                        common.let + one.let,
                        common.require + one.require,
                        one.when,
                        one.layers,
                        one.rewrite,
                    )
                )
        else:
            if listed is not None:
                self.diagnostics.error("any-of", listed.position, "any_of: is a list of alternatives")
            alternatives = [self._alternative(entry)]
            self._require_body(alternatives[0])
        return Rule(
            name,
            tuple(alternatives),
            otherwise.text if isinstance(otherwise, Scalar) else "",
            self._words(ignore) if ignore is not None else (),
        )

    def _require_body(self, alternative: Alternative) -> None:
        bodies = sum(
            (bool(alternative.layers), alternative.rewrite is not None, alternative.inputs is not None)
        )
        if bodies != 1:
            verbs = "layer, emit, rewrite or any_of"
            self.diagnostics.error(
                "rule-verb", alternative.position, f"exactly one of {verbs} must stand here"
            )

    def _alternative(self, entry: Mapping) -> Alternative:
        emit, rewrite, when, inputs = (entry.get(k) for k in ("emit", "rewrite", "when", "inputs"))
        layers: tuple[LayerEntry, ...] = ()
        if entry.get("layer") is not None:
            layers = (self._layer(entry, with_when=False),)
        elif isinstance(emit, Sequence):
            for item in emit.items:
                self._keys(self._mapping(item), ENTRY_KEYS)
            layers = tuple(self._layer(self._mapping(item), with_when=True) for item in emit.items)
        elif emit is not None:
            self.diagnostics.error("emit", emit.position, "emit: is a list of layers")
        return Alternative(
            entry.position,
            tuple((key, self._source(node)) for key, node in self._entries(entry, "let")),
            tuple(self._conditions(entry.get("require"))),
            self._source(when) if when is not None else None,
            layers,
            self._source(rewrite) if rewrite is not None else None,
            self._source(inputs) if inputs is not None else None,
        )

    def _layer(self, entry: Mapping, *, with_when: bool) -> LayerEntry:
        kind, bottoms, when = (entry.get(k) for k in ("layer", "bottoms", "when"))
        if not isinstance(kind, Scalar):
            self.diagnostics.error("layer", entry.position, "'layer:' must name a layer type")
            kind = Scalar("", entry.position)
        return LayerEntry(
            kind,
            tuple(self._entries(entry, "fields")),
            tuple(self._source(item) for item in self._items(entry.get("blobs"))),
            tuple(self._source(item) for item in self._items(bottoms)) if bottoms is not None else None,
            self._count(entry.get("loose")),
            self._count(entry.get("kept")),
            self._source(when) if with_when and when is not None else None,
        )

    def _conditions(self, node: Node | None) -> Iterator[Condition]:
        for item in self._items(node):
            entry = self._mapping(item)
            self._keys(entry, ("expr", "else"))
            expression, sentence = entry.get("expr"), entry.get("else")
            if expression is None or not isinstance(sentence, Scalar):
                text = "a condition is 'expr:' with 'else:', the sentence shown when it does not hold"
                self.diagnostics.error("require", entry.position, text)
                continue
            yield Condition(self._source(expression), sentence.text)

    def _count(self, node: Node | None) -> int:
        if node is None:
            return 0
        if isinstance(node, Scalar) and node.text.isdigit():
            return int(node.text)
        self.diagnostics.error("yaml-shape", node.position, "a number is expected here")
        return 0

    def _net(self, node: Node | None) -> NetRule:
        if node is None:
            return NetRule()
        entry = self._mapping(node)
        self._keys(entry, NET_KEYS)
        given, loose = entry.get("input"), entry.get("loose_tops")
        layer = None
        if isinstance(given, Mapping):
            self._keys(given, ("layer", "fields"))
            layer = self._layer(given, with_when=False)
        elif isinstance(given, Scalar) and given.text != "fields":
            self.diagnostics.error("net", given.position, "net input: is 'fields' or a layer with fields")
        return NetRule(layer, loose if isinstance(loose, Scalar) else None)

    def _keys(self, entry: Mapping, known: tuple[str, ...]) -> None:
        for key, _ in entry.entries:
            if key.text not in known:
                self.diagnostics.unknown("unknown-key", key.position, "key", key.text, known)

    def _mapping(self, node: Node) -> Mapping:
        if isinstance(node, Mapping):
            return node
        self.diagnostics.error("yaml-shape", node.position, "a mapping of keys to values is expected here")
        return Mapping((), node.position)

    def _entries(self, entry: Mapping, key: str) -> tuple[tuple[Scalar, Node], ...]:
        node = entry.get(key)
        return () if node is None else self._mapping(node).entries

    def _items(self, node: Node | None) -> tuple[Node, ...]:
        if node is None:
            return ()
        if isinstance(node, Sequence):
            return node.items
        self.diagnostics.error("yaml-shape", node.position, "a list is expected here")
        return ()

    def _words(self, node: Node) -> tuple[Scalar, ...]:
        items = node.items if isinstance(node, Sequence) else (node,)
        for item in items:
            if not isinstance(item, Scalar):
                self.diagnostics.error("yaml-shape", item.position, "a name is expected here")
        return tuple(item for item in items if isinstance(item, Scalar))

    def _source(self, node: Node) -> Source:
        if not isinstance(node, Scalar):
            self.diagnostics.error("yaml-shape", node.position, "an expression is expected here")
            return Source("none", node.position)
        return source_of(node)


def source_of(scalar: Scalar) -> Source:
    """Return a scalar as an expression with its place."""
    return Source(scalar.text, scalar.position, -1 if scalar.block else int(scalar.quoted))
