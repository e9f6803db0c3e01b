"""Which layers of a text a net has: Caffe's rules of phase, level and stage."""

from __future__ import annotations

from typing import Any, NamedTuple

from google.protobuf.message import Message as Proto

from caffeforge.runtime.errors import FileError


class State(NamedTuple):
    """Which of a text's layers are wanted, as Caffe's NetState says it, in phase TEST.

    Attributes:
        level: for ``min_level`` and ``max_level`` of layers.
        stages: added to those of the text's own ``state``, as DIGITS's ``deploy``.
    """

    level: int = 0
    stages: tuple[str, ...] = ()


def included(layer: Proto, state: State) -> bool:
    """Tell whether a net in phase TEST and this state has the layer, by Caffe's rules."""
    include, exclude = get(layer, "include", ()), get(layer, "exclude", ())
    if include and exclude:
        raise FileError("a layer has both include and exclude rules, of which Caffe takes only one kind")
    if include:
        return any(_meets(rule, state) for rule in include)
    return not any(_meets(rule, state) for rule in exclude)


def _meets(rule: Proto, state: State) -> bool:
    stages = frozenset(state.stages)
    return (
        enum_name(rule, "phase") in ("", "TEST")
        and not (rule.HasField("min_level") and rule.min_level > state.level)  # type: ignore[attr-defined]
        and not (rule.HasField("max_level") and rule.max_level < state.level)  # type: ignore[attr-defined]
        and stages.issuperset(get(rule, "stage", ()))
        and stages.isdisjoint(get(rule, "not_stage", ()))
    )


def get(proto: Any, name: str, default: Any = None) -> Any:
    """Return a field of `proto`, `default` if its schema has no such field."""
    known = proto is not None and name in proto.DESCRIPTOR.fields_by_name
    return getattr(proto, name) if known else default


def enum_name(proto: Proto, name: str) -> str:
    """Return the value of an enum field by name, empty if it is not set or not in the schema."""
    field = proto.DESCRIPTOR.fields_by_name.get(name)
    if field is None or field.enum_type is None or not proto.HasField(name):
        return ""
    return str(field.enum_type.values_by_number[getattr(proto, name)].name)
