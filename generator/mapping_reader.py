"""Reads a mapping file, and the hub's rewrites: keys are checked here, expressions later."""

from __future__ import annotations

from caffeforge.generator.diagnostics import Diagnostics
from caffeforge.generator.mapping import (
    Alternative,
    ConstraintRule,
    CustomOp,
    LayerEntry,
    MappingFile,
    NetRule,
    PatternRule,
    RewritesFile,
    Rule,
)
from caffeforge.generator.source import Source
from caffeforge.generator.yaml_reader import YamlReader
from caffeforge.generator.yaml_source import Mapping, Node, Scalar, Sequence

TOP_KEYS = ("backend", "extends", "types", "ops", "layers", "patterns", "constraints", "custom", "net")
OP_KEYS = (
    "let",
    "require",
    "when",
    "layer",
    "emit",
    "rewrite",
    "hook",
    "any_of",
    "fields",
    "blobs",
    "bottoms",
    "otherwise",
    "example",
)
OP_ALTERNATIVE_KEYS = tuple(key for key in OP_KEYS if key not in ("any_of", "otherwise", "example"))
ENTRY_KEYS = ("layer", "fields", "blobs", "bottoms", "top", "loose", "kept", "when")
LAYER_KEYS = (
    "ignore",
    "let",
    "require",
    "when",
    "rewrite",
    "hook",
    "reads",
    "any_of",
    "otherwise",
    "inputs",
    "example",
)
ALTERNATIVE_KEYS = ("let", "require", "when", "rewrite")
REWRITES_KEYS = ("fusions", "lowerings")
PATTERN_KEYS = ("match", "rewrite", "let", "require", "when", "optional", "constant", "example")
LOWERING_KEYS = ("let", "require", "when", "rewrite", "any_of", "otherwise", "example")
CUSTOM_KEYS = ("inputs", "outputs", "attributes", "shape", "torch", "reference")
NET_KEYS = ("input", "loose_tops")


def read_rewrites(root: Mapping, diagnostics: Diagnostics) -> RewritesFile:
    """Return what ``schemas/hub/rewrites.yaml`` says; its mistakes of form go to `diagnostics`."""
    return _Reader(diagnostics).rewrites(root)


def read(root: Mapping, diagnostics: Diagnostics) -> MappingFile:
    """Return what a mapping says; its mistakes of form go to `diagnostics`."""
    return _Reader(diagnostics).file(root)


class _Reader(YamlReader):
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
        patterns = [self._pattern(key, node) for key, node in self._entries(root, "patterns")]
        result.patterns = [p for p in patterns if p is not None]
        for key, node in self._entries(root, "constraints"):
            conditions = tuple(self._conditions(node, ("expr", "else", "source")))
            result.constraints.append(ConstraintRule(key, conditions))
        result.custom = [self._custom(key, node) for key, node in self._entries(root, "custom")]
        result.net = self._net(root.get("net"))
        return result

    def rewrites(self, root: Mapping) -> RewritesFile:
        self._keys(root, REWRITES_KEYS)
        fusions = [self._pattern(key, node) for key, node in self._entries(root, "fusions")]
        lowerings = [self._rule(key, node, LOWERING_KEYS) for key, node in self._entries(root, "lowerings")]
        return RewritesFile([f for f in fusions if f is not None], lowerings)

    def _pattern(self, name: Scalar, node: Node) -> PatternRule | None:
        entry = self._mapping(node)
        self._keys(entry, PATTERN_KEYS)
        if not name.text.replace("-", "_").isidentifier():
            self.diagnostics.error("pattern-name", name.position, "a pattern's name is words joined by '-'")
        match, rewrite, when = (entry.get(k) for k in ("match", "rewrite", "when"))
        if match is None or rewrite is None:
            self.diagnostics.error("pattern-keys", entry.position, "a pattern has match: and rewrite:")
            return None
        words = {k: entry.get(k) for k in ("optional", "constant")}
        listed = {
            k: frozenset(w.text for w in self._words(n)) if n is not None else frozenset()
            for k, n in words.items()
        }
        return PatternRule(
            name,
            self._source(match),
            self._source(rewrite),
            self._let(entry),
            tuple(self._conditions(entry.get("require"))),
            self._source(when) if when is not None else None,
            listed["optional"],
            listed["constant"],
            entry.get("example"),
        )

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
                        hook=one.hook,
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
            entry.get("example"),
        )

    def _require_body(self, alternative: Alternative) -> None:
        bodies = sum(
            found is not None
            for found in (
                alternative.layers or None,
                alternative.rewrite,
                alternative.inputs,
                alternative.hook,
            )
        )
        if bodies != 1:
            verbs = "layer, emit, rewrite, hook or any_of"
            self.diagnostics.error(
                "rule-verb", alternative.position, f"exactly one of {verbs} must stand here"
            )

    def _alternative(self, entry: Mapping) -> Alternative:
        emit, rewrite, when, inputs, hook, reads = (
            entry.get(k) for k in ("emit", "rewrite", "when", "inputs", "hook", "reads")
        )
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
            self._let(entry),
            tuple(self._conditions(entry.get("require"))),
            self._source(when) if when is not None else None,
            layers,
            self._source(rewrite) if rewrite is not None else None,
            self._source(inputs) if inputs is not None else None,
            hook if isinstance(hook, Scalar) else None,
            self._words(reads) if reads is not None else (),
        )

    def _layer(self, entry: Mapping, *, with_when: bool) -> LayerEntry:
        kind, bottoms, when, top = (entry.get(k) for k in ("layer", "bottoms", "when", "top"))
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
            top if with_when and isinstance(top, Scalar) else None,
        )

    def _custom(self, name: Scalar, node: Node) -> CustomOp:
        entry = self._mapping(node)
        self._keys(entry, CUSTOM_KEYS)
        domain, _, kind = name.text.rpartition(".")
        if not domain.isidentifier() or not kind.isidentifier():
            self.diagnostics.error("custom-name", name.position, "a custom op is named domain.Op")
        attributes = []
        for key, value in self._entries(entry, "attributes"):
            if isinstance(value, Scalar):
                attributes.append((key, value))
            else:
                self.diagnostics.error("yaml-shape", value.position, "a type is expected here, as 'int = 2'")
        torch, reference, outputs = (entry.get(k) for k in ("torch", "reference", "outputs"))
        return CustomOp(
            name,
            self._words(entry.get("inputs") or Sequence((), entry.position)),
            self._words(outputs) if outputs is not None else (Scalar("Y", entry.position),),
            tuple(attributes),
            self._shape(entry.get("shape")),
            torch if isinstance(torch, Scalar) else None,
            self._source(reference) if reference is not None else None,
        )

    def _shape(self, node: Node | None) -> tuple[Source, ...] | Source | None:
        if node is None:
            return None
        return tuple(map(self._source, node.items)) if isinstance(node, Sequence) else self._source(node)

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
