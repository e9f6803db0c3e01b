"""Reads the entry of one op or layer type: its verb, the keys that go with it, its alternatives."""

from __future__ import annotations

from collections.abc import Mapping as Map
from dataclasses import dataclass, field, replace

from caffeforge.generator.mapping import Alternative, LayerEntry, Rule
from caffeforge.generator.yaml_reader import YamlReader
from caffeforge.generator.yaml_source import Mapping, Node, Scalar, Sequence

COMMON_KEYS = ("let", "require", "when", "note", "approximate", "any_of", "otherwise", "example", "refused")
ALTERNATIVE_KEYS = ("let", "require", "when", "note", "approximate")
ENTRY_KEYS = ("layer", "fields", "blobs", "bottoms", "loose", "kept", "when", "top")
WRITING_KEYS = ("note", "approximate")
COMPANIONS: Map[str, str] = {"fields": "layer", "blobs": "layer", "bottoms": "layer", "reads": "hook"}


@dataclass(frozen=True)
class RuleForm:
    """What an entry may hold: verbs, of which one alternative has just one, and further keys."""

    verbs: tuple[str, ...]
    keys: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()  # verbs and keys that do not stand in alternatives
    companions: Map[str, str] = field(default_factory=lambda: COMPANIONS)  # key -> the verb it goes with
    writes: bool = True  # what is written may be noted in reports, or be an approximation

    @property
    def rule(self) -> tuple[str, ...]:
        """The keys of a whole rule."""
        common = COMMON_KEYS if self.writes else tuple(k for k in COMMON_KEYS if k not in WRITING_KEYS)
        return (*common, *self.verbs, *self.keys)

    @property
    def alternative(self) -> tuple[str, ...]:
        """The keys of one alternative among several."""
        out = self.alone if self.writes else (*self.alone, *WRITING_KEYS)
        return tuple(k for k in (*ALTERNATIVE_KEYS, *self.verbs, *self.keys) if k not in out)


OP = RuleForm(("layer", "emit", "rewrite", "hook"), ("fields", "blobs", "bottoms"))
LAYER = RuleForm(
    ("rewrite", "hook", "inputs"),
    ("reads", "ignore", "witness", "before"),
    alone=("inputs", "ignore", "witness", "before"),
    writes=False,
)
LOWERING = RuleForm(("rewrite",))


