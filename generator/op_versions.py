"""Reads ``schemas/onnx/opset.json``: the signatures of all versions of ONNX's operators, one a line.

And ``schemas/onnx_opsetN/opset.json``, which says what version of each operator one opset has.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from caffeforge.generator.diagnostics import Diagnostics, Position
from caffeforge.generator.hub_schema import Attribute, Formal, HubOp
from caffeforge.generator.once import once
from caffeforge.generator.opset_file import KINDS
from caffeforge.generator.python_text import is_name

_T = TypeVar("_T")

_OPTIONS: Final = {"**": "variadic", "*": "variadic", "?": "optional"}
_LITERALS: Final = (int, float, str)
MIXED: Final = "**"  # stands behind the type of variadic values that need not be of one type


@dataclass(frozen=True)
class Types:
    """The types of one version's values: names of sets, or of one type, by position.

    Attributes:
        sets: what a name stands for: positions in the table of sets.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    sets: dict[str, int]


@dataclass(frozen=True)
class OpVersions:
    """The operators by name, their versions by the opset that brought them, and which opsets count.

    Attributes:
        sets: sets of types, each as their names.
        types: for each version the types of its values.
    """

    first: int
    last: int
    ops: dict[str, dict[int, HubOp]]
    sets: tuple[tuple[str, ...], ...] = ()
    types: dict[str, dict[int, Types]] = field(default_factory=dict)

    def in_force(self, name: str, opset: int) -> HubOp | None:
        """Return the version of an operator that an opset has, None if it has none."""
        since = max((v for v in self.ops.get(name, {}) if v <= opset), default=None)
        return None if since is None else self.ops[name][since]


@dataclass(frozen=True)
class Opset:
    """One opset: its number, and its operators with the opsets that brought their versions."""

    number: int
    ops: dict[str, int]


@once
def read(text: str, file: str, diagnostics: Diagnostics) -> OpVersions:
    """Return the versions; what is wrong goes to `diagnostics`."""
    nothing = OpVersions(0, 0, {})
    return _read(text, file, diagnostics, _versions, nothing, "op versions")


@once
def read_opset(text: str, file: str, diagnostics: Diagnostics) -> Opset:
    """Return an opset; what is wrong goes to `diagnostics`."""
    return _read(text, file, diagnostics, _opset, Opset(0, {}), "an opset")


def _read(
    text: str, file: str, diagnostics: Diagnostics, form: Callable[[Any], _T], nothing: _T, what: str
) -> _T:
    try:
        return form(json.loads(text))
    except json.JSONDecodeError as error:
        position = Position(file, error.lineno, error.colno)
        diagnostics.error("opset-syntax", position, f"not valid JSON: {error.msg}")
    except KeyError as error:
        diagnostics.error("opset-form", Position(file), f"the key {error} is missing")
    except RecursionError as error:
        diagnostics.error("opset-syntax", Position(file), f"not valid JSON: {error}")
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        diagnostics.error("opset-form", Position(file), f"not the form of {what}: {error}")
    return nothing


def _versions(described: Any) -> OpVersions:
    first, last = _number(described["first"]), _number(described["last"])
    given = described["versions"].items()
    sets = tuple(tuple(text.split()) for text in described.get("types", ()))
    return OpVersions(
        first,
        last,
        {_name(name): {v["since"]: _version(name, v) for v in versions} for name, versions in given},
        sets,
        {name: {v["since"]: _types(v, len(sets)) for v in versions} for name, versions in given},
    )


def _opset(described: Any) -> Opset:
    ops = {_name(name): _number(since) for name, since in described["ops"].items()}
    return Opset(_number(described["opset"]), ops)


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
    name = text.partition(":")[0]
    mark = next((mark for mark in _OPTIONS if name.endswith(mark)), "")
    return Formal(_name(name.removesuffix(mark)), _OPTIONS.get(mark, "single"))


def _types(data: dict[str, Any], count: int) -> Types:
    sets = {str(name): _number(index) for name, index in data.get("types", {}).items()}
    if not all(0 <= index < count for index in sets.values()):
        raise ValueError(f"there are {count} sets of types")
    sides = [tuple(_type(text) for text in data[side]) for side in ("inputs", "outputs")]
    return Types(sides[0], sides[1], sets)


def _type(text: str) -> str:
    name, _, kind = text.partition(": ")
    return kind + MIXED if name.endswith(MIXED) else kind


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
