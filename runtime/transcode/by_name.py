"""A protobuf message of one schema as a message of another: fields and enum values by name."""

from __future__ import annotations

from typing import Any, NamedTuple

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message as Proto


class Missing(NamedTuple):
    """A field that has no place in the other schema; `path` leads to it, names with dots between."""

    path: str
    sentence: str


def copy_by_name(source: Proto, target: Any, path: str = "") -> list[Missing]:
    """Set in `target` what is set in `source`; return what has no place there.

    Args:
        source: a message of one dialect.
        target: an empty message of another, which is filled.
        path: what stands before the names of its fields.
    """
    missing: list[Missing] = []
    for field, value in source.ListFields():
        name = f"{path}{field.name}"
        own = target.DESCRIPTOR.fields_by_name.get(field.name)
        if own is None:
            missing.append(Missing(name, f"{target.DESCRIPTOR.name} has no field {field.name}"))
            continue
        values = list(value) if field.is_repeated else [value]
        if len(values) > 1 and not own.is_repeated:
            missing.append(Missing(name, f"{name} holds one value, not {len(values)}"))
            continue
        for item in values:
            missing += _copy_value(field, own, item, target, name)
    return missing


def _copy_value(
    field: FieldDescriptor, own: FieldDescriptor, item: Any, target: Any, name: str
) -> list[Missing]:
    if (field.message_type is None) != (own.message_type is None):
        return [Missing(name, f"{name} is of another kind")]
    if own.message_type is not None:
        inner = getattr(target, own.name).add() if own.is_repeated else getattr(target, own.name)
        if not own.is_repeated:
            inner.SetInParent()
        return copy_by_name(item, inner, f"{name}.")
    if field.enum_type is not None:
        if own.enum_type is None:
            return [Missing(name, f"{name} is of another kind")]
        word = field.enum_type.values_by_number[item].name
        if word not in own.enum_type.values_by_name:
            return [Missing(name, f"{name} has no value {word}")]
        item = own.enum_type.values_by_name[word].number
    try:
        if own.is_repeated:
            getattr(target, own.name).append(item)
        else:
            setattr(target, own.name, item)
    except (TypeError, ValueError):
        return [Missing(name, f"{name} cannot hold {item!r}")]
    return []
