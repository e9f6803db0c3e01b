"""Fragments: protos that re-open messages of Caffe's own, to be pasted into it, laid over the base's schema.

A vendor's README says ``message LayerParameter { optional XParameter x_param = 300; }`` and what XParameter
is. protoc would refuse such a file: LayerParameter is another message to it, and its other types are not
there. So it is compiled in a package within the base's, from which it sees the base's types, and its fields
are added to the messages that they belong to.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caffeforge.generator import proto
from caffeforge.generator.diagnostics import Diagnostics, Position
from caffeforge.generator.names import place
from caffeforge.generator.proto import ProtoEnum, ProtoField, ProtoMessage, ProtoSchema

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

MESSAGE = re.compile(rb"^[ \t]*message\s+(\w+)", re.MULTILINE)
COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
HEAD = re.compile(rb"^[ \t]*(?:syntax\s*=\s*[\"']proto2[\"']|package\s+[\w.]+)\s*;", re.MULTILINE)
INNER = "fragment"  # the package within the base's in which a fragment is compiled
BOM = b"\xef\xbb\xbf"
FILE = "fragment of a schema.proto"  # what protoc is told it is called


def is_fragment(data: bytes, base: ProtoSchema) -> bool:
    """Tell whether a proto is no whole schema but re-opens messages of `base`."""
    names = {name.decode() for name in MESSAGE.findall(_blanked(COMMENT, data.removeprefix(BOM)))}
    return "NetParameter" not in names and not names.isdisjoint(base.messages)


def read(data: bytes, shown: str, base: ProtoSchema, diagnostics: Diagnostics) -> ProtoSchema | None:
    """Return the schema of a base with a fragment; None if protoc refuses it, or if it clashes with the base.

    Args:
        data: the fragment.
        shown: its name in positions.
        base: the schema that it is to be pasted into.
        diagnostics: takes the errors.
    """
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    file = _compiled(data, shown, base, diagnostics)
    if file is None:
        return None
    own = proto.walked(file, shown, diagnostics)
    before = len(diagnostics.found)
    merged = _Merge(base, own, diagnostics)
    messages, enums = merged.messages(), merged.enums()
    (whole,) = FileDescriptorSet.FromString(base.descriptor).file
    held = {enum.name for enum in whole.enum_type}
    whole.enum_type.extend(enum for enum in file.enum_type if enum.name not in held)
    added = {name: {f.name for f in new} for name, new in merged.added.items()}
    _extend(whole.message_type, file.message_type, "", added)
    if len(diagnostics.found) > before:
        return None
    descriptor = FileDescriptorSet(file=[whole]).SerializeToString(deterministic=True)
    return ProtoSchema(shown, base.package, messages, enums, descriptor)


def _blanked(pattern: re.Pattern[bytes], data: bytes) -> bytes:
    """Return a text with what a pattern finds as spaces, so that all else keeps its place."""
    return pattern.sub(lambda found: re.sub(rb"[^\n]", b" ", found.group()), data)


def _compiled(
    data: bytes, shown: str, base: ProtoSchema, diagnostics: Diagnostics
) -> FileDescriptorProto | None:
    """Return what protoc makes of a fragment, as a file of the base's package, with its own places."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    inner = ".".join(filter(None, (base.package, INNER)))
    head = f'syntax = "proto2"; package {inner}; import "{proto.NAME}";\n'.encode()
    text = head + _blanked(HEAD, data.removeprefix(BOM))
    with tempfile.TemporaryDirectory() as folder:
        known, target = Path(folder, "base"), Path(folder, "set")
        known.write_bytes(base.descriptor)
        Path(folder, FILE).write_bytes(text)
        arguments = [f"-I{folder}", f"--descriptor_set_in={known}", f"--descriptor_set_out={target}"]
        code, told = proto.run_protoc(*arguments, "--include_source_info", FILE)
        if code:
            proto.report(told, code, FILE, shown, diagnostics, lines_before=1)
            return None
        (file,) = FileDescriptorSet.FromString(target.read_bytes()).file
    for location in file.source_code_info.location:
        location.span[0] -= 1
    file.package = base.package
    own = f".{inner}."
    for field in _fields(file.message_type):
        if field.type_name.startswith(own):
            field.type_name = f".{inner.removesuffix(INNER)}{field.type_name.removeprefix(own)}"
    return file


