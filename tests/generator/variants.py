"""Changed copies of the shipped bvlc schema, generated fast, and packages compared part by part."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest

from caffeforge.generator import generate, proto, yaml_source
from caffeforge.generator.diagnostics import Diagnostic, Diagnostics
from caffeforge.generator.generate import Package
from caffeforge.generator.library import functions
from caffeforge.generator.proto import ProtoSchema
from tests.generator.inputs import result

BVLC = Path(generate.__file__).resolve().parent.parent / "schemas" / "bvlc"
MAPPING = (BVLC / "mapping.yaml").read_text(encoding="utf-8")
PROTO = (BVLC / "caffe.proto").read_text(encoding="utf-8")

Definitions = dict[tuple[str, ...], str]  # (file, name) or (file, name, key or item) -> source


def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the generator compile each proto, and read the hub and the library, only once."""
    read, hub, library = proto.read, generate._hub_schema, lru_cache(functions)
    compiled: dict[bytes, ProtoSchema] = {}
    hubs: list[object] = []

    def read_proto(
        path: Path, shown: str, diagnostics: Diagnostics, includes: Sequence[Path] = ()
    ) -> ProtoSchema | None:
        data = path.read_bytes()
        schema = compiled.get(data) or read(path, shown, diagnostics, includes)
        if schema is None:
            return None
        compiled[data] = schema
        return replace(schema, file=shown)

    def read_hub(*arguments: object) -> object:
        if not hubs:
            hubs.append(hub(*arguments))  # type: ignore[arg-type]
        return hubs[0]

    monkeypatch.setattr(proto, "read", read_proto)
    monkeypatch.setattr(generate, "_hub_schema", read_hub)
    monkeypatch.setattr(generate, "functions", library)


def generated(
    folder: Path, mapping: str | None, schema: str | None
) -> tuple[Package | None, list[Diagnostic]]:
    """Return the package of a folder that is given these files, or what is wrong with it."""
    folder.mkdir(exist_ok=True)
    for name, text in (("mapping.yaml", mapping), ("caffe.proto", schema)):
        (folder / name).unlink(missing_ok=True)
        if text is not None:
            (folder / name).write_text(text, encoding="utf-8")
    return result(folder)


def definitions(package: Package) -> Definitions:
    """Return what a package defines: functions, classes, and each entry of its tables; places left out."""
    found: Definitions = {}
    for file, text in package.files.items():
        if file == "descriptor.py":
            continue
        text = re.sub(r"mapping\.yaml:\d+", "mapping.yaml:0", text)
        for node in ast.parse(text).body:
            for name, part in _named(node):
                key = (file, *name)
                found[key] = ast.unparse(part)
    return found


def _named(node: ast.stmt) -> Iterator[tuple[tuple[str, ...], ast.AST]]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield (node.name,), node
    elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
        target = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        if isinstance(node.value, ast.Dict):
            for key, value in zip(node.value.keys, node.value.values, strict=True):
                yield (target, ast.unparse(key) if key is not None else "**"), value
        elif isinstance(node.value, (ast.Tuple, ast.List)):
            for item in node.value.elts:
                yield (target, ast.unparse(item)), item
        else:
            yield (target,), node.value


def changed(before: Definitions, after: Definitions) -> set[tuple[str, ...]]:
    """Return the names of definitions that differ, are missing or new."""
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


@lru_cache
def sections() -> list[tuple[int, str, str]]:
    """Return for each entry of bvlc's mapping its line, section and name, in order of the lines."""
    root = yaml_source.load(MAPPING, "mapping.yaml", Diagnostics())
    assert root is not None
    found = []
    for section, node in root.entries:
        found.append((section.position.line, section.text, ""))
        if isinstance(node, yaml_source.Mapping):
            found += [(key.position.line, section.text, key.text) for key, _ in node.entries]
    return sorted(found)


def owner(line: int) -> tuple[str, str]:
    """Return the section and entry that a line of bvlc's mapping belongs to."""
    return next(((section, name) for first, section, name in reversed(sections()) if first <= line), ("", ""))
