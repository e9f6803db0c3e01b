"""Which dialects read another field in the bytes of one: a number that forks of Caffe used twice."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from caffeforge.runtime.message import Field, LayerParam

NUMBERS = ("bool", "enum", "int32", "int64", "uint32", "uint64")  # one wire type


def unsaid(ours: LayerParam, theirs: LayerParam, ignored: Collection[str]) -> Iterator[str]:
    """Yield what a saved layer sets to its default, the text leaves out, and other dialects read otherwise.

    Caffe saves the fields that its own prototxt sets. Where one is set to what it would be anyhow, and
    the text at hand does not set it, the file may come from a dialect that has another field there, of
    which it is not the default. A number that is not the default is a difference that is seen without this.
    """
    given = {field.name for field, _ in ours.present()}
    for field, value in theirs.present():
        if field.name in given or field.name in ignored or not _is_number(field):
            continue
        number = _number(field, value)
        other = _other(theirs, field, number) if number == _default(field) else ""
        if other:
            yield f"{field.name}: {value}, which the prototxt does not say, and {other} in the same bytes"


def _other(param: LayerParam, field: Field, number: int) -> str:
    """Return what the first dialect with another field of that number has there, as ``x has ceil_mode``."""
    from caffeforge.runtime.backends import dialects  # loads them all

    for dialect in dialects():
        found: Any = dialect.layer_types.get(param.TYPE)
        fields = found.FIELDS if found is not None and found.PARAM is not None else ()
        for one in fields:
            same = one.number == field.number and one.name != field.name
            if same and _is_number(one) and _default(one) != number:
                return f"{dialect.name} has {one.name}"
    return ""


def _is_number(field: Field) -> bool:
    return field.kind in NUMBERS and field.label != "repeated"


def _number(field: Field, value: Any) -> int:
    """Return a value as its bytes say it; an enum's has a name."""
    return int(field.type[value]) if isinstance(value, str) else int(value)


def _default(field: Field) -> int:
    """Return what a field is that is not set: an enum's first value, else 0, if the schema does not say."""
    if field.default is not None:
        return _number(field, field.default)
    return int(next(iter(field.type.values()))) if field.kind == "enum" else 0
