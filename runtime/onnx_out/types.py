"""Whether the types of an op's values are among those that its version takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import TensorProto

from caffeforge.generated.onnx.element_types import TYPES, types_of
from caffeforge.runtime.graph import Value
from caffeforge.runtime.onnx_node import element_type
from caffeforge.runtime.op import Formal, VersionedOp

_MIXED = "**"  # behind the name of a type: variadic values, each of a type of its own


def complaint(
    cls: type[VersionedOp], operands: Sequence[Value | None], results: Sequence[Value | None]
) -> str:
    """Return what is wrong with the types of an op's operands and results, empty if nothing is."""
    found = TYPES.get(cls.op_type, {}).get(cls.since)
    if found is None:
        return ""
    bound: dict[str, tuple[str, str]] = {}
    pairs = [*_paired(cls.inputs, found.inputs, operands), *_paired(cls.outputs, found.outputs, results)]
    for formal, kind, value in pairs:
        mixed = kind.endswith(_MIXED)
        name = kind.removesuffix(_MIXED)
        given = _onnx_name(value.dtype)
        allowed = types_of(name, found)
        if given not in allowed:
            return f"{formal} of {cls.op_type}-{cls.since} is {value.dtype}, it takes {_listed(allowed)}"
        first, dtype = bound.setdefault(name, (formal, value.dtype))
        if not mixed and name in found.sets and dtype != value.dtype:
            return f"{formal} of {cls.op_type}-{cls.since} is {value.dtype}, {first} is {dtype}"
    return ""


def _paired(
    formals: Sequence[Formal], kinds: Sequence[str], values: Sequence[Value | None]
) -> Iterator[tuple[str, str, Value]]:
    for index, value in enumerate(values):
        place = min(index, len(kinds) - 1)
        if value is not None and place >= 0:
            yield formals[place].name, kinds[place], value


def _onnx_name(dtype: str) -> str:
    """Return ONNX's name of an element type: ``float`` for float32, ``double`` for float64."""
    return str(TensorProto.DataType.Name(element_type(dtype))).lower()


def _listed(types: frozenset[str]) -> str:
    return ", ".join(sorted(types))
