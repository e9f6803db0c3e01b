"""Prints ``generated/onnx/rules.py``: the functions of rules that write ops of older opsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from caffeforge.generator import types
from caffeforge.generator.diagnostics import Position
from caffeforge.generator.emitters import Emitters, entry
from caffeforge.generator.expression import Scope
from caffeforge.generator.hub_schema import Attribute, HubOp
from caffeforge.generator.mapping import Alternative
from caffeforge.generator.names import function_name
from caffeforge.generator.onnx_rules import ITSELF, OnnxRule, OnnxRules
from caffeforge.generator.op_versions import OpVersions
from caffeforge.generator.python_text import call, dict_of, literal, tuple_of
from caffeforge.generator.rule_checks import names_of, sources_of
from caffeforge.generator.types import ANY
from caffeforge.generator.yaml_reader import source_of
from caffeforge.generator.yaml_source import Scalar

OLDEST = 7  # opsets before it are read only


@dataclass
class OnnxEmitters(Emitters):
    """Prints the rules for opsets; `opsets` are those that the rule being printed holds for."""

    versions: OpVersions = field(default_factory=lambda: OpVersions(0, 0, {}))
    opsets: range = range(0)
    ignored: frozenset[str] = frozenset()

    def table(self, rules: OnnxRules) -> dict[str, Any]:
        """Return what the template of ``rules.py`` prints."""
        functions: list[dict[str, Any]] = []
        table: dict[str, list[str]] = {}
        taken: set[str] = set()
        for rule, opsets in _with_opsets(rules.rules):
            op = self.hub.ops.get(rule.rule.name.text)
            if op is None:
                at = rule.rule.name.position
                self.printer.diagnostics.unknown("unknown-op", at, "op", rule.rule.name.text, self.hub.ops)
                continue
            self.opsets = opsets
            self.ignored = frozenset(word.text for word in rule.rule.ignore)
            entries = []
            for index, alternative in enumerate(_named(rule)):
                count = len(rule.rule.alternatives)
                name = function_name("write", f"{op.class_name}_{rule.until}", index, count, taken)
                taken.add(name)
                functions.append(self._function(name, op, alternative))
                passes_on = bool(alternative.layers) and alternative.layers[0].bottoms is None
                entries.append(entry(name, alternative, rule.computed and passes_on))
            parts = [str(tuple_of("", entries, 0, 20))]
            if rule.rule.otherwise:
                parts.append(str(literal(rule.rule.otherwise)))
            table.setdefault(op.code, []).append(f"({rule.until}, {call('Rule', parts, 0, margin=20)})")
        known = [word for word in rules.lowerings if word.text in self.hub.ops]
        for word in set(rules.lowerings) - set(known):
            self.printer.diagnostics.unknown("unknown-op", word.position, "op", word.text, self.hub.ops)
        lines = [f"{code}: {tuple_of('', found, 0, 4)}" for code, found in table.items()]
        head = "RULES: Final[Mapping[type[Op], tuple[tuple[int, Rule], ...]]] = "
        return {
            "functions": functions,
            "rules": dict_of(head, lines, 0),
            "lowerings": tuple_of("LOWERINGS: Final = ", [self.hub.ops[w.text].code for w in known], 0),
        }

    def _unmentioned(self, op: HubOp, alternative: Alternative) -> list[str]:
        """Return the results that a rewrite does not give; an op of the opset gives all that it has."""
        return [] if alternative.layers else super()._unmentioned(op, alternative)

    def _layers(self, op: HubOp, alternative: Alternative, scope: Scope) -> list[str]:
        """Print the call that writes an op of the opset."""
        (made,) = alternative.layers
        name = made.type.text
        versions = (self.versions.in_force(name, opset) for opset in self.opsets)
        held = [version for version in versions if version is not None]
        if not held:
            sentence = f"no opset that the rule holds for has an op {name}"
            self.printer.diagnostics.error("unknown-op", made.type.position, sentence)
            return []
        self._check_places(op, alternative, held, made.type.position)
        fields = [self._field(key, node, held, scope) for key, node in made.fields]
        args = [str(literal(name)), str(dict_of("", [text for text in fields if text], 0, 16))]
        if made.bottoms is not None:
            operands = [self.printer.print(source, scope, types.optional(ANY)) for source in made.bottoms]
            args.append(str(tuple_of("", operands, 0, 16)))
        elif not fields:
            args.pop()
        return [call("e.op", args, 0, margin=8)]

    def _field(self, key: Scalar, node: Any, versions: list[HubOp], scope: Scope) -> str:
        """Return an entry of the call's fields; each version of the op must have such an attribute."""
        kinds: list[Attribute | None] = [version.attribute(key.text) for version in versions]
        found = kinds[0]
        if found is None or not all(kinds):
            known = [a.name for version in versions for a in version.attributes]
            self.printer.diagnostics.unknown("unknown-field", key.position, "attribute", key.text, known)
            return ""
        value = self.printer.print(source_of(node), scope, types.optional(found.type))
        return f"{literal(key.text)}: {value}"

    def _check_places(
        self, op: HubOp, alternative: Alternative, versions: list[HubOp], position: Position
    ) -> None:
        """Report what a version has no place for and no part of the rule speaks of."""
        spoken = names_of([*sources_of(alternative), *(source for _, source in alternative.let)])
        given = {key.text for key, _ in alternative.layers[0].fields} | spoken | self.ignored
        for name in dict.fromkeys(n for version in versions for n in unplaced(op, version)):
            if name not in given:
                opset = next(v.since for v in versions if name in unplaced(op, v))
                sentence = f"{name} of {op.name} has no place in the version of opset {opset}"
                hint = "give it a condition, or list it under ignore: if it means nothing there"
                self.printer.diagnostics.error("no-place", position, sentence, hint)


def unplaced(op: HubOp, version: HubOp) -> list[str]:
    """Return the names of fields and inputs of a hub op that a version has no place for."""
    inputs = [formal.name for formal in version.inputs]
    places = {attribute.name for attribute in version.attributes} | set(inputs)
    own = [formal.name for formal in op.inputs]
    missing = [attribute.name for attribute in op.attributes if attribute.name not in places]
    for index, formal in enumerate(op.inputs):
        other = inputs[index] if index < len(inputs) else ""
        if not formal.static and formal.name not in places and (not other or other in own):
            missing.append(formal.name)
    return missing


def by_name(
    hub: dict[str, HubOp], versions: OpVersions, rules: OnnxRules, opset: int
) -> Iterator[tuple[str, list[str]]]:
    """Yield each op that an opset has and no rule speaks of, with what it has no place for."""
    for name, op in hub.items():
        version = versions.in_force(name, opset)
        if version is not None and rules.find(name, opset) is None:
            yield name, unplaced(op, version)


def _named(rule: OnnxRule) -> Iterator[Alternative]:
    """Yield a rule's alternatives with the names of the ops that they write."""
    for alternative in rule.rule.alternatives:
        layers = alternative.layers
        if layers and layers[0].type.text == ITSELF:
            layers = (replace(layers[0], type=rule.rule.name),)
        yield replace(alternative, layers=layers)


def _with_opsets(rules: Iterable[OnnxRule]) -> Iterator[tuple[OnnxRule, range]]:
    last: dict[str, int] = {}
    for rule in rules:
        name = rule.rule.name.text
        yield rule, range(max(OLDEST, last.get(name, 0) + 1), rule.until + 1)
        last[name] = rule.until
