"""Damaged files end in a sentence or in a net: a sample of what tests.e2e.mutations tries."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.mutations import SECONDS, run


def test_damaged_files_are_refused_or_read_right(tmp_path: Path) -> None:
    tried = run(tmp_path, 120, every=9)
    assert tried.wrong == []
    assert tried.outcomes["refused"] > 200 and tried.outcomes["read"] > 10
    assert tried.slowest < SECONDS
