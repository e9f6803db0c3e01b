"""A dialect's protobuf messages, in a descriptor pool of their own, and their way into typed classes.

Any number of dialects have a ``caffe.NetParameter``: each is kept apart from the others, and from an
installed Caffe, in the pool of a `PrivatePool`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeVar

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, unknown_fields
from google.protobuf.message import Message as Proto

from caffeforge.runtime.backend import Backend
from caffeforge.runtime.errors import FileError
from caffeforge.runtime.float32 import shortest
from caffeforge.runtime.message import Field, LayerParam, Message, field_name

M = TypeVar("M", bound=Message)


class PrivatePool:
    """The message classes that protobuf makes of one dialect's schema."""

    def __init__(self, backend: Backend) -> None:
        self._pool = _pool(backend.descriptor)
        self._prefix = f"{backend.package}." if backend.package else ""

    def message(self, name: str) -> type[Proto]:
        """Return the class of message `name`, which is its name within the package."""
        found = self._pool.FindMessageTypeByName(self._prefix + name)
        return message_factory.GetMessageClass(found)

    def field_name(self, message: str, number: int) -> str:
        """Return the name of field `number` of a message."""
        return str(self.message(message).DESCRIPTOR.fields_by_number[number].name)

    def field_number(self, message: str, name: str) -> int:
        """Return the number of field `name` of a message; 0, which no field has, if it has none."""
        found = self.message(message).DESCRIPTOR.fields_by_name.get(name)
        return int(found.number) if found is not None else 0


@lru_cache(maxsize=8)
def _pool(descriptor: Callable[[], bytes]) -> descriptor_pool.DescriptorPool:
    """Return the pool of a schema; protobuf makes its classes once for each pool."""
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptor()).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


def typed(cls: type[M], proto: Proto) -> M:
    """Return the fields of `proto` that are set as a typed message of class `cls`.

    Raises:
        FileError: a field is set that `cls` does not have.
    """
    fields = {field.name: field for field in cls.FIELDS}
    given = {}
    for descriptor, value in proto.ListFields():
        if descriptor.name not in fields:
            raise FileError(f"field {descriptor.full_name} is not one that {cls.__name__} has")
        given[field_name(descriptor.name)] = _typed_field(fields[descriptor.name], value)
    return cls(**given)


def typed_layer(cls: type[LayerParam], layer: Proto) -> LayerParam:
    """Return the parameters of a layer of class `cls`: what else the LayerParameter sets is left out."""
    if cls.PARAM is not None:
        has = layer.HasField(cls.PARAM.name)
        return typed(cls, getattr(layer, cls.PARAM.name)) if has else cls()
    fields = {field.name: field for field in cls.FIELDS}
    given = {
        field_name(descriptor.name): _typed_field(fields[descriptor.name], value)
        for descriptor, value in layer.ListFields()
        if descriptor.name in fields
    }
    return cls(**given)


def unknown(proto: Proto, path: str = "") -> Iterator[str]:
    """Yield, as dotted paths, what the schema does not know: field numbers, enum numbers, wire types."""
    known = {field.number: field.name for field in proto.DESCRIPTOR.fields}
    # The stubs do not know that the set can be iterated.
    for field in unknown_fields.UnknownFieldSet(proto):  # type: ignore[attr-defined]
        name = known.get(field.field_number)
        yield f"{path}{name} with an unknown value" if name else f"{path}field {field.field_number}"
    for descriptor, value in proto.ListFields():
        if descriptor.message_type is not None:
            for part in [value] if isinstance(value, Proto) else value:
                yield from unknown(part, f"{path}{descriptor.name}.")


def _typed_field(field: Field, value: Any) -> Any:
    if field.label == "repeated":
        return tuple(_typed_value(field, item) for item in value)
    return _typed_value(field, value)


def _typed_value(field: Field, value: Any) -> Any:
    if field.kind == "message":
        return typed(field.type, value)
    if field.kind == "enum":
        return next(name for name, number in field.type.items() if number == value)
    if field.kind == "float":
        return shortest(value)
    return value
