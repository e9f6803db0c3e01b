"""``schemas/known_layers.yaml``: what layers beyond the base mean, and the form of their parameters.

Vendors give the same layers the same parameter messages, mostly; `known_fit` tells which of these a schema
has, `known_meanings` lays them under the vendor's own mapping.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from caffeforge.generator.diagnostics import Diagnostics
from caffeforge.generator.proto import SCALARS
from caffeforge.generator.yaml_reader import YamlReader
from caffeforge.generator.yaml_source import Mapping, Node, Scalar

LIKE = ("message", "layers", "ops", "fallback", "example", "in_place")  # what an entry may have from another
KEYS = ("field", "adds", "types", "like", "like_type", "note", "source", *LIKE)


@dataclass(frozen=True)
class Form:
    """The form that one field of a message must have.

    Attributes:
        kinds: a scalar's proto name, ``enum`` or ``message``; or several, of which any will do.
        words: values that the enum must have, or the fields that the message has, if any are told; those with
            a ``?`` may be missing.
        default: what a rule that leaves the field out means by that: what protobuf makes of an absent field,
            if None.
        optional: whether the field may be missing.
    """

    name: str
    kinds: tuple[str, ...]
    words: tuple[str, ...] = ()
    repeated: bool = False
    default: Any = None
    optional: bool = False

    def __str__(self) -> str:
        words = " ".join((*(("repeated",) if self.repeated else ()), " or ".join(self.kinds)))
        return f"{words} with {', '.join(self.words)}" if self.words else words


@dataclass(frozen=True)
class KnownLayer:
    """One meaning of one or several layer types.

    Attributes:
        id: its name, as ``reorg.darknet``.
        fields: names under which LayerParameter may hold the parameters; none for layers without any.
        message: the form of the message's fields.
        adds: whether the base has these layer types, or that of `like_type`, and `message` is what a vendor
            added to their message.
        is_open: whether the message may have any fields.
        types: the layer types that have this meaning.
        written: the layer type that `ops` name; one of `types` stands for it.
        like_type: a layer type of the base, whose rule is read with `layers` laid over it; empty for none.
        layers: the rule for reading them, None if they can only be written.
        ops: for each op the alternative, or the list of alternatives, that writes it.
        fallback: likewise, where the base cannot write it.
        example: applications of these ops.
        in_place: whether a net may have such a layer in place, one blob as bottom and top.
    """

    id: Scalar
    fields: tuple[str, ...]
    message: tuple[Form, ...]
    adds: bool
    is_open: bool
    types: tuple[Scalar, ...]
    written: str
    like_type: str
    layers: Node | None
    ops: tuple[tuple[Scalar, Node], ...]
    fallback: tuple[tuple[Scalar, Node], ...]
    example: tuple[Scalar, ...]
    in_place: bool


def read(root: Mapping, diagnostics: Diagnostics) -> list[KnownLayer]:
    """Return what the file says; mistakes of form go to `diagnostics`, those in rules show up where used."""
    reader = _Reader(diagnostics)
    return [reader.entry(key, node, root) for key, node in root.entries]


class _Reader(YamlReader):
    def entry(self, id: Scalar, node: Node, root: Mapping) -> KnownLayer:
        entry = self._mapping(node)
        self._keys(entry, KEYS)
        other = self._other(entry, root)
        lent = [e for e in other.entries if e[0].text in LIKE and entry.get(e[0].text) is None]
        entry = Mapping((*entry.entries, *lent), entry.position)
        types, fields, example = (entry.get(key) for key in ("types", "field", "example"))
        self._text(entry.get("note"), "a sentence")
        self._text(entry.get("source"), "a source")
        if types is None:
            self._expected(entry, "types:, the layer types of this meaning,")
        words = self._words(types) if types is not None else ()
        forms = [*self._entries(entry, "message"), *self._entries(entry, "adds")]
        return KnownLayer(
            id,
            tuple(word.text for word in self._words(fields)) if fields is not None else (),
            tuple(self._form(key, form) for key, form in forms),
            entry.get("adds") is not None,
            entry.get("message") is None and entry.get("adds") is None,
            words,
            (self._words(other.get("types") or types or id))[0].text,
            self._text(entry.get("like_type"), "a layer type of the base"),
            entry.get("layers"),
            self._entries(entry, "ops"),
            self._entries(entry, "fallback"),
            self._words(example) if example is not None else (),
            self._yes(entry.get("in_place")),
        )

    def _yes(self, node: Node | None) -> bool:
        """Read ``true``; what is left out is false."""
        if node is not None and self._text(node, "true") != "true":
            self._expected(node, "true")
        return node is not None

    def _other(self, entry: Mapping, root: Mapping) -> Mapping:
        """Return the entry that ``like:`` names, an empty one without it."""
        name = self._word(entry.get("like"), "an entry of this file")
        found = root.get(name.text) if name is not None else None
        if name is not None and not isinstance(found, Mapping):
            self._expected(name, "an entry of this file")
        return found if isinstance(found, Mapping) else Mapping((), entry.position)

    def _form(self, key: Scalar, node: Node) -> Form:
        """Read ``repeated uint32``, ``float = 1`` or ``enum LEARN INFERENCE = LEARN``."""
        text, mark, default = self._text(node, "a type").partition("=")
        words = text.split()
        repeated = words[:1] == ["repeated"]
        kind, *values = words[1:] if repeated else words or [""]
        kinds = (kind, values[1]) if len(values) == 2 and values[0] == "or" else (kind,)
        has_words = kind in ("enum", "message")
        values = values if has_words else values[2:] if len(kinds) == 2 else values
        if not {*SCALARS.values(), "enum", "message"}.issuperset(kinds) or (values and not has_words):
            self._expected(node, "a type of protobuf, 'message', or 'enum' with values,")
        name = key.text.rstrip("?")
        held = _default(kind, default.strip()) if mark else None
        return Form(name, kinds, tuple(values), repeated, held, key.text.endswith("?"))


def _default(kind: str, text: str) -> Any:
    if kind == "bool":
        return text == "true"
    if kind in ("enum", "string"):
        return text
    return float(text) if kind in ("float", "double") else int(text)
