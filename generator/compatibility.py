"""Whether an inherited rule fits another schema: every field it depends on must mean the same there.

A rule that always writes a field does not depend on its default, but it does on the defaults of the fields
that it leaves out of the same message. One that reads a field of another default refuses it where absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from caffeforge.generator.diagnostics import Diagnostics, Position
from caffeforge.generator.mapping import Rule
from caffeforge.generator.names import place
from caffeforge.generator.proto import ProtoField, ProtoSchema

Touched = tuple[str, str]  # (message, field)
ZEROS = {"bool": False, "string": "", "bytes": b"", "message": None}  # other kinds have 0


class HasMessage(Protocol):
    """A layer type, as far as it matters here: it has parameters in a message."""

    @property
    def message(self) -> str:
        """The message's name."""


@dataclass
class Uses:
    """The fields that a rule has to do with.

    Attributes:
        read: those whose default it may meet, reading it or leaving a field absent for some nodes.
        present: those that always have a value where it is used.
        absent: those that it never gives one, in messages that it writes.
    """

    read: list[Touched] = field(default_factory=list)
    present: list[Touched] = field(default_factory=list)
    absent: list[Touched] = field(default_factory=list)


@dataclass(frozen=True)
class Dropped:
    """An inherited alternative that the schema cannot hold, and the first reason."""

    subject: str
    rule: str
    reason: str


@dataclass
class Inheritance:
    """Decides over inherited alternatives and lists those that are dropped.

    Attributes:
        file: the backend's own mapping; rules of other files are inherited.
        written_against: for each mapping file, the schema that its rules were written for.
        meaningless: fields that do not matter for inference, whatever their default.
        sizes: those that may have one value for all axes where the base has one for each; an absent one
            is 0, or the size given here.
        sides: those for one axis of which it matters only whether they are set, whatever their default.
        known_fields: those of known layers, whose readers take the schema's own defaults.
    """

    file: str
    schema: ProtoSchema
    written_against: Mapping[str, ProtoSchema]
    dropped: list[Dropped] = field(default_factory=list)
    meaningless: frozenset[Touched] = frozenset()
    sizes: Mapping[Touched, int] = field(default_factory=dict)
    sides: frozenset[Touched] = frozenset()
    known_fields: frozenset[Touched] = frozenset()

    def is_inherited(self, position: Position) -> bool:
        """Tell whether a rule stands in another file than the backend's own mapping."""
        return position.file != self.file

    def drops(self, subject: str, position: Position, found: Diagnostics, uses: Uses) -> bool:
        """Tell whether an inherited alternative does not fit the schema; if so, list it.

        Args:
            subject: the op or layer type.
            position: where the alternative stands.
            found: the mistakes that it would be with this schema.
            uses: the fields that it reads or writes.
        """
        reason = found.found[0].sentence if found.found else self._difference(position, uses)
        if reason:
            self.dropped.append(Dropped(subject, place(position), reason))
        return bool(reason)

    def within(self, position: Position, paths: Iterable[str], fields: Iterable[ProtoField]) -> list[Touched]:
        """Return the fields of messages that a rule reads, for which it has no way to refuse their default.

        Args:
            position: where the rule stands.
            paths: what it reads: a path, or the name of a message that it reads as a whole.
            fields: those of the layer type, which the paths begin with.
        """
        base = self.written_against.get(position.file)
        known = {field.name: field for field in fields}
        found: list[Touched] = []
        for path in paths:
            first, *rest = path.split(".")
            field: ProtoField | None = known.get(first)
            for name in rest:
                assert field is not None
                found.append((field.type, name))
                field = self.schema.messages[field.type].field(name)
            if field is not None and field.kind == "message" and base is not None:
                found += self._held(field.type, base)
        return found

    def _held(self, message: str, base: ProtoSchema) -> Iterator[Touched]:
        """Yield the fields that both schemas have in a message, and in those that it holds."""
        for held in self.schema.messages[message].fields:
            if _field(base, message, held.name) is not None:
                yield message, held.name
                if held.kind == "message":
                    yield from self._held(held.type, base)

    def _difference(self, position: Position, uses: Uses) -> str:
        base = self.written_against.get(position.file)
        if base is None:
            return ""
        for message, name in (*uses.read, *uses.present):
            old, new = _field(base, message, name), _field(self.schema, message, name)
            if old is None or new is None:
                return f"{message}.{name} does not exist"
            if new.kind != old.kind:
                return f"{message}.{name} has kind {new.kind}, {old.kind} is expected"
            is_size = new.label == "optional" and (message, name) in self.sizes
            if new.label != old.label and "repeated" in (new.label, old.label) and not is_size:
                return f"{message}.{name} has label {new.label}, {old.label} is expected"
        absent = (self._absent(base, touched) for touched in uses.absent)
        read = (self._default(base, touched) for touched in uses.read)
        return next(filter(None, (*read, *absent)), "")

    def guarded(self, position: Position, uses: Uses) -> list[tuple[str, str]]:
        """Return the read fields that must be set for an inherited rule to hold, and why."""
        base = self.written_against.get(position.file)
        if base is None or not self.is_inherited(position):
            return []
        read = [touched for touched in uses.read if touched not in self.known_fields]
        found = [(name, self._default(base, (message, name))) for message, name in read]
        return [(name, reason) for name, reason in found if reason]

    def _absent(self, base: ProtoSchema, touched: Touched) -> str:
        """Return why a field may not be left out, which the base may not know; empty if it may."""
        new = _field(self.schema, *touched)
        if new is not None and new.label == "required":
            return f"{'.'.join(touched)} is required, and the rule does not write it"
        return "" if touched in self.meaningless else self._default(base, touched)

    def _default(self, base: ProtoSchema, touched: Touched) -> str:
        old, new = _field(base, *touched), _field(self.schema, *touched)
        if old is None or new is None or new.label in ("required", "repeated") or touched in self.sides:
            return ""
        if old.label == "repeated":
            old = replace(old, label="optional", default=self.sizes.get(touched, 0))
        was, is_now = effective_default(old, base), effective_default(new, self.schema)
        if was == is_now or (not is_now and touched in self.sizes):
            return ""
        return f"{'.'.join(touched)} has default {is_now}, {was} is expected"


def _field(schema: ProtoSchema, message: str, name: str) -> ProtoField | None:
    return schema.messages[message].field(name) if message in schema.messages else None


def effective_default(field: ProtoField, schema: ProtoSchema) -> Any:
    """Return the value that an absent field reads as, declared or not; None for a message."""
    if field.default is not None:
        return field.default
    if field.kind == "enum":
        return schema.enums[field.type].values[0][0]
    return ZEROS.get(field.kind, 0)


def meaningless(rules: Iterable[Rule], types: Mapping[str, HasMessage]) -> frozenset[Touched]:
    """Return the fields that every rule for a layer type with their message ignores."""
    ignored: dict[str, set[str]] = {}
    for rule in rules:
        if rule.name.text in types:
            message, names = types[rule.name.text].message, {scalar.text for scalar in rule.ignore}
            ignored[message] = ignored.get(message, names) & names
    return frozenset((message, name) for message, names in ignored.items() for name in names)