class RuleReader(YamlReader):
    """Reads rules; what is given and would have no effect is an error."""

    def _rule(self, name: Scalar, node: Node, form: RuleForm) -> Rule | None:
        """Return a rule, None if a part of it cannot be read."""
        if not isinstance(node, Mapping):
            self._mapping(node)
            return None
        lost = self.lost
        self._keys(node, form.rule)
        self._check_verb(node, (*form.verbs, "any_of"), form.companions)
        listed, otherwise, ignore = (node.get(key) for key in ("any_of", "otherwise", "ignore"))
        alternatives = [self._alternative(node)] if listed is None else self._alternatives(node, listed, form)
        rule = Rule(
            name,
            tuple(alternatives),
            self._text(otherwise, "a sentence"),
            self._words(ignore) if ignore is not None else (),
            node.get("example"),
            self._text(node.get("witness"), "the name of a program"),
            tuple((key, self._source(value)) for key, value in self._entries(node, "before")),
            node.get("refused"),
        )
        if self.lost > lost or not alternatives:
            return None
        if otherwise is not None:
            self._check_otherwise(rule, otherwise, form)
        return rule

    def _alternatives(self, node: Mapping, listed: Node, form: RuleForm) -> list[Alternative]:
        if not isinstance(listed, Sequence) or not listed.items:
            self.diagnostics.error("any-of", listed.position, "any_of: is a list of alternatives")
            return []
        common = self._alternative(node)
        alternatives = []
        for item in listed.items:
            entry = self._mapping(item)
            if not isinstance(item, Mapping):
                continue
            self._keys(entry, form.alternative)
            self._check_verb(entry, form.verbs, form.companions)
            one = self._alternative(entry)
            self._check_lets(common, one)
            let, require = common.let + one.let, common.require + one.require
            note, approximate = one.note or common.note, one.approximate or common.approximate
            one = replace(one, let=let, require=require, note=note, approximate=approximate)
            alternatives.append(replace(one, common=len(common.require)))
        return alternatives

    def _check_lets(self, common: Alternative, own: Alternative) -> None:
        first = {key.text: key.position.line for key, _ in common.let}
        for key, _ in own.let:
            if key.text in first:
                sentence = f"{key.text} has a value for all alternatives already"
                self.diagnostics.error("let-twice", key.position, sentence, f"at line {first[key.text]}")

    def _check_verb(self, entry: Mapping, verbs: tuple[str, ...], companions: Map[str, str]) -> None:
        """Report unless an entry has exactly one verb, and only keys that go with it."""
        given = [key for key, _ in entry.entries if key.text in verbs]
        listed = ", ".join(f"{verb}:" for verb in verbs)
        if not given:
            self.lost += 1
            self.diagnostics.error("rule-verb", entry.position, f"one of {listed} is due here")
            return
        for extra in given[1:]:
            sentence = f"{extra.text}: and {given[0].text}: stand in one entry, which can follow one only"
            hint = "" if "any_of" in (extra.text, given[0].text) else "any_of: takes a list of alternatives"
            self.lost += 1
            self.diagnostics.error("rule-verb", extra.position, sentence, hint)
        for key, _ in entry.entries:
            verb = companions.get(key.text, given[0].text)
            if verb != given[0].text and len(given) == 1:
                sentence = f"{key.text}: has no effect beside {given[0].text}:, it goes with {verb}:"
                self.diagnostics.error("no-effect", key.position, sentence)
            elif key.text == "when" and given[0].text == "any_of":
                sentence = "when: has no effect beside any_of:"
                hint = "give it to each alternative, or make it a condition of require:"
                self.diagnostics.error("no-effect", key.position, sentence, hint)

    def _check_otherwise(self, rule: Rule, node: Node, form: RuleForm) -> None:
        """Report a sentence that would never be shown."""
        last = rule.alternatives[-1]
        if form is LAYER:
            shown = last.when is not None
        else:
            shown = len(rule.alternatives) > 1 or bool(last.when or last.require)
        if not shown:
            sentence = "otherwise: is never shown: there is an alternative without a condition"
            self.diagnostics.error("no-effect", node.position, sentence)

    def _alternative(self, entry: Mapping) -> Alternative:
        rewrite, when, inputs, hook, reads, note, approximate = (
            entry.get(k) for k in ("rewrite", "when", "inputs", "hook", "reads", "note", "approximate")
        )
        return Alternative(
            entry.position,
            self._let(entry),
            tuple(self._conditions(entry.get("require"))),
            self._source(when) if when is not None else None,
            self._layers(entry),
            self._source(rewrite) if rewrite is not None else None,
            self._source(inputs) if inputs is not None else None,
            self._word(hook, "the name of a hook"),
            self._words(reads) if reads is not None else (),
            self._text(approximate if approximate is not None else note, "a sentence"),
            approximate is not None,
        )

    def _layers(self, entry: Mapping) -> tuple[LayerEntry, ...]:
        emit = entry.get("emit")
        if entry.get("layer") is not None:
            return (self._layer(entry, inner=False),)
        if emit is None:
            return ()
        if not isinstance(emit, Sequence) or not emit.items:
            self.lost += 1
            self.diagnostics.error("emit", emit.position, "emit: is a list of layers")
            return ()
        layers = []
        for item in emit.items:
            if isinstance(item, Mapping):
                self._keys(item, ENTRY_KEYS)
                layers.append(self._layer(item, inner=True))
            else:
                self._mapping(item)
        for layer in layers:
            if layer.when is not None and layer.top is not None:
                sentence = f"top {layer.top.text} would be missing where the layer is left out"
                self.diagnostics.error(
                    "top-name", layer.top.position, sentence, "make two alternatives of it"
                )
        if layers and layers[0].when is not None:
            sentence = "the first layer cannot be left out: the ones behind it read its top"
            self.diagnostics.error("emit", layers[0].when.position, sentence, "make two alternatives of it")
        return tuple(layers)

    def _layer(self, entry: Mapping, *, inner: bool) -> LayerEntry:
        """Read a layer; the `inner` keys are those of a list of layers."""
        kind, bottoms, when, top = (entry.get(k) for k in ("layer", "bottoms", "when", "top"))
        if not isinstance(kind, Scalar) or kind.is_null:
            at = kind.position if kind is not None else entry.position
            self.lost += 1
            self.diagnostics.error("layer", at, "'layer:' must name a layer type")
            kind = Scalar("", entry.position)
        layer = LayerEntry(
            kind,
            tuple(self._entries(entry, "fields")),
            tuple(self._source(item) for item in self._items(entry.get("blobs"))),
            tuple(self._source(item) for item in self._items(bottoms)) if bottoms is not None else None,
            self._count(entry.get("loose")),
            self._count(entry.get("kept")),
            self._source(when) if inner and when is not None else None,
            self._word(top, "a name for the top") if inner else None,
        )
        kept = entry.get("kept")
        if kept is not None and layer.kept > layer.loose:
            sentence = f"kept: {layer.kept} is not among the tops 0 to {layer.loose}"
            self.diagnostics.error("kept", kept.position, sentence, "loose: is the number of the other tops")
        return layer
