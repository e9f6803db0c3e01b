"""What every reader of YAML needs: keys checked, lists, names, expressions and conditions with places."""

from __future__ import annotations

from collections.abc import Iterator

from caffeforge.generator.diagnostics import Diagnostics
from caffeforge.generator.mapping import Condition
from caffeforge.generator.source import Source
from caffeforge.generator.yaml_source import Mapping, Node, Scalar, Sequence

CONDITION_KEYS = ("expr", "else", "refused")


NAMES = "a name"  # or a list of them


class YamlReader:
    """Reads nodes; what does not have the due form goes to the diagnostics."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self.diagnostics = diagnostics
        self.lost = 0  # nodes that were not of the form that is due, and for which something else stands

    def _expected(self, node: Node, what: str, hint: str = "") -> None:
        self.lost += 1
        self.diagnostics.error("yaml-shape", node.position, f"{what} is expected here", hint)

    def _conditions(self, node: Node | None, keys: tuple[str, ...] = CONDITION_KEYS) -> Iterator[Condition]:
        for item in self._items(node):
            entry = item if isinstance(item, Mapping) else Mapping((), item.position)
            self._keys(entry, keys)
            expression, sentence, source = (entry.get(k) for k in ("expr", "else", "source"))
            if expression is None or sentence is None:
                text = "a condition is 'expr:' with 'else:', the sentence shown when it does not hold"
                self.lost += 1
                self.diagnostics.error("require", entry.position, text)
                continue
            origin = f" (source: {self._text(source, 'a source')})" if source is not None else ""
            said = self._text(sentence, "a sentence") + origin
            yield Condition(self._source(expression), said, entry.get("refused"))

    def _let(self, entry: Mapping) -> tuple[tuple[Scalar, Source], ...]:
        return tuple((key, self._source(node)) for key, node in self._entries(entry, "let"))

    def _count(self, node: Node | None) -> int:
        if node is None:
            return 0
        if isinstance(node, Scalar) and node.text.isascii() and node.text.isdigit() and len(node.text) < 5:
            return int(node.text)
        self._expected(node, "a number")
        return 0

    def _word(self, node: Node | None, what: str) -> Scalar | None:
        """Return a scalar that is there; `what` says what it is."""
        if node is None or (isinstance(node, Scalar) and not node.is_null and node.text.strip()):
            return node if isinstance(node, Scalar) else None
        self._expected(node, what, "write [] where there is none" if what == NAMES else "")
        return None

    def _text(self, node: Node | None, what: str) -> str:
        word = self._word(node, what)
        return word.text if word is not None else ""

    def _keys(self, entry: Mapping, known: tuple[str, ...]) -> None:
        for key, _ in entry.entries:
            if key.text not in known:
                self.diagnostics.unknown("unknown-key", key.position, "key", key.text, known)

    def _mapping(self, node: Node) -> Mapping:
        if isinstance(node, Mapping):
            return node
        self._expected(node, "a mapping of keys to values", "as {key: value}, or keys on lines of their own")
        return Mapping((), node.position)

    def _entries(self, entry: Mapping, key: str) -> tuple[tuple[Scalar, Node], ...]:
        node = entry.get(key)
        return () if node is None else self._mapping(node).entries

    def _items(self, node: Node | None) -> tuple[Node, ...]:
        if node is None:
            return ()
        if isinstance(node, Sequence):
            return node.items
        self._expected(node, "a list")
        return ()

    def _words(self, node: Node) -> tuple[Scalar, ...]:
        """Return a name or a list of different names."""
        items = node.items if isinstance(node, Sequence) else (node,)
        words = [word for word in (self._word(item, NAMES) for item in items) if word is not None]
        for index, word in enumerate(words):
            if word.text in [other.text for other in words[:index]]:
                self.diagnostics.error("twice", word.position, f"{word.text} is listed twice")
        return tuple(words)

    def _source(self, node: Node) -> Source:
        if isinstance(node, Scalar) and not node.is_null:
            return source_of(node)
        hint = "it has brackets or braces: put it in quotes" if not isinstance(node, Scalar) else ""
        self._expected(node, "an expression", hint)
        return Source("none", node.position)


def source_of(scalar: Scalar) -> Source:
    """Return a scalar as an expression with its place."""
    return Source(scalar.text, scalar.position, scalar.written)
