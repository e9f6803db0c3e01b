"""Whether the types of an op's values are among those that its version takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from onnx import TensorProto

from caffeforge.generated.onnx.element_types import TYPES, types_of
from caffeforge.runtime.graph import Value
from caffeforge.runtime.onnx_node import element_type
from caffeforge.runtime.op import Formal, VersionedOp

if TYPE_CHECKING:
    from caffeforge.runtime.onnx_out.backend import OnnxBackend

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


def not_taken(cls: type[VersionedOp], operands: Sequence[Value | None], backend: OnnxBackend) -> str:
    """Return which element type the vendor does not take of an op's data, empty if it takes all.

    Data are the first operand, and those which must be of its type.
    """
    allowed = backend.types.get(cls.op_type)
    first = next((value for value in operands if value is not None), None)
    if allowed is None or first is None:
        return ""
    found = TYPES.get(cls.op_type, {}).get(cls.since)
    kinds = list(_paired(cls.inputs, found.inputs, operands)) if found is not None else []
    data = [(name, value) for name, kind, value in kinds if kind == kinds[0][1]] or [("data", first)]
    for name, value in data:
        if backend.casts.get(value.dtype, value.dtype) not in allowed:
            source = f" (source: {backend.source})" if backend.source else ""
            return f"{name} of {cls.op_type} is {value.dtype}, it takes {', '.join(allowed)}{source}"
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
