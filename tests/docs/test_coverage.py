"""docs/coverage.md and coverage.json: what they say is what the backends do today."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from caffeforge.runtime.backends import all_names, dialects, names
from caffeforge.runtime.errors import LegalizeError
from caffeforge.runtime.export import export
from tests.docs import coverage_page
from tests.docs.op_coverage import all_ops

AGAIN = "run python -m tests.docs.coverage_page"


@cache
def tables() -> tuple[coverage_page.Table, Mapping[str, Sequence[str]]]:
    return coverage_page.tables()


def written() -> Any:
    return json.loads(coverage_page.DATA.read_text(encoding="utf-8"))


def test_the_page_is_up_to_date() -> None:
    assert coverage_page.PAGE.read_text(encoding="utf-8") == coverage_page.page(*tables()), AGAIN


def test_the_data_are_up_to_date() -> None:
    assert coverage_page.DATA.read_text(encoding="utf-8") == coverage_page.data(tables()[0]), AGAIN


def test_every_op_stands_there_for_every_backend() -> None:
    found = written()
    assert set(found) == set(all_names())
    for name, backend in found.items():
        assert list(backend["ops"]) == list(all_ops()), name


def test_what_is_written_names_its_layers_and_what_is_refused_its_reason() -> None:
    for backend in names():
        for op, one in written()[backend]["ops"].items():
            named = one.get("refused") if one["kind"] == "refused" else one.get("layers")
            assert named, (backend, op)


class Net(torch.nn.Module):
    """One function."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        """Return what the function gives."""
        return self.function(x)


@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("Abs", torch.abs),
        ("Atan", torch.atan),
        ("HardSwish", torch.nn.functional.hardswish),
        ("Sign", torch.sign),
        ("Softplus", torch.nn.functional.softplus),
    ],
)
def test_a_model_becomes_what_the_page_says(op: str, function: Any, tmp_path: Path) -> None:
    for backend in dialects():
        one = written()[backend.name]["ops"][op]
        model, x = Net(function), torch.linspace(-3, 3, 30).reshape(1, 2, 3, 5)
        if one["kind"] == "refused":
            reason = re.sub(r"^[\w.]+: ", "", one["refused"][-1])  # the op that cannot be said stands first
            with pytest.raises(LegalizeError, match=re.escape(reason)):
                export(backend, model, (x,), tmp_path / "net")
        else:
            result = export(backend, model, (x,), tmp_path / "net", in_place=False)
            layers = result.layers - result.prototxt.read_text().count('type: "Input"')
            assert [layers] * 2 == one["cost"], backend.name