def _fields(messages: Iterable[Any]) -> Iterator[Any]:
    for message in messages:
        yield from message.field
        yield from _fields(message.nested_type)


@dataclass
class _Merge:
    """The messages and enums of a base with those of a fragment; what clashes is reported.

    Attributes:
        added: by message of the base, the fields that the fragment adds.
    """

    base: ProtoSchema
    own: ProtoSchema
    diagnostics: Diagnostics

    def __post_init__(self) -> None:
        self.added: dict[str, list[ProtoField]] = {}
        self._home = place(Position(self.base.file, 1)).rpartition(":")[0]

    def messages(self) -> dict[str, ProtoMessage]:
        merged = {name: replace(m, file=m.file or self._home) for name, m in self.base.messages.items()}
        for name, message in self.own.messages.items():
            old = merged.get(name)
            if old is None:
                merged[name] = message
                continue
            new = self.added[name] = [f for f in message.fields if self._is_new(name, old, f)]
            merged[name] = replace(old, fields=(*old.fields, *new))
        return merged

    def enums(self) -> dict[str, ProtoEnum]:
        merged = {name: replace(e, file=e.file or self._home) for name, e in self.base.enums.items()}
        for name, enum in self.own.enums.items():
            old = merged.get(name)
            if old is not None and dict(old.values) != dict(enum.values):
                sentence = f"the enum {name} has other values than that of {old.file}:{old.line}"
                self._clash(enum.line, enum.column, sentence)
            merged.setdefault(name, enum)
        return merged

    def _is_new(self, message: str, old: ProtoMessage, field: ProtoField) -> bool:
        """Tell whether a fragment's field is to be added; one that the base has as well is not."""
        same = old.field(field.name)
        if same is not None:
            if _form(same) != _form(field):
                sentence = f"{message}.{field.name} is {_text(field)} here and {_text(same)}"
                self._clash(field.line, field.column, f"{sentence} at {self._at(same)}")
            return False
        other = next((f for f in old.fields if f.number == field.number), None)
        if other is not None:
            sentence = f"{message}.{field.name} has the number {field.number}, which is that of {other.name}"
            self._clash(field.line, field.column, f"{sentence} at {self._at(other)}")
        return other is None

    def _at(self, field: ProtoField) -> str:
        return place(Position(self.base.file, field.line))

    def _clash(self, line: int, column: int, sentence: str) -> None:
        self.diagnostics.error("fragment-clash", Position(self.own.file, line, column), sentence)


def _form(field: ProtoField) -> tuple[Any, ...]:
    return field.number, field.label, field.kind, field.type, field.default


def _text(field: ProtoField) -> str:
    kind = field.type if field.kind in ("message", "enum") else field.kind
    default = "" if field.default is None else f", by default {field.default}"
    return f"{field.label} {kind} {field.number}{default}"


def _extend(old: Any, new: Iterable[DescriptorProto], outer: str, added: Mapping[str, set[str]]) -> None:
    """Add a fragment's messages to those of the base, and to these the fields and enums that are new."""
    by_name = {message.name: message for message in old}
    for message in new:
        found = by_name.get(message.name)
        if found is None:
            old.append(message)
            continue
        name = outer + message.name
        found.field.extend(f for f in message.field if f.name in added[name])
        held = {enum.name for enum in found.enum_type}
        found.enum_type.extend(enum for enum in message.enum_type if enum.name not in held)
        _extend(found.nested_type, message.nested_type, f"{name}.", added)
