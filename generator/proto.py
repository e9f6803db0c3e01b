"""A dialect's schema as data: messages, fields and enums, with comments and lines, by protoc."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caffeforge.generator import descriptor_file
from caffeforge.generator.diagnostics import Diagnostics, Position

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import (
        DescriptorProto,
        EnumDescriptorProto,
        FieldDescriptorProto,
        FileDescriptorProto,
        FileDescriptorSet,
    )

SCALARS = {
    1: "double",
    2: "float",
    3: "int64",
    4: "uint64",
    5: "int32",
    6: "fixed64",
    7: "fixed32",
    8: "bool",
    9: "string",
    12: "bytes",
    13: "uint32",
    15: "sfixed32",
    16: "sfixed64",
    17: "sint32",
    18: "sint64",
}
LABELS = {1: "optional", 2: "required", 3: "repeated"}
DIAGNOSTIC = re.compile(r"(?P<file>[^\n]*?):(?P<line>\d+):(?P<column>\d+): (?P<text>.*)")
NOTICE = re.compile(r"[IW]\d{4} |WARNING: ")  # protoc's log, as that a file has no syntax line
NAME = "caffe.proto"  # what protoc is told the file is called
IMPORTING = "schema of a backend.proto"  # where it may import another of that name


@dataclass(frozen=True)
class ProtoEnum:
    """One enum; `name` is its full name within the package, as ``PoolingParameter.PoolMethod``.

    Attributes:
        file: where it stands, if that is not the schema's file.
    """

    name: str
    values: tuple[tuple[str, int], ...]
    comment: str
    line: int
    column: int = 1
    file: str = ""


@dataclass(frozen=True)
class ProtoField:
    """One field.

    Attributes:
        kind: a scalar's proto name, ``enum`` or ``message``; then `type` is the full name of that type.
        default: the declared default: a Python value, an enum value's name, or None.
    """

    name: str
    number: int
    label: str
    kind: str
    type: str
    packed: bool
    default: Any
    comment: str
    line: int
    column: int = 1


@dataclass(frozen=True)
class ProtoMessage:
    """One message; `name` is its full name within the package.

    Attributes:
        file: where it stands, if that is not the schema's file.
    """

    name: str
    fields: tuple[ProtoField, ...]
    comment: str
    line: int
    column: int = 1
    file: str = ""

    def field(self, name: str) -> ProtoField | None:
        """Return the field called `name`, None if there is none."""
        return next((f for f in self.fields if f.name == name), None)


@dataclass(frozen=True)
class ProtoSchema:
    """A whole schema; `descriptor` is its FileDescriptorSet without comments, serialized."""

    file: str
    package: str
    messages: dict[str, ProtoMessage]
    enums: dict[str, ProtoEnum]
    descriptor: bytes


def joined(first: ProtoSchema, second: ProtoSchema) -> ProtoSchema:
    """Return `first` with the messages, fields of messages and enums that only `second` has."""
    messages = dict(second.messages)
    for name, old in first.messages.items():
        found = second.messages.get(name)
        more = [f for f in found.fields if old.field(f.name) is None] if found is not None else []
        messages[name] = replace(old, fields=(*old.fields, *more))
    return replace(first, messages=messages, enums=second.enums | first.enums)


def read(
    path: Path, shown: str, diagnostics: Diagnostics, includes: Sequence[Path] = ()
) -> ProtoSchema | None:
    """Read a schema; what protoc refuses goes to `diagnostics` with protoc's own position.

    Args:
        path: a proto, a pb2 file or a FileDescriptorSet.
        shown: its name in positions.
        diagnostics: takes the errors.
        includes: folders of what it imports.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        diagnostics.error("no-input", Position(shown), f"cannot be read: {error.strerror}")
        return None
    is_compiled = path.suffix in descriptor_file.SUFFIXES
    if is_compiled:
        files = descriptor_file.read(data, path, shown, diagnostics)
    else:
        files = _compiled(data, shown, diagnostics, includes)
    one = descriptor_file.joined(files, NAME, shown, diagnostics) if files is not None else None
    if one is None or (is_compiled and not descriptor_file.is_consistent(one, shown, diagnostics)):
        return None
    return walked(one, shown, diagnostics)


def walked(one: FileDescriptorProto, shown: str, diagnostics: Diagnostics) -> ProtoSchema:
    """Return a compiled file as a schema; what has no place in one is reported."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    walk = _Walk(one, shown, diagnostics)
    walk.run()
    one.ClearField("source_code_info")
    descriptor = FileDescriptorSet(file=[one]).SerializeToString(deterministic=True)
    return ProtoSchema(shown, one.package, walk.messages, walk.enums, descriptor)


def _compiled(
    data: bytes, shown: str, diagnostics: Diagnostics, includes: Sequence[Path]
) -> FileDescriptorSet | None:
    """Return what protoc makes of a proto; it sees a copy, so that name and folder do not matter."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    if b"\0" in data:
        line = data[: data.index(b"\0")].count(b"\n") + 1
        sentence = "there is a zero byte here: the file is UTF-16, or no text at all"
        diagnostics.error("proto", Position(shown, line, 1), sentence, "save it as UTF-8")
        return None
    name = IMPORTING if includes else NAME
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "set"
        (Path(folder) / name).write_bytes(data)
        paths = [f"-I{path}" for path in (folder, *includes)]
        arguments = [*paths, "--include_source_info", "--include_imports", f"--descriptor_set_out={target}"]
        code, text = run_protoc(*arguments, name)
        if code:
            report(text, code, name, shown, diagnostics)
            return None
        return FileDescriptorSet.FromString(target.read_bytes())


