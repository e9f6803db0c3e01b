"""YAML with positions: every scalar stays text, every node knows its line and column.

Anchors, aliases, tags, duplicate keys and further documents are refused: a mapping is data that a reader
takes literally.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from caffeforge.generator.diagnostics import Diagnostics, Position
from caffeforge.generator.once import once
from caffeforge.generator.written import BREAK, Written
from caffeforge.generator.yaml_flow import SHOWN, Flow

if TYPE_CHECKING:
    import yaml

DEEPEST = 40  # levels of nesting
UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
CODE = "an expression with any of [ ] { } : # , needs quotes around it, or | and lines of its own"


@dataclass(frozen=True)
class Scalar:
    """A scalar; `written` tells how it stands in the file: quoted, as a block, over several lines."""

    text: str
    position: Position
    written: Written = field(default=Written(), repr=False)

    @property
    def is_null(self) -> bool:
        """Whether it says that there is no value: ``null``, ``~`` or nothing at all."""
        return not self.written.style and self.text in ("null", "~", "")


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


@once
def load(text: str, file: str, diagnostics: Diagnostics) -> Mapping | None:
    """Parse a YAML document whose top is a mapping; errors go to `diagnostics` and give None."""
    import yaml

    foreign = UNPRINTABLE.search(text)
    if foreign is not None:
        _report_character(text, foreign.start(), file, diagnostics)
        return None
    try:
        node = _composed(text, file, diagnostics)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        position = Position(file, mark.line + 1, mark.column + 1) if mark else Position(file)
        diagnostics.error("yaml-syntax", position, f"not valid YAML: {error.problem}", _hint(error, text))
        return None
    except _Refused:
        return None
    if not isinstance(node, Mapping):
        sentence = "the top of the file must be a mapping of keys to values"
        diagnostics.error("yaml-top", node.position, sentence)
        return None
    return node


def _composed(text: str, file: str, diagnostics: Diagnostics) -> Node:
    """Return a document; where texts in braces need quotes, all of them are reported, and it is read on.

    Raises:
        MarkedYAMLError: it is no YAML for another reason.
    """
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        list(yaml.parse(text, loader))
    except yaml.MarkedYAMLError as error:
        flow = Flow(text)
        hidden = flow.hidden()
        if not flow.spans:
            raise
        try:
            list(yaml.parse(hidden, loader))
        except yaml.MarkedYAMLError:
            raise error from None
        composer = _Composer(text, file, diagnostics, yaml.parse(hidden, loader))
        composer.unquoted.update(begin for begin, _ in flow.spans)
        return composer.document()
    return _Composer(text, file, diagnostics, yaml.parse(text, loader)).document()


def _report_character(text: str, index: int, file: str, diagnostics: Diagnostics) -> None:
    breaks = list(BREAK.finditer(text, 0, index))
    column = index - (breaks[-1].end() if breaks else 0) + 1
    code = ord(text[index])
    # read_text() keeps a byte that is no UTF-8 as a lone surrogate
    what = f"the byte 0x{code - 0xDC00:02X} is no UTF-8" if 0xDC80 <= code <= 0xDCFF else f"U+{code:04X}"
    sentence = what if what.endswith("UTF-8") else f"the character {what} is not allowed"
    diagnostics.error("yaml-character", Position(file, len(breaks) + 1, column), sentence)


def _hint(error: yaml.MarkedYAMLError, text: str) -> str:
    """Return what the mistake usually is."""
    mark = error.problem_mark
    if mark is not None and text[mark.index : mark.index + 1] == "\t":
        return "indent with blanks, not with tabs"
    if "block" in (error.context or ""):
        return "is this line indented as those that belong with it?"
    return CODE


class _Refused(Exception):
    """What follows cannot be read any more; it has been reported."""


@dataclass
class _Composer:
    """Makes nodes of a parser's events."""

    text: str
    file: str
    diagnostics: Diagnostics
    events: Iterator[yaml.Event]
    spans: dict[Position, tuple[int, int]] = field(default_factory=dict)  # of scalars: begin, end
    commas: set[Position] = field(default_factory=set)  # texts that a comma or bracket ends too early
    unquoted: set[int] = field(default_factory=set)  # where texts begin whose marks are hidden from YAML
    broken: bool = False  # a node is missing, so that what is said of it would be wrong

    def document(self) -> Node:
        import yaml

        root: Node | None = None
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent) and root is not None:
                at = self._position(event)
                self.diagnostics.error("yaml-document", at, "a second document begins here, one is read")
                raise _Refused
            if isinstance(event, yaml.NodeEvent):
                root = self._node(event, 0, False)
        if self.broken:
            raise _Refused
        return Mapping((), Position(self.file, 1, 1)) if root is None else root

    def _node(self, event: Any, depth: int, flow: bool) -> Node:
        import yaml

        position = self._position(event)
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            sentence = "anchors and aliases are not allowed; write it out"
            self.diagnostics.error("yaml-alias", position, sentence)
            self.broken |= isinstance(event, yaml.AliasEvent)
        elif event.tag is not None:
            self.diagnostics.error("yaml-tag", position, f"tags as {event.tag!r} are not allowed")
        if depth > DEEPEST:
            self.diagnostics.error("yaml-depth", position, f"more than {DEEPEST} levels of nesting")
            raise _Refused
        if isinstance(event, yaml.SequenceStartEvent):
            flow |= bool(event.flow_style)
            items = [self._node(item, depth + 1, flow) for item in self._inside()]
            return Sequence(tuple(self._whole_items(items)), position)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(position, depth, flow or bool(event.flow_style))
        if isinstance(event, yaml.ScalarEvent) and event.start_mark and event.end_mark:
            start, end = event.start_mark.index, event.end_mark.index
            raw = self.text[start:end]
            self.spans[position] = (start, end)
            text = event.value
            if start in self.unquoted:
                text = text.translate(SHOWN)
                self.commas.add(position)
            return Scalar(text, position, Written(raw, event.style or "", flow))
        return Scalar("", position)

    def _inside(self) -> Iterator[Any]:
        import yaml

        for event in self.events:
            if isinstance(event, yaml.CollectionEndEvent):
                return
            yield event

    def _mapping(self, position: Position, depth: int, flow: bool) -> Mapping:
        entries: list[tuple[Scalar, Node]] = []
        first: dict[str, Position] = {}
        inside = self._inside()
        for event in inside:
            key = self._node(event, depth + 1, flow)
            value = self._node(next(inside), depth + 1, flow)
            if not isinstance(key, Scalar):
                self.diagnostics.error("yaml-key", key.position, "a key must be a plain word")
                continue
            if key.text in first:
                hint = f"first at line {first[key.text].line}"
                self.diagnostics.error(
                    "yaml-duplicate", key.position, f"key {key.text!r} stands here again", hint
                )
                continue
            if self._continues(entries[-1][1] if entries else None, key, value):
                entries[-1] = (entries[-1][0], self._joined(entries[-1][1], key))
                continue
            first[key.text] = key.position
            entries.append((key, value))
        for _, value in entries:
            self._report_comma(value)
        return Mapping(tuple(entries), position)

    def _whole_items(self, items: list[Node]) -> list[Node]:
        """Return a list's items; those that a comma made of one text with brackets are that text."""
        whole: list[Node] = []
        for item in items:
            if whole and _is_open(whole[-1]) and _is_plain(item):
                whole[-1] = self._joined(whole[-1], item)
            else:
                whole.append(item)
        for item in whole:
            self._report_comma(item)
        return whole

    def _continues(self, before: Node | None, key: Scalar, value: Node) -> bool:
        """Tell whether a key without a colon is the rest of the text before it, which a comma had ended."""
        if not isinstance(before, Scalar) or not before.written.raw or not isinstance(value, Scalar):
            return False
        if not _is_plain(before) or not _is_plain(key):
            return False
        between = self.text[self.spans[key.position][1] : self.spans[value.position][1]]
        return value.written.raw == "" and ":" not in between

    def _joined(self, before: Node, rest: Node) -> Scalar:
        raw = self.text[self.spans[before.position][0] : self.spans[rest.position][1]]
        self.spans[before.position] = (self.spans[before.position][0], self.spans[rest.position][1])
        self.commas.add(before.position)
        return Scalar(" ".join(raw.split()), before.position, Written(raw, "", True))

    def _report_comma(self, node: Node) -> None:
        if isinstance(node, Scalar) and node.position in self.commas:
            sentence = "within { } or [ ] YAML takes commas and brackets for its own"
            single = '"' in node.text and "'" not in node.text
            quoted = f"'{node.text}'" if single else json.dumps(node.text, ensure_ascii=False)
            self.diagnostics.error("yaml-quotes", node.position, sentence, f"write {quoted}")

    def _position(self, event: Any) -> Position:
        return Position(self.file, event.start_mark.line + 1, event.start_mark.column + 1)


def _is_plain(node: Node) -> bool:
    """Tell whether a node is a text within brackets or braces of YAML, and not in quotes."""
    return isinstance(node, Scalar) and node.written.flow and not node.written.style


def _is_open(node: Node) -> bool:
    return isinstance(node, Scalar) and _is_plain(node) and node.text.count("(") > node.text.count(")")
