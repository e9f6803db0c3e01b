"""Small networks in every dialect; ``python -m tests.e2e.dialect_networks`` tries sixteen."""

from __future__ import annotations

from pathlib import Path

import pytest

from caffeforge.runtime.backends import dialects
from tests.e2e.dialect_networks import CASES, Case, outcome
from tests.e2e.networks import images

SMALL = [case for case in CASES if case.name in ("SmallSsd", "SmallYolo")]


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_every_dialect_says_it_and_it_is_right(case: Case, tmp_path: Path) -> None:
    model, x = case.build(), images(2, case.size, seed=1)
    for backend in dialects():
        assert outcome(model, x, backend, tmp_path / backend.name).equal, backend.name
