"""The base of the typed classes that the generator writes for a dialect's proto messages.

A field that is ``None`` (or an empty tuple, if repeated) is absent: proto2 presence is kept apart from
the default. Enum values are held by name. ``FIELDS`` tells writers and readers the wire form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, TypeVar

from caffeforge.runtime.op import python_name

T = TypeVar("T")


# What the classes of messages have or read besides their fields; the generator has the same list.
MEMBERS = frozenset(
    ("FIELDS", "Field", "PARAM", "TYPE", "bool", "bytes", "float", "int", "object", "present", "self", "set_")
) | frozenset(("str", "tuple"))


def field_name(name: str) -> str:
    """Return a proto field's name as an attribute: one that Python or the class uses has an underscore."""
    return f"{name}_" if name in MEMBERS else python_name(name)


def or_default(value: T | None, default: T) -> T:
    """Return a field's value, or what the schema says that it is where it is absent."""
    return default if value is None else value


class Field(NamedTuple):
    """One field of a message as the schema declares it.

    Attributes:
        kind: proto scalar name (``int32``, ``float``, ...), ``enum`` or ``message``.
        type: the enum's values by name, or the class of the message; None for scalars.
        default: the declared default, None if there is none; enum values by name.
    """

    name: str
    number: int
    kind: str
    label: str = "optional"
    packed: bool = False
    default: Any = None
    type: Any = None


class Message:
    """A frozen proto message; equal by value."""

    __slots__ = ()
    FIELDS: ClassVar[tuple[Field, ...]] = ()

    def present(self) -> Iterator[tuple[Field, Any]]:
        """Yield each field that is set, in declaration order; a repeated one as its tuple."""
        for field in self.FIELDS:
            value = getattr(self, field_name(field.name))
            if value is not None and value != ():
                yield field, value

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be set")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            getattr(self, field_name(f.name)) == getattr(other, field_name(f.name)) for f in self.FIELDS
        )

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, field_name(f.name)) for f in self.FIELDS)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{f.name}={v!r}' for f, v in self.present())})"


class LayerParam(Message):
    """The parameters of one layer type.

    ``PARAM`` is the field of LayerParameter that holds them; where it is None, ``FIELDS`` are fields of
    LayerParameter itself (a layer type with none, or with several parameter messages).
    """

    __slots__ = ()
    TYPE: ClassVar[str]
    PARAM: ClassVar[Field | None] = None


EnumTable = Mapping[str, int]
