"""A dialect's ``caffe.proto`` as data: messages, fields and enums with comments and lines, by protoc."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caffeforge.generator.diagnostics import Diagnostics, Position

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FieldDescriptorProto

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


@dataclass(frozen=True)
class ProtoEnum:
    """One enum; `name` is its full name within the package, as ``PoolingParameter.PoolMethod``."""

    name: str
    values: tuple[tuple[str, int], ...]
    comment: str
    line: int


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


@dataclass(frozen=True)
class ProtoMessage:
    """One message; `name` is its full name within the package."""

    name: str
    fields: tuple[ProtoField, ...]
    comment: str
    line: int

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


def read(path: Path, shown: str, diagnostics: Diagnostics) -> ProtoSchema | None:
    """Compile a proto file; what protoc refuses goes to `diagnostics` with protoc's own position.

    Args:
        path: the file.
        shown: its name in positions.
        diagnostics: takes the errors.
    """
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "set"
        arguments = [f"-I{path.parent}", "--include_imports", "--include_source_info"]
        code, text = _protoc(*arguments, f"--descriptor_set_out={target}", path.name)
        if code:
            _report(text, path, shown, diagnostics)
            return None
        files = FileDescriptorSet.FromString(target.read_bytes())
    walk = _Walk(files.file[-1])
    walk.run()
    for file in files.file:
        file.ClearField("source_code_info")
    descriptor = files.SerializeToString(deterministic=True)
    return ProtoSchema(shown, files.file[-1].package, walk.messages, walk.enums, descriptor)


def _protoc(*arguments: str) -> tuple[int, str]:
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


def _report(text: str, path: Path, shown: str, diagnostics: Diagnostics) -> None:
    for line in text.splitlines():
        match = DIAGNOSTIC.match(line)
        if match:
            file = shown if match["file"] == path.name else match["file"]
            position = Position(file, int(match["line"]), int(match["column"]))
            diagnostics.error("proto", position, f"protoc: {match['text']}")
        elif line.strip():
            diagnostics.error(
                "proto", Position(shown), f"protoc: {line.strip().removeprefix(path.name + ': ')}"
            )


class _Walk:
    """Collects one file's messages and enums."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self.prefix = f".{file.package}." if file.package else "."
        self.messages: dict[str, ProtoMessage] = {}
        self.enums: dict[str, ProtoEnum] = {}
        self.places = {tuple(place.path): place for place in file.source_code_info.location}

    def run(self) -> None:
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
        kind = {11: "message", 14: "enum"}.get(field.type) or SCALARS[field.type]
        return ProtoField(
            name=field.name,
            number=field.number,
            label=LABELS[field.label],
            kind=kind,
            type=field.type_name.removeprefix(self.prefix),
            packed=field.options.packed,
            default=_default(field, kind),
            comment=self._place(path)[0],
            line=self._place(path)[1],
        )

    def _place(self, path: tuple[int, ...]) -> tuple[str, int]:
        place = self.places.get(path)
        if place is None:
            return "", 0
        return " ".join(
            " ".join(_lines(place.leading_comments, place.trailing_comments)).split()
        ), place.span[0] + 1


def _lines(*comments: str) -> Iterator[str]:
    for comment in comments:
        yield from comment.splitlines()


def _default(field: FieldDescriptorProto, kind: str) -> Any:
    if not field.HasField("default_value"):
        return None
    text = field.default_value
    if kind in ("float", "double"):
        return float(text)
    if kind == "bool":
        return text == "true"
    return text if kind in ("string", "enum", "bytes") else int(text)
