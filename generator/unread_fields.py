"""Whether the rule that reads a layer reads all that the rules for ops write into it.

A net with a field or weights that its reader does not know cannot be read back, or would be read as another.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from caffeforge.generator.diagnostics import Diagnostics, Position
from caffeforge.generator.field_paths import field_at, is_covered
from caffeforge.generator.mapping import LayerEntry, MappingFile, Rule
from caffeforge.generator.message_classes import LayerType
from caffeforge.generator.names import place
from caffeforge.generator.proto import ProtoSchema
from caffeforge.generator.rule_checks import sources_of
from caffeforge.generator.source import SourceError
from caffeforge.generator.yaml_source import Mapping as YamlMapping
from caffeforge.generator.yaml_source import Node, Scalar

MANY = 10**9


@dataclass
class UnreadFields:
    """Compares what is written with what is read.

    Attributes:
        file: the backend's own mapping; two inherited rules that do not fit are left to their own backend.
        known: for each layer type with a rule, the fields that it reads or ignores.
        types: the layer types, with fields of the `schema`.
        gone: op and place of inherited alternatives that the schema cannot hold.
    """

    file: str
    known: Mapping[str, Sequence[str]]
    types: Mapping[str, LayerType]
    schema: ProtoSchema
    gone: frozenset[tuple[str, str]]
    diagnostics: Diagnostics

    def check(self, mapping: MappingFile) -> None:
        """Report each field, and each blob, that a layer's rule neither reads nor ignores."""
        rules = {rule.name.text: rule for rule in mapping.layers if not self._is_wrong(rule, mapping)}
        seen: set[tuple[Position, str]] = set()
        for subject, entry in self._entries(mapping):
            rule, known = rules.get(entry.type.text), self.known.get(entry.type.text)
            if rule is None or known is None:
                continue
            layer = self.types[entry.type.text]
            written = [w for w in _written(entry.fields) if field_at(w[0], layer.fields, self.schema)]
            unread = [w for w in written if not is_covered(w[0], known)]
            for path, at in (*unread, *_extra_blobs(entry, rule, known)):
                if (at, path) not in seen:
                    seen.add((at, path))
                    self._report(path, at, subject, rule)

    def _is_wrong(self, rule: Rule, mapping: MappingFile) -> bool:
        """Tell whether an error stands in a rule, so that what it reads cannot be told."""
        start = rule.name.position
        below = [r.name.position.line for r in mapping.layers if r.name.position.file == start.file]
        end = min((line for line in below if line > start.line), default=MANY)
        found = (d.position for d in self.diagnostics.found)
        return any(at.file == start.file and start.line <= at.line < end for at in found)

    def _entries(self, mapping: MappingFile) -> Iterator[tuple[str, LayerEntry]]:
        if mapping.net.input is not None:
            yield "net: input:", mapping.net.input
        for rule in mapping.ops:
            for alternative in rule.alternatives:
                if (rule.name.text, place(alternative.position)) not in self.gone:
                    yield from ((f"the rule for {rule.name.text}", entry) for entry in alternative.layers)

    def _report(self, path: str, at: Position, subject: str, rule: Rule) -> None:
        kind = rule.name.text
        blob = path.startswith("blobs[")
        way = f"read it there, or add {'blobs' if blob else path} to its ignore:"
        sentence = f"{path} of {kind} is written here, but the rule that reads {kind} "
        sentence += "does not read it" if blob else "neither reads nor ignores it"
        position, hint = at, f"{way} (line {rule.name.position.line})"
        if rule.name.position.file != self.file:
            ignored = [*(scalar.text for scalar in rule.ignore), "blobs" if blob else path]
            amended = f"layers: {{{kind}: {{amend: true, ignore: [{', '.join(ignored)}]}}}}"
            hint = f"give {kind} a rule under layers: that reads it; if it means nothing, {amended}"
        if at.file != self.file:
            if rule.name.position.file != self.file:
                return
            position, hint = rule.name.position, f"read it, or add {'blobs' if blob else path} to ignore:"
            sentence = f"{subject} at {place(at)} writes {path} into {kind}, which is not read here"
        self.diagnostics.error("unread-field", position, sentence, hint)


def _written(entries: Iterable[tuple[Scalar, Node]], prefix: str = "") -> Iterator[tuple[str, Position]]:
    for key, node in entries:
        if isinstance(node, YamlMapping):
            yield from _written(node.entries, f"{prefix}{key.text}.")
        else:
            yield f"{prefix}{key.text}", key.position


def _extra_blobs(entry: LayerEntry, rule: Rule, known: Iterable[str]) -> Iterator[tuple[str, Position]]:
    if entry.blobs and "blobs" not in known:
        for index in range(_blobs_read(rule), len(entry.blobs)):
            yield f"blobs[{index}]", entry.blobs[index].position


def _blobs_read(rule: Rule) -> int:
    """Return how many blobs a rule may read: those of the numbers that it names, or any."""
    count = 0
    for alternative in rule.alternatives:
        if alternative.hook is not None:
            return MANY
        sources = [*sources_of(alternative), *(source for _, source in alternative.let)]
        for source in (source for source in sources if "blobs" in source.text):
            try:
                tree = source.statements()
            except SourceError:
                return MANY
            for node in (node for statement in tree for node in ast.walk(statement)):
                above = ast.iter_child_nodes(node)
                for child in above:
                    if isinstance(child, ast.Name) and child.id == "blobs":
                        count = max(count, _reach(node))
    return count


def _reach(node: ast.AST) -> int:
    """Return how many blobs are read where the name stands in `node`."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "len":
        return 0
    index = node.slice if isinstance(node, ast.Subscript) else None
    if isinstance(index, ast.Constant) and isinstance(index.value, int):
        return index.value + 1
    return MANY
