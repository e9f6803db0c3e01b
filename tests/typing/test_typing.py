"""Generated code is typed so that misuse is an error before anything runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import ROOT

MISUSE = Path(__file__).parent / "misuse.txt"
ERROR = re.compile(r"misuse\.py:(\d+): error: .*\[([\w-]+)\]")


def test_misuse_of_generated_code_fails_type_checking(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    source = MISUSE.read_text(encoding="utf-8")
    (tmp_path / "misuse.py").write_text(source, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml")]
    done = subprocess.run(
        [*command, "--cache-dir", str(tmp_path / "cache"), str(tmp_path / "misuse.py")],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    found = {(int(line), code) for line, code in ERROR.findall(done.stdout)}
    lines = enumerate(source.splitlines(), 1)
    marked = {(number, match[1]) for number, line in lines if (match := re.search(r"# E: ([\w-]+)$", line))}
    assert found == marked, done.stdout
