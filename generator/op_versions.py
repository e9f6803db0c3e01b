"""Reads ``schemas/onnx/opset.json``: the signatures of all versions of ONNX's operators, one a line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from caffeforge.generator.diagnostics import Diagnostics, Position
from caffeforge.generator.hub_schema import Attribute, Formal, HubOp
from caffeforge.generator.opset_file import KINDS
from caffeforge.generator.python_text import is_name

_OPTIONS: Final = {"?": "optional", "*": "variadic"}
_LITERALS: Final = (int, float, str)


@dataclass(frozen=True)
class OpVersions:
    """The operators by name, their versions by the opset that brought them, and which opsets count."""

    first: int
    last: int
    ops: dict[str, dict[int, HubOp]]


def read(text: str, file: str, diagnostics: Diagnostics) -> OpVersions:
    """Return the versions; what is wrong goes to `diagnostics`."""
    try:
        described = json.loads(text)
    except json.JSONDecodeError as error:
        position = Position(file, error.lineno, error.colno)
        diagnostics.error("opset-syntax", position, f"not valid JSON: {error.msg}")
        return OpVersions(0, 0, {})
    except (RecursionError, ValueError) as error:
        diagnostics.error("opset-syntax", Position(file), f"not valid JSON: {error}")
        return OpVersions(0, 0, {})
    try:
        return OpVersions(
            _number(described["first"]),
            _number(described["last"]),
            {
                _name(name): {v["since"]: _version(name, v) for v in versions}
                for name, versions in described["versions"].items()
            },
        )
    except KeyError as error:
        diagnostics.error("opset-form", Position(file), f"the key {error} is missing")
    except (TypeError, ValueError, AttributeError) as error:
        diagnostics.error("opset-form", Position(file), f"not the form of op versions: {error}")
    return OpVersions(0, 0, {})


def _version(name: str, data: dict[str, Any]) -> HubOp:
    attributes = [_attribute(key, given) for key, given in data.get("attributes", {}).items()]
    return HubOp(
        name,
        _number(data["since"]),
        tuple(_formal(text) for text in data["inputs"]),
        tuple(_formal(text) for text in data["outputs"]),
        tuple(attributes),
    )


def _formal(text: str) -> Formal:
    mark = text[-1:]
    return Formal(_name(text.removesuffix(mark) if mark in _OPTIONS else text), _OPTIONS.get(mark, "single"))


def _attribute(key: str, data: dict[str, Any]) -> Attribute:
    default = data.get("default")
    items = default if isinstance(default, list) else [default]
    if default is not None and not all(isinstance(item, _LITERALS) for item in items):
        raise ValueError(f"the default of {key} is no number or text")
    kept = tuple(default) if isinstance(default, list) else default
    return Attribute(_name(key), KINDS[data["type"]], bool(data.get("required", False)), kept)


def _name(text: str) -> str:
    if not is_name(text):
        raise ValueError(f"{text!r} is no name")
    return text


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{value!r} is no number")
    return value
