"""Schemas that come compiled: a ``caffe_pb2.py``, read as data and never run, or a FileDescriptorSet.

Also the joining of a schema of several files into one, as the rest of the generator and the packages see it.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

from caffeforge.generator.diagnostics import Diagnostics, Position

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

SETS = (".pb", ".desc", ".ds", ".protoset", ".fds")
SUFFIXES = (".py", *SETS)
FORMS = (
    "caffe.proto",
    "caffe_pb2.py",
    *(f"caffe{suffix}" for suffix in SETS),
)  # in a folder, the first counts


def schema_in(folder: Path) -> Path:
    """Return the file of a folder that holds its schema; ``caffe.proto`` if there is none."""
    return next((folder / name for name in FORMS if (folder / name).exists()), folder / FORMS[0])


def read(data: bytes, path: Path, shown: str, diagnostics: Diagnostics) -> FileDescriptorSet | None:
    """Return the files of a compiled schema, None if there are none, which goes to `diagnostics`."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
    from google.protobuf.message import DecodeError

    try:
        if path.suffix in SETS:
            files = FileDescriptorSet.FromString(data)
        else:
            found = _serialized(data, shown, diagnostics)
            if found is None:
                return None
            files = FileDescriptorSet(file=[FileDescriptorProto.FromString(part) for part in found])
    except DecodeError:
        files = FileDescriptorSet()
    if not any(file.message_type for file in files.file):
        sentence = "holds no compiled schema, that is, no FileDescriptorSet"
        hint = "protoc --include_imports --descriptor_set_out writes one"
        if path.suffix not in SETS:
            sentence, hint = "no serialized schema stands in it", "it is no pb2 file as protoc writes them"
        diagnostics.error("proto", Position(shown), sentence, hint)
        return None
    return files


def _serialized(data: bytes, shown: str, diagnostics: Diagnostics) -> list[bytes] | None:
    """Return what a pb2 file gives as ``serialized_pb=`` or to ``AddSerializedFile()``."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        place = Position(shown, getattr(error, "lineno", 0) or 0, getattr(error, "offset", 0) or 0)
        diagnostics.error("proto", place, f"is no Python: {getattr(error, 'msg', None) or error}")
        return None
    found: list[bytes] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            keywords = [k.value for k in node.keywords if k.arg == "serialized_pb"]
            given = node.args[:1] if name == "AddSerializedFile" else keywords
            found += [part for part in map(_bytes, given) if part is not None]
    return list(dict.fromkeys(found))


def _bytes(node: ast.expr) -> bytes | None:
    """Return the bytes of a literal: ``b'...'``, Python 2's ``'...'`` or ``_b('...')`` of either."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_b" and node.args:
        return _bytes(node.args[0])
    if not isinstance(node, ast.Constant):
        return None
    if isinstance(node.value, str):
        try:
            return node.value.encode("latin-1")
        except UnicodeEncodeError:
            return None
    return node.value if isinstance(node.value, bytes) else None


def joined(
    files: FileDescriptorSet, name: str, shown: str, diagnostics: Diagnostics
) -> FileDescriptorProto | None:
    """Return one file called `name` that holds the messages and enums of all, those of the last first.

    A package can hold one descriptor only, whose types are called without their package's name.
    """
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    main, others = files.file[-1], list(files.file)[:-1]
    whole = FileDescriptorProto()
    whole.CopyFrom(main)
    whole.name = name
    missing = sorted({path for file in files.file for path in file.dependency} - {f.name for f in files.file})
    packages = sorted({file.package for file in files.file})
    syntaxes = [file.syntax for file in others if file.syntax not in ("", "proto2")]
    if missing:
        sentence = f"the schema needs {', '.join(missing)}, which is not in it"
        diagnostics.error("proto", Position(shown), sentence, "compile it with --include_imports")
    elif len(packages) > 1:
        sentence = f"its files are of several packages: {', '.join(p or 'none' for p in packages)}"
        diagnostics.error("proto-form", Position(shown), sentence, "a schema has one package")
    else:
        for file in others:
            whole.message_type.extend(file.message_type)
            whole.enum_type.extend(file.enum_type)
        for part in ("dependency", "public_dependency", "weak_dependency"):
            whole.ClearField(part)
        if syntaxes:
            whole.syntax = syntaxes[0]
        return whole
    return None


def is_consistent(file: FileDescriptorProto, shown: str, diagnostics: Diagnostics) -> bool:
    """Tell whether protobuf can use a compiled schema; what protoc has just read needs no such question."""
    from google.protobuf.descriptor_pool import DescriptorPool

    try:
        DescriptorPool().Add(file)
    except (TypeError, ValueError) as error:
        text = " ".join(str(error).split())
        diagnostics.error("proto", Position(shown), f"the schema is not consistent: {text}")
        return False
    return True
