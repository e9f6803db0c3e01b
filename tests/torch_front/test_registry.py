"""The table of handlers."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch

from caffeforge.runtime.torch_front import trace as trace  # registers the handlers
from caffeforge.runtime.torch_front.registry import HANDLERS, torch_op

aten = torch.ops.aten


@pytest.mark.parametrize("overload", HANDLERS, ids=str)
def test_docstring_gives_the_signature(overload: Any) -> None:
    text = " ".join((inspect.getdoc(HANDLERS[overload]) or "").split())
    schema = str(overload._schema)
    _, _, tail = text.partition(schema.partition("(")[0] + "(")
    assert tail, f"{schema} does not stand in the docstring"
    stated = (schema.partition("(")[0] + "(" + tail).partition(" -> ")[0]
    if "..." in stated:
        stated = stated.partition("...")[0]
    assert schema.startswith(stated), schema


@pytest.mark.parametrize(
    ("overload", "words"),
    [
        (aten.relu.default, "is lowered by caffeforge.runtime.torch_front.activation_ops already"),
        (aten.lgamma, "is no overload"),
        (aten.lgamma_.default, "is in-place"),
    ],
)
def test_registering_what_cannot_be_is_an_error(overload: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        torch_op(overload)(lambda call: call.value("self"))
    assert HANDLERS[aten.relu.default].__name__ == "relu"
    assert aten.lgamma.default not in HANDLERS
