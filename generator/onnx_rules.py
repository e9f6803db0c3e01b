"""Reads ``schemas/onnx/rules.yaml``: how the hub's ops are said in opsets that cannot say them by name.

A rule holds for opsets up to its ``until:``; the one with the least that is not below the opset is taken.
What no rule speaks of is written by name: fields become attributes or inputs of the same name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from caffeforge.generator.diagnostics import Diagnostics
from caffeforge.generator.mapping import LayerEntry, Rule
from caffeforge.generator.rule_reader import RuleForm, RuleReader
from caffeforge.generator.yaml_source import Mapping, Node, Scalar, Sequence

FORM = RuleForm(
    ("op", "rewrite"), ("fields", "operands", "ignore"), companions={"fields": "op", "operands": "op"}
)
ITSELF = "same"  # in ``op:``: the op that the rule is for
NEWEST = 28  # until this opset a rule holds that names none


@dataclass(frozen=True)
class OnnxRule:
    """A rule for one op.

    Attributes:
        until: the last opset that it holds for.
        computed: it holds also where an input that a compiler must know is computed when the model runs.
    """

    rule: Rule
    until: int
    computed: bool


@dataclass(frozen=True)
class OnnxRules:
    """All rules, and the ops whose lowerings that all backends share are exact for ONNX too."""

    rules: tuple[OnnxRule, ...]
    lowerings: tuple[Scalar, ...]

    def find(self, op: str, opset: int) -> OnnxRule | None:
        """Return the rule for an op in an opset, None if there is none."""
        held = [rule for rule in self.rules if rule.rule.name.text == op and rule.until >= opset]
        return min(held, key=lambda rule: rule.until, default=None)


def read_rules(root: Mapping, diagnostics: Diagnostics) -> OnnxRules:
    """Return what the file says; its mistakes of form go to `diagnostics`."""
    return OnnxRuleReader(diagnostics).rules(root)


class OnnxRuleReader(RuleReader):
    """Reads rules that write ops of an opset."""

    def rules(self, root: Mapping) -> OnnxRules:
        self._keys(root, ("rules", "lowerings"))
        lowerings = root.get("lowerings")
        return OnnxRules(tuple(self._versions(root)), self._words(lowerings) if lowerings is not None else ())

    def _versions(self, root: Mapping) -> Iterator[OnnxRule]:
        for names, node in self._entries(root, "rules"):
            items = node.items if isinstance(node, Sequence) else (node,)
            seen = 0
            for item in items:
                for rule in self.rules_of(names, item):
                    if rule.until <= seen:
                        sentence = "the rules of an op stand in the order of their opsets"
                        self.diagnostics.error("until", item.position, sentence)
                    yield rule
                seen = self._until(item)

    def rules_of(self, names: Scalar, item: Node) -> Iterator[OnnxRule]:
        """Yield a rule for each of several names."""
        if not isinstance(item, Mapping):
            self._mapping(item)
            return
        own = tuple((key, node) for key, node in item.entries if key.text not in ("until", "computed"))
        rule = self._rule(names, Mapping(own, item.position), FORM)
        computed = item.get("computed")
        if computed is not None and not (isinstance(computed, Scalar) and computed.text == "true"):
            self._expected(computed, "true")
        for name in names.text.split() if rule is not None else ():
            assert rule is not None
            own_rule = replace(rule, name=Scalar(name, names.position))
            yield OnnxRule(own_rule, self._until(item), computed is not None)

    def _until(self, item: Node) -> int:
        found = item.get("until") if isinstance(item, Mapping) else None
        return NEWEST if found is None else self._count(found)

    def _layers(self, entry: Mapping) -> tuple[LayerEntry, ...]:
        kind, operands = entry.get("op"), entry.get("operands")
        if kind is None:
            return ()
        word = self._word(kind, "the name of an op, or 'same',")
        listed = tuple(self._source(item) for item in self._items(operands)) if operands is not None else None
        return (
            LayerEntry(word or Scalar("", kind.position), tuple(self._entries(entry, "fields")), (), listed),
        )
