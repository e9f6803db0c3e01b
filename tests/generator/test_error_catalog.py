"""The catalog of errors: complete, and each of its examples does what it says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from caffeforge.generator import error_catalog
from caffeforge.generator.catalog.entry import Entry
from caffeforge.generator.cli import main
from caffeforge.generator.error_catalog import CATALOG, explain
from caffeforge.runtime.errors import UsageError
from tests.generator.inputs import HUB, SMALL, ids, mapping, write

GENERATOR = Path(error_catalog.__file__).parent
REPORTERS = {"error", "unknown", "report", "_error"}
PRINTED = re.compile(r"error\[([a-z-]+)\]")
IN_FILES = [entry for entry in CATALOG.values() if entry.file != "command"]


def _ids_of(path: Path) -> set[str]:
    """Return the ids that a module reports: the first argument of what reports, and what it prints itself."""
    text = path.read_text(encoding="utf-8")
    found = set(PRINTED.findall(text))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if name in REPORTERS and isinstance(node.args[0].value, str):
                found.add(node.args[0].value)
    return found


def test_the_catalog_holds_each_id_that_the_generator_reports_and_no_other() -> None:
    # What stands in schemas/onnx is caffeforge's own: nobody who adds a backend meets its mistakes.
    own = ("extract_opset", "onnx_")
    modules = [path for path in GENERATOR.glob("*.py") if not path.name.startswith(own)]
    assert set().union(*map(_ids_of, modules)) == set(CATALOG)


def test_each_entry_says_what_it_is_in_a_few_lines() -> None:
    for entry in CATALOG.values():
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", entry.id)
        assert not entry.title.endswith(".") and entry.explanation.endswith(".")
        assert entry.wrong != entry.right
        assert len(explain(entry.id).splitlines()) < 40


def _written(folder: Path, entry: Entry, text: str) -> Path:
    if entry.file == "mapping.yaml":
        return write(folder, {entry.file: text}) if entry.whole else mapping(folder, text)
    if entry.file == "caffe.proto":
        whole = text if entry.whole else f"{(SMALL / 'caffe.proto').read_text(encoding='utf-8')}\n{text}\n"
        base = "extends: bvlc\n" if entry.whole else ""
        return write(folder, {entry.file: whole, "mapping.yaml": f"backend: vendorx\n{base}"})
    hub = {"rewrites.yaml": "fusions: {}\n", "ops.yaml": "", entry.file: text}
    if entry.file != "opset.json":
        hub["opset.json"] = (HUB / "opset.json").read_text(encoding="utf-8")
    return write(folder, hub)


@pytest.mark.parametrize("entry", IN_FILES, ids=lambda entry: entry.id)
def test_the_wrong_example_gives_the_error_and_the_right_one_none(entry: Entry, tmp_path: Path) -> None:
    (tmp_path / "looped").mkdir()
    (tmp_path / "looped" / "mapping.yaml").write_text("backend: looped\nextends: vendorx\n", encoding="utf-8")
    assert entry.id in ids(_written(tmp_path, entry, entry.wrong))
    assert ids(_written(tmp_path, entry, entry.right)) == []


def test_a_missing_schema_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "vendory")]) == 1
    assert PRINTED.findall(capsys.readouterr().err) == ["no-input"]


def test_a_package_that_cannot_be_written_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(tmp_path, {"mapping.yaml": "backend: vendorx\nextends: small\n"})
    (tmp_path / "README.md").write_text("", encoding="utf-8")
    assert main([str(source), "--out", str(tmp_path / "README.md")]) == 1
    assert PRINTED.findall(capsys.readouterr().err) == ["output"]


def test_an_unknown_id_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="no error 'unused-lets'") as caught:
        explain("unused-lets")
    assert caught.value.hint == "did you mean unused-let, rewrite-unused or pattern-unused?"


def test_the_nearest_ids_are_named_by_their_words(capsys: pytest.CaptureFixture[str]) -> None:
    for given, hint in {
        "quotes": "did you mean yaml-quotes?",
        "Unknown_Field": "did you mean unknown-field",
        "zzz": "it is the word in error[...]",
    }.items():
        with pytest.raises(UsageError) as caught:
            explain(given)
        assert (caught.value.hint or "").startswith(hint)
