"""What differs between two schemas of a dialect, as far as files of nets can tell.

Each change stands under a stable id and says which files it breaks: those that go by **name** (prototxt),
those that go by **number** (caffemodel), or the **meaning** of files that both schemas read. Messages are
compared along the fields that lead to them, so that renaming one is no change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from caffeforge.generator.compatibility import ZEROS, Touched, effective_default
from caffeforge.generator.diagnostics import Position
from caffeforge.generator.proto import ProtoEnum, ProtoField, ProtoMessage, ProtoSchema

ROOT = "NetParameter"
NAME, NUMBER, MEANING = "name", "number", "meaning"
RULES = {
    "default-changed": "a file that leaves the field out means something else",
    "enum-number-reused": "a number of an enum means another of its values",
    "enum-value-added": "an enum has a value more",
    "enum-value-removed": "an enum has a value less",
    "enum-value-renamed": "a value of an enum has another name under the same number",
    "enum-value-renumbered": "a value of an enum has another number",
    "field-added": "there is a field more, whose absence means zero or false",
    "field-added-not-neutral": "there is a field more, whose default may have an effect",
    "field-added-required": "there is a field more that every file has to set",
    "field-kind-changed": "a field holds another kind of value",
    "field-label-changed": "a field became repeated, optional or required",
    "field-removed": "a field is gone, and with it all that it holds",
    "field-renamed": "a field has another name under the same number",
    "field-renumbered": "a field has another number",
    "number-reused": "the number of a field belongs to another: a binary is misread in silence",
    "packing-changed": "a repeated field is packed or no longer is, which protobuf reads either way",
    "root-removed": "there is no NetParameter any more",
}
WIRES = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "bool", "enum"), "varint"),
    **dict.fromkeys(("sint32", "sint64"), "zigzag"),
    **dict.fromkeys(("fixed32", "sfixed32"), "4 bytes"),
    **dict.fromkeys(("fixed64", "sfixed64"), "8 bytes"),
    **dict.fromkeys(("string", "bytes"), "text"),
}
RANGES = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), (-(1 << 31), (1 << 31) - 1)),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), (-(1 << 63), (1 << 63) - 1)),
    **dict.fromkeys(("uint32", "fixed32"), (0, (1 << 32) - 1)),
    **dict.fromkeys(("uint64", "fixed64"), (0, (1 << 64) - 1)),
}
FLOATS = ("float", "double")


@dataclass(frozen=True, order=True)
class Change:
    """One difference.

    Attributes:
        position: where it stands in the new schema; in the old one if it is gone from the new.
        rule: the stable id, a key of `RULES`.
        subject: the field or enum value, ``PoolingParameter.ceil_mode``.
        breaks: which files it breaks: any of ``name``, ``number``, ``meaning``; empty if none.
        touched: the fields of the old schema whose users it concerns.
    """

    position: Position
    rule: str
    subject: str
    sentence: str
    breaks: tuple[str, ...] = ()
    touched: tuple[Touched, ...] = ()


def changes(old: ProtoSchema, new: ProtoSchema) -> list[Change]:
    """Return all changes in what nets hold, sorted by where they stand."""
    if ROOT not in old.messages or ROOT not in new.messages:
        sentence = f"there is no {ROOT} in {(new if ROOT in old.messages else old).file}"
        return [Change(Position(new.file), "root-removed", ROOT, sentence, (NAME, NUMBER))]
    return sorted(set(_Comparison(old, new).run()))


class _Comparison:
    def __init__(self, old: ProtoSchema, new: ProtoSchema) -> None:
        self.old, self.new = old, new
        self.seen: set[tuple[str, str]] = set()
        self.enums: dict[tuple[str, str], list[Touched]] = {}

    def run(self) -> Iterator[Change]:
        yield from self._message(ROOT, ROOT)
        for (before, after), touched in self.enums.items():
            yield from self._enum(self.old.enums[before], self.new.enums[after], tuple(touched))

    def _message(self, before: str, after: str) -> Iterator[Change]:
        if (before, after) in self.seen or before not in self.old.messages or after not in self.new.messages:
            return
        self.seen.add((before, after))
        old, new = self.old.messages[before], self.new.messages[after]
        pairs = self._pairs(old, new)
        for field, successor in pairs:
            if successor is None:
                yield self._removed(old, field)
            else:
                yield from self._field(old, field, new, successor)
            yield from self._reused(old, field, new, successor)
        kept = {successor.name for _, successor in pairs if successor is not None}
        yield from (self._added(new, field) for field in new.fields if field.name not in kept)

    def _pairs(self, old: ProtoMessage, new: ProtoMessage) -> list[tuple[ProtoField, ProtoField | None]]:
        """Return each old field with what became of it: that of its name, else that of its number."""
        by_number = {field.number: field for field in new.fields if old.field(field.name) is None}
        pairs = []
        for field in old.fields:
            successor = new.field(field.name)
            other = by_number.get(field.number)
            if successor is None and other is not None and self._is_alike(field, other):
                successor = other
            pairs.append((field, successor))
        return pairs

    def _is_alike(self, old: ProtoField, new: ProtoField) -> bool:
        """Tell whether two fields of different names hold the same, so that one is the other renamed."""
        if (old.kind, old.label, old.default) != (new.kind, new.label, new.default):
            return False
        if old.kind != "message":
            return True
        before, after = self.old.messages.get(old.type), self.new.messages.get(new.type)
        if before is None or after is None:
            return old.type == new.type
        held = [{(f.name, f.number, f.kind) for f in message.fields} for message in (before, after)]
        return bool(held[0] & held[1]) or held[0] == held[1]

    def _field(
        self, old: ProtoMessage, before: ProtoField, new: ProtoMessage, after: ProtoField
    ) -> Iterator[Change]:
        def change(rule: str, sentence: str, *breaks: str) -> Change:
            position = Position(self.new.file, after.line, after.column)
            return Change(
                position, rule, f"{new.name}.{after.name}", sentence, breaks, ((old.name, before.name),)
            )

        if before.name != after.name:
            yield change("field-renamed", f"it was called {before.name}", NAME)
        if before.number != after.number:
            yield change(
                "field-renumbered", f"its number was {before.number}, now it is {after.number}", NUMBER
            )
        if before.kind != after.kind:
            sentence = f"it was {_kind(before)}, now it is {_kind(after)}"
            yield change("field-kind-changed", sentence, *_broken_by_kind(before.kind, after.kind))
        if before.label != after.label:
            sentence = f"it was {before.label}, now it is {after.label}"
            yield change("field-label-changed", sentence, *_broken_by_label(before, after))
        elif before.packed != after.packed:
            yield change("packing-changed", "it is packed now" if after.packed else "it is no longer packed")
        if before.kind == after.kind and before.label == after.label != "repeated":
            values = effective_default(before, self.old), effective_default(after, self.new)
            if values[0] != values[1]:
                yield change(
                    "default-changed", f"its default was {values[0]}, now it is {values[1]}", MEANING
                )
        if before.kind == after.kind == "message":
            yield from self._message(before.type, after.type)
        if before.kind == after.kind == "enum":
            self.enums.setdefault((before.type, after.type), []).append((old.name, before.name))

    def _removed(self, message: ProtoMessage, field: ProtoField) -> Change:
        subject = f"{message.name}.{field.name}"
        touched = ((message.name, field.name),)
        position = Position(self.old.file, field.line, field.column)
        sentence = f"number {field.number}, {_kind(field)}, is gone"
        return Change(position, "field-removed", subject, sentence, (NAME, NUMBER), touched)

    def _added(self, message: ProtoMessage, field: ProtoField) -> Change:
        position = Position(self.new.file, field.line, field.column)
        rule, more = "field-added", ""
        breaks: tuple[str, ...] = ()
        default = effective_default(field, self.new)
        if field.label == "required":
            rule, breaks, more = "field-added-required", (NAME, NUMBER), ", is required"
        elif field.label != "repeated" and field.kind != "enum" and default != ZEROS.get(field.kind, 0):
            rule, more = (
                "field-added-not-neutral",
                f", has default {default}: old files are taken to mean that",
            )
        sentence = f"number {field.number}, {_kind(field)}, is new{more}"
        old = self.old.messages.get(message.name)
        is_told = rule != "field-added" and message.name != "LayerParameter"  # that is in all layers
        beside = old.fields if old is not None and is_told else ()
        touched = tuple(
            (message.name, other.name) for other in beside
        )  # what reads these may mean another thing
        return Change(position, rule, f"{message.name}.{field.name}", sentence, breaks, touched)

    def _reused(
        self, old: ProtoMessage, field: ProtoField, new: ProtoMessage, successor: ProtoField | None
    ) -> Iterator[Change]:
        if successor is not None and successor.number == field.number:
            return
        for other in new.fields:
            if other.number == field.number:
                position = Position(self.new.file, other.line, other.column)
                sentence = (
                    f"its number {field.number} was that of {field.name}: binaries are misread in silence"
                )
                subject = f"{new.name}.{other.name}"
                touched = ((old.name, field.name),)
                yield Change(position, "number-reused", subject, sentence, (NUMBER,), touched)

    def _enum(self, old: ProtoEnum, new: ProtoEnum, touched: tuple[Touched, ...]) -> Iterator[Change]:
        before, after = dict(old.values), dict(new.values)
        names = {number: name for name, number in reversed(new.values)}
        lost_names = {number: name for name, number in reversed(old.values) if name not in after}

        def change(file: str, enum: ProtoEnum, rule: str, name: str, sentence: str, *breaks: str) -> Change:
            position = Position(file, enum.line, enum.column)
            return Change(position, rule, f"{enum.name}.{name}", sentence, breaks, touched)

        for name, number in before.items():
            now = names.get(number)
            if name in after and after[name] != number:
                sentence = f"its number was {number}, now it is {after[name]}"
                yield change(self.new.file, new, "enum-value-renumbered", name, sentence, NUMBER)
            if name not in after and now is not None and now not in before:
                yield change(self.new.file, new, "enum-value-renamed", now, f"it was called {name}", NAME)
            elif name not in after:
                sentence = f"number {number} is gone"
                yield change(self.old.file, old, "enum-value-removed", name, sentence, NAME, NUMBER)
            if now is not None and now in before and before[now] != number and before.get(name) == number:
                sentence = f"its number {number} was that of {name}: binaries are misread in silence"
                yield change(self.new.file, new, "enum-number-reused", now, sentence, NUMBER)
        for name, number in after.items():
            if name not in before and number not in lost_names:
                yield change(self.new.file, new, "enum-value-added", name, f"number {number} is new")


def _kind(field: ProtoField) -> str:
    return f"{field.kind} {field.type}" if field.type else field.kind


def _broken_by_kind(old: str, new: str) -> tuple[str, ...]:
    """Return what a change of kind breaks; where values may not fit, it is the meaning."""
    texts = old in RANGES and new in (*RANGES, *FLOATS, "bool", "enum")
    texts |= (old in FLOATS and new in FLOATS) or WIRES.get(old) == WIRES.get(new) == "text"
    breaks = [] if texts else [NAME]
    if WIRES.get(old, old) != WIRES.get(new, new):
        breaks.append(NUMBER)
    if not _holds(new, old):
        breaks.append(MEANING)
    return tuple(breaks)


def _holds(new: str, old: str) -> bool:
    """Tell whether every value of a kind fits another, as far as one can be taken for the other."""
    if new in RANGES and old in RANGES:
        return RANGES[new][0] <= RANGES[old][0] and RANGES[old][1] <= RANGES[new][1]
    if new in ("bool", "enum"):
        return old not in (*RANGES, "bool", "enum")
    return (old, new) != ("double", "float")


def _broken_by_label(old: ProtoField, new: ProtoField) -> tuple[str, ...]:
    """Return what a change of label breaks: of several values one is left; a required one may be missing."""
    if new.label == "required":
        return (NAME, NUMBER)
    if old.label != "repeated":
        return ()
    return (NAME, NUMBER) if old.packed else (NAME, MEANING)
