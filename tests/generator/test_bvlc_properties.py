"""Any one line of bvlc's mapping left out, any name of its proto changed: a right error or a right backend.

A sample is tried; ``--every`` tries all of them (half an hour).
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from caffeforge.generator.names import function_name
from caffeforge.generator.proto import ProtoSchema
from tests.generator.variants import (
    MAPPING,
    PROTO,
    Definitions,
    changed,
    definitions,
    generated,
    owner,
    read_once,
)

LINES = MAPPING.splitlines(keepends=True)
SAMPLE, NAMES = 20, 10  # how many lines, and names, are tried without --every
# A rule without these keys does more than with them, or says it in general words.
MORE_WITHOUT = ("bottoms:", "blobs:", "otherwise:")
NEUTRAL = ("bottoms:",)  # may say what holds without it


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    read_once(monkeypatch)


def _sample(count: int, every: bool, size: int) -> Iterator[int]:
    """Yield numbers below `count`: all, or `size` of them."""
    yield from range(count) if every else sorted({(index * 7919) % count for index in range(size)})


def _definitions(folder: Path, mapping: str | None, schema: str | None) -> Definitions:
    package, found = generated(folder, mapping, schema)
    assert package is not None, found
    return definitions(package)


# tables of what a schema lacks, or has beyond what the rules know
TOLD = [("coverage.py", table) for table in ("ASSUMED", "DROPPED", "KNOWN", "OPEN", "UNKNOWN")]


def _is_about(name: tuple[str, ...], section: str, entry: str) -> bool:
    """Tell whether a definition is what an entry of a mapping says."""
    file, *rest = name
    subject, kind = repr(entry), entry.rpartition(".")[2]  # the class of caffe.Unpool is Unpool
    if section == "ops":
        function = re.compile(rf"{function_name('emit', kind, 0, 1)}(_\d+)?_*")
        own = ([f"hub.{entry}"], [f"caffe_ops.{kind}"])
        return (
            (file == "emit.py" and (bool(function.fullmatch(rest[0])) or rest[1:] in own))
            or (file == "coverage.py" and rest == ["OPS", subject])
            or (file == "examples.py" and rest[1].startswith(f"({subject},"))
        )
    if section == "layers":
        return (
            (file == "read.py" and rest[0] == function_name("read", kind, 0, 1))
            or (file in ("read.py", "coverage.py") and rest[1:] == [subject])
            or (file == "examples.py" and rest[-1].startswith(f"LayerExample({subject},"))
        )
    if section == "types":
        return (file == "layers.py" and subject in (repr(rest[0]), rest[-1])) or (
            file == "coverage.py" and rest == ["UNREAD", subject]
        )
    return section == "net" and (file, rest[0]) in (("__init__.py", "BACKEND"), ("emit.py", "input_layer"))


def _words(definition: str) -> Counter[str]:
    """Return the words of a definition; the numbers of alternatives are left out."""
    tokens = tokenize.generate_tokens(io.StringIO(definition).readline)
    return Counter(re.sub(r"_\d+$", "", token.string) for token in tokens if token.string.isidentifier())


def test_a_mapping_without_one_of_its_lines(every: bool, tmp_path: Path) -> None:
    original = _definitions(tmp_path / "bvlc", MAPPING, PROTO)
    wrong: list[tuple[int, str, str, object]] = []
    for index in _sample(len(LINES), every, SAMPLE):
        line = LINES[index]
        package, found = generated(tmp_path / "bvlc", "".join(LINES[:index] + LINES[index + 1 :]), PROTO)
        if package is None:
            if not all(d.position.line and d.position.column for d in found):
                wrong.append((index + 1, line, "has an error without a place", found))
            continue
        new = definitions(package)
        differing = changed(original, new)
        section, entry = owner(index + 1)
        if not differing and line.strip().startswith(NEUTRAL):
            continue
        blank = line.strip() == "" or line.strip().startswith("#")
        before, after = (_words("\n".join(d.get(n, "") for n in differing)) for d in (original, new))
        added = after - before  # a function may have another name where one alternative is left
        if blank != (not differing):
            wrong.append((index + 1, line, "has no effect" if not differing else "is a comment", differing))
        elif not all(_is_about(name, section, entry) for name in differing):
            wrong.append((index + 1, line, "changes other entries", differing))
        elif added and not line.strip().removeprefix("- ").startswith(MORE_WITHOUT):
            wrong.append((index + 1, line, "adds", added))
    assert wrong == []


def _renamings(schema: ProtoSchema) -> Iterator[tuple[str, str, str]]:
    """Yield (old name, new name, proto) for each field and enum value of the schema."""
    lines = PROTO.splitlines(keepends=True)
    for message in schema.messages.values():
        for field in message.fields:
            changed_line = re.sub(rf"\b{field.name}\b", f"{field.name}_renamed", lines[field.line - 1])
            new = [*lines[: field.line - 1], changed_line, *lines[field.line :]]
            yield field.name, f"{field.name}_renamed", "".join(new)
    for enum in schema.enums.values():
        for value, _ in enum.values:
            pattern = re.compile(rf"\b{value}\b(?=\s*(=|\]))")
            given = next(i for i in range(enum.line - 1, len(lines)) if pattern.search(lines[i]))
            fields = [f for m in schema.messages.values() for f in m.fields]
            defaults = [f.line - 1 for f in fields if f.type == enum.name and f.default == value]
            new = [
                pattern.sub(f"{value}_RENAMED", line) if i in (given, *defaults) else line
                for i, line in enumerate(lines)
            ]
            yield value, f"{value}_RENAMED", "".join(new)


@pytest.fixture
def schema(tmp_path: Path) -> ProtoSchema:
    from caffeforge.generator import proto
    from caffeforge.generator.diagnostics import Diagnostics

    path = tmp_path / "original.proto"
    path.write_text(PROTO, encoding="utf-8")
    found = proto.read(path, "original.proto", Diagnostics())
    assert found is not None
    return found


def _renamed_back(after: Definitions, new: str, old: str) -> Definitions:
    return {
        tuple(part.replace(new, old) for part in name): text.replace(new, old) for name, text in after.items()
    }


def test_a_mapping_for_a_proto_with_one_name_changed(
    every: bool, tmp_path: Path, schema: ProtoSchema
) -> None:
    """Its own mapping: the name is reported, or no rule names it and the package has the new one instead."""
    original = _definitions(tmp_path / "bvlc", MAPPING, PROTO)
    renamings = list(_renamings(schema))
    reported, wrong = 0, []
    for index in _sample(len(renamings), every, NAMES):
        old, new, text = renamings[index]
        package, found = generated(tmp_path / "bvlc", MAPPING, text)
        if package is None:
            reported += 1
            if not all(d.position.line and d.position.column for d in found):
                wrong.append((old, "has an error without a place", found))
            if not any(re.search(rf"\b{old}\b", d.sentence) for d in found):
                wrong.append((old, "is not named", found))
        elif changed(original, _renamed_back(definitions(package), new, old)):
            wrong.append((old, "changes more than its name", []))
    assert wrong == []
    assert reported


def test_a_backend_that_inherits_bvlc_with_one_name_changed(
    every: bool, tmp_path: Path, schema: ProtoSchema
) -> None:
    """A rule that names it is left out and listed; all others are as before."""
    generated(tmp_path / "bvlc", MAPPING, PROTO)  # the base that it finds beside it
    original = _definitions(tmp_path / "child", None, PROTO)
    renamings = list(_renamings(schema))
    dropped, wrong = 0, []
    for index in _sample(len(renamings), every, NAMES):
        old, new, text = renamings[index]
        package, found = generated(tmp_path / "child", None, text)
        if package is None:
            if not any(d.id == "schema-skeleton" and old in d.sentence for d in found):
                wrong.append((old, "is refused", str(found)))
            continue
        after = _renamed_back(definitions(package), new, old)
        lost = changed(original, after)
        subjects = {drop.subject for drop in package.dropped}
        dropped += bool(subjects)
        for name in lost - _ignoring(old, original, after):
            listed = name[:2] in TOLD or any(_belongs(name, subject) for subject in subjects)
            kept = name[1].startswith(("emit_", "read_")) and name in after
            if not listed or kept:
                wrong.append((old, "changes", str(name)))
    assert wrong == []
    assert dropped


def _ignoring(old: str, original: Definitions, after: Definitions) -> set[tuple[str, ...]]:
    """Return the readers that differ in nothing but not ignoring a field that is not there any more."""
    found = set()
    for name in (name for name in original if name[:2] == ("read.py", "READERS")):
        call = ast.parse(original[name], mode="eval").body
        assert isinstance(call, ast.Call) and isinstance(call.args[-1], ast.Tuple)
        call.args[-1].elts = [item for item in call.args[-1].elts if ast.literal_eval(item) != old]
        if ast.unparse(call) == after.get(name) != original[name]:
            found.add(name)
    return found


def _belongs(name: tuple[str, ...], subject: str) -> bool:
    """Tell whether a definition is about an op or layer type that has lost a rule."""
    if subject == "net":
        return _is_about(name, "net", "")
    return any(_is_about(name, section, subject) for section in ("ops", "layers", "types")) or (
        name[:2] == ("__init__.py", "BACKEND")
    )
