"""Which dialects read another field in the bytes of one: a number that forks of Caffe used twice."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from caffeforge.runtime.message import Field, LayerParam

NUMBERS = ("bool", "enum", "int32", "int64", "uint32", "uint64")  # one wire type


def unsaid(ours: LayerParam, theirs: LayerParam, ignored: Collection[str]) -> Iterator[str]:
    """Yield what a saved layer sets to a default, the text leaves out, and other dialects read otherwise.

    Caffe saves the fields that its own prototxt sets. Where one is set to what it would be anyhow, and
    the text at hand does not set it, the file may come from a dialect that has another field there.
    """
    given = {field.name for field, _ in ours.present()}
    for field, value in theirs.present():
        if (
            field.name in given
            or field.name in ignored
            or field.kind not in NUMBERS
            or field.label == "repeated"
        ):
            continue
        other = _other(theirs, field)
        if other:
            yield f"{field.name}: {value}, which the prototxt does not say, and {other} in the same bytes"


def _other(param: LayerParam, field: Field) -> str:
    """Return what the first dialect with another field of that number has there, as ``x has ceil_mode``."""
    from caffeforge.runtime.backends import dialects  # loads them all

    for dialect in dialects():
        found: Any = dialect.layer_types.get(param.TYPE)
        fields = found.FIELDS if found is not None and found.PARAM is not None else ()
        for one in fields:
            if one.number == field.number and one.name != field.name and one.kind in NUMBERS:
                return f"{dialect.name} has {one.name}"
    return ""