def run_protoc(*arguments: str) -> tuple[int, str]:
    """Run protoc in this process; return its exit code and what it wrote to file descriptor 2."""
    from grpc_tools import _protoc_compiler

    with tempfile.TemporaryFile() as log:
        sys.stderr.flush()
        kept = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            code: int = _protoc_compiler.run_main([b"protoc", *map(os.fsencode, arguments)])
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        log.seek(0)
        return code, log.read().decode("utf-8", "replace")


def report(
    text: str, code: int, name: str, shown: str, diagnostics: Diagnostics, *, lines_before: int = 0
) -> None:
    """Report what protoc wrote about a file called `name`, before whose text it saw `lines_before` more."""
    before = len(diagnostics.found)
    for line in text.splitlines():
        match = DIAGNOSTIC.match(line)
        if match:
            file = shown if os.path.basename(match["file"]) == name else match["file"]
            position = Position(file, max(int(match["line"]) - lines_before, 1), int(match["column"]))
            hint = "give the folder of what it imports by -I" if "not found" in match["text"] else ""
            diagnostics.error("proto", position, f"protoc: {match['text'].rstrip('.')}", hint)
        elif line.strip() and not NOTICE.match(line) and "File not found" not in line:
            diagnostics.error("proto", Position(shown), f"protoc: {line.strip().removeprefix(f'{name}: ')}")
    if len(diagnostics.found) == before:
        diagnostics.error("proto", Position(shown), f"protoc refuses the file with exit code {code}")


class _Walk:
    """Collects one file's messages and enums; what has no place in a Caffe schema is reported."""

    def __init__(self, file: Any, shown: str, diagnostics: Diagnostics) -> None:
        self.file = file
        self.shown = shown
        self.diagnostics = diagnostics
        self.prefix = f".{file.package}." if file.package else "."
        self.messages: dict[str, ProtoMessage] = {}
        self.enums: dict[str, ProtoEnum] = {}
        self.places = {tuple(place.path): place for place in file.source_code_info.location}

    def run(self) -> None:
        if self.file.syntax not in ("", "proto2"):
            sentence = f"the schema is written in {self.file.syntax}, Caffe's are proto2"
            self._error((12,), sentence, "absent fields and packing mean something else there")
        for index, enum in enumerate(self.file.enum_type):
            self._enum(enum, "", (5, index))
        for index, message in enumerate(self.file.message_type):
            self._message(message, "", (4, index))

    def _message(self, message: DescriptorProto, outer: str, path: tuple[int, ...]) -> None:
        name = outer + message.name
        fields = tuple(self._field(field, (*path, 2, index)) for index, field in enumerate(message.field))
        self.messages[name] = ProtoMessage(name, fields, *self._place(path))
        for index, enum in enumerate(message.enum_type):
            self._enum(enum, f"{name}.", (*path, 4, index))
        for index, nested in enumerate(message.nested_type):
            self._message(nested, f"{name}.", (*path, 3, index))

    def _enum(self, enum: EnumDescriptorProto, outer: str, path: tuple[int, ...]) -> None:
        values = tuple((value.name, value.number) for value in enum.value)
        self.enums[outer + enum.name] = ProtoEnum(outer + enum.name, values, *self._place(path))

    def _field(self, field: FieldDescriptorProto, path: tuple[int, ...]) -> ProtoField:
        kind = {11: "message", 14: "enum"}.get(field.type) or SCALARS.get(field.type, "")
        if not kind:
            self._error(path, f"{field.name} is a group, which no Caffe file holds", "make it a message")
        return ProtoField(
            name=field.name,
            number=field.number,
            label=LABELS[field.label],
            kind=kind,
            type=field.type_name.removeprefix(self.prefix),
            packed=field.options.packed,
            default=self._default(field, kind, path),
            comment=self._place(path)[0],
            line=self._place(path)[1],
            column=self._place(path)[2],
        )

    def _default(self, field: FieldDescriptorProto, kind: str, path: tuple[int, ...]) -> Any:
        default: Any = field.default_value
        if isinstance(default, bytes):  # as protobuf gives a string that is no UTF-8
            self._error(path, f"the default of {field.name} is no UTF-8", "")
            return None
        return _default(field.default_value, kind) if field.HasField("default_value") else None

    def _error(self, path: tuple[int, ...], sentence: str, hint: str) -> None:
        _, line, column = self._place(path)
        self.diagnostics.error("proto-form", Position(self.shown, line, column), sentence, hint)

    def _place(self, path: tuple[int, ...]) -> tuple[str, int, int]:
        """Return an element's comment, line and column."""
        place = self.places.get(path)
        if place is None:
            return "", 1, 1
        comments = map(_text, (place.leading_comments, place.trailing_comments))
        return " ".join(" ".join(comments).split()), place.span[0] + 1, place.span[1] + 1


def _text(comment: Any) -> str:
    """Return a comment; protobuf gives bytes where it is no UTF-8, as those of Latin-1 or GBK files."""
    return comment.decode("utf-8", "replace") if isinstance(comment, bytes) else comment


def _default(text: str, kind: str) -> Any:
    if kind in ("float", "double"):
        return float(text)
    if kind == "bool":
        return text == "true"
    if kind == "bytes":  # C escapes
        return text.encode("latin-1").decode("unicode_escape").encode("latin-1")
    return text if kind in ("string", "enum") else int(text)
