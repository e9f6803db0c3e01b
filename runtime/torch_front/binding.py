"""Binding an ATen call's arguments to the parameter names of its schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch._ops import OpOverload


def bind(op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return {parameter: argument}; traced graphs leave out arguments that equal their default."""
    parameters = op._schema.arguments
    given = dict(zip((parameter.name for parameter in parameters), args, strict=False))
    given.update(kwargs)
    for parameter in parameters:
        if parameter.name not in given:
            given[parameter.name] = parameter.default_value if parameter.has_default_value() else None
    return given
