"""YAML with positions: every scalar stays text, every node knows its line and column.

Anchors, aliases, tags and duplicate keys are refused: a mapping is data that a reader takes literally.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from caffeforge.generator.diagnostics import Diagnostics, Position

if TYPE_CHECKING:
    import yaml


@dataclass(frozen=True)
class Scalar:
    """A scalar as written; `quoted` tells ``"3"`` from ``3``, a `block` begins on the line after its mark."""

    text: str
    position: Position
    quoted: bool = False
    block: bool = False


@dataclass(frozen=True)
class Sequence:
    """A list."""

    items: tuple[Node, ...]
    position: Position


@dataclass(frozen=True)
class Mapping:
    """Keys with values, in the order of the file."""

    entries: tuple[tuple[Scalar, Node], ...]
    position: Position

    def get(self, key: str) -> Node | None:
        """Return the value under `key`, None if there is none."""
        return next((value for name, value in self.entries if name.text == key), None)

    def keys(self) -> list[str]:
        return [name.text for name, _ in self.entries]


Node = Scalar | Sequence | Mapping


def load(text: str, file: str, diagnostics: Diagnostics) -> Mapping | None:
    """Parse a YAML document whose top is a mapping; errors go to `diagnostics` and give None."""
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        root = yaml.compose(text, loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        position = Position(file, mark.line + 1, mark.column + 1) if mark else Position(file)
        problem = getattr(error, "problem", None) or str(error)
        diagnostics.error("yaml-syntax", position, f"not valid YAML: {problem}")
        return None
    if root is None:
        return Mapping((), Position(file, 1, 1))
    node = _Converter(file, diagnostics).convert(root)
    if not isinstance(node, Mapping):
        diagnostics.error(
            "yaml-top", node.position, "the top of the file must be a mapping of keys to values"
        )
        return None
    return node


class _Converter:
    def __init__(self, file: str, diagnostics: Diagnostics) -> None:
        self.file = file
        self.diagnostics = diagnostics
        self.seen: set[int] = set()

    def convert(self, node: yaml.Node) -> Node:
        import yaml

        position = Position(self.file, node.start_mark.line + 1, node.start_mark.column + 1)
        if id(node) in self.seen:
            self.diagnostics.error(
                "yaml-alias", position, "anchors and aliases are not allowed; write it out"
            )
            return Scalar("", position)
        self.seen.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            return Scalar(node.value, position, node.style in ("'", '"'), node.style in ("|", ">"))
        if isinstance(node, yaml.SequenceNode):
            return Sequence(tuple(self.convert(item) for item in node.value), position)
        assert isinstance(node, yaml.MappingNode)
        return self._mapping(node, position)

    def _mapping(self, node: yaml.MappingNode, position: Position) -> Mapping:
        entries: list[tuple[Scalar, Node]] = []
        first: dict[str, Position] = {}
        for key_node, value_node in node.value:
            key = self.convert(key_node)
            if not isinstance(key, Scalar):
                self.diagnostics.error("yaml-key", key.position, "a key must be a plain word")
                continue
            if key.text in first:
                self.diagnostics.error(
                    "yaml-duplicate",
                    key.position,
                    f"key {key.text!r} stands here again",
                    f"first at line {first[key.text].line}",
                )
            first.setdefault(key.text, key.position)
            entries.append((key, self.convert(value_node)))
        return Mapping(tuple(entries), position)
