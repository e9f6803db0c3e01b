"""Golden cases: folders with inputs, and what gen-backend must write, or say, about them.

A case with ``stderr.txt`` is a mistake: the text must be printed as it stands, nothing be written, and the
exit code be 1, with --check too. A case with ``expected/`` is a backend: the files there are what the package
must hold (with ``.txt`` behind their names, so that no tool takes them for code). ``--update`` rewrites both.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from caffeforge.generator.cli import main
from caffeforge.generator.generate import generate

CASES = Path(__file__).parent / "cases"
MISTAKES = sorted(path.parent.name for path in CASES.glob("*/stderr.txt"))
BACKENDS = sorted(path.parent.name for path in CASES.glob("*/expected"))


def test_each_case_is_a_mistake_or_a_backend() -> None:
    assert sorted([*MISTAKES, *BACKENDS]) == sorted(path.name for path in CASES.iterdir())


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_reported_and_nothing_is_written(
    name: str,
    update: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    expected = CASES / name / "stderr.txt"
    monkeypatch.chdir(CASES / name)
    for options in ([], ["--check"]):
        assert main([".", "--out", str(tmp_path / "out"), *options]) == 1
        printed = capsys.readouterr()
        if update:
            expected.write_text(printed.err, encoding="utf-8")
        assert printed.err == expected.read_text(encoding="utf-8")
        assert printed.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", BACKENDS)
def test_a_backend_is_written_as_expected(name: str, update: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = sorted((CASES / name / "expected").iterdir())
    monkeypatch.chdir(CASES / name)
    package = generate(Path())
    assert expected
    for path in expected:
        text = package.files[path.stem]
        if update:
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")
        compile(text, path.stem, "exec")
