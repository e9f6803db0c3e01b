"""Tables of configurations: one a line, with what it becomes in the hub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch

from tests.torch_front.checking import checked, types

# A name, a function or module, its inputs, and the types of the ops that it becomes: None where only the
# values count.
Line = tuple[str, Any, tuple[torch.Tensor, ...], "list[str] | None"]


def lines(tables: Mapping[str, Sequence[Line]]) -> list[Any]:
    """Return the lines of all tables as parameters of a test, named by table and line."""
    return [
        pytest.param(function, inputs, expected, id=f"{table}: {name}")
        for table, rows in tables.items()
        for name, function, inputs, expected in rows
    ]


def check_line(function: Any, inputs: tuple[torch.Tensor, ...], expected: list[str] | None) -> None:
    """Compare all values of a line with PyTorch's, and its ops with those expected."""
    graph = checked(function, *inputs).graph
    if expected is not None:
        assert types(graph) == expected
