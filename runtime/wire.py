"""Protobuf's wire format: typed messages to bytes, and a walker over the bytes of a mapped file.

Weights never pass through protobuf's own objects: writers put the heads that this module builds before
the arrays' own memory, and readers take from the walker where in the file an array lies.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from mmap import mmap
from typing import Any, Final, NamedTuple

from caffeforge.runtime.errors import FileError, GraphError
from caffeforge.runtime.message import Field, Message

Bytes = bytes | mmap

VARINT: Final = 0
FIXED64: Final = 1
LENGTH: Final = 2  # strings, bytes, messages, packed numbers
FIXED32: Final = 5

INTEGER_BITS: Final = {
    "int32": 32, "sint32": 32, "sfixed32": 32, "uint32": 32, "fixed32": 32,
    "int64": 64, "sint64": 64, "sfixed64": 64, "uint64": 64, "fixed64": 64,
}  # fmt: skip
_FIXED: Final = {
    "float": (FIXED32, "<f"), "fixed32": (FIXED32, "<I"), "sfixed32": (FIXED32, "<i"),
    "double": (FIXED64, "<d"), "fixed64": (FIXED64, "<Q"), "sfixed64": (FIXED64, "<q"),
}  # fmt: skip
_VARINTS: Final = frozenset({"int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool", "enum"})
_FLOAT32_END: Final = 2.0**128 - 2.0**103  # the least double that rounds to infinity


class Malformed(FileError):
    """Bytes that are no protobuf message; `offset` is where in the file they stop being one."""

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(f"{what} at byte {offset}")
        self.offset = offset


class Piece(NamedTuple):
    """One field of an encoded message.

    Attributes:
        at: offset of its tag.
        value: the number of a VARINT field, else 0.
        start: offset of its payload.
        stop: offset of what follows it.
    """

    number: int
    wire: int
    value: int
    at: int
    start: int
    stop: int


def varint(number: int) -> bytes:
    """Encode an integer from 0 to 2^64 - 1."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def tag(number: int, wire: int) -> bytes:
    """Encode what stands before the payload of field `number`."""
    return varint(number << 3 | wire)


def head(number: int, length: int) -> bytes:
    """Encode what stands before a payload of `length` bytes: the tag and the length."""
    return tag(number, LENGTH) + varint(length)


def string(number: int, text: str) -> bytes:
    """Encode a string field."""
    raw = text.encode()
    return head(number, len(raw)) + raw


def encode(message: Message) -> bytes:
    """Encode a message, its fields in the order of their numbers, as protobuf does.

    Raises:
        GraphError: a value has no place in its field.
    """
    present = sorted(message.present(), key=lambda item: item[0].number)
    return b"".join(encode_field(field, value) for field, value in present)


def encode_field(field: Field, value: Any) -> bytes:
    """Encode one field that is set; a repeated one from its tuple.

    Raises:
        GraphError: the value has no place in the field.
    """
    if field.label != "repeated":
        return _tagged(field, value)
    if field.packed:
        payload = b"".join(_scalar(field, item) for item in value)
        return head(field.number, len(payload)) + payload
    return b"".join(_tagged(field, item) for item in value)


def check(field: Field, value: Any) -> None:
    """Refuse a value that its field cannot hold: an integer or float out of range, an unknown enum name.

    Raises:
        GraphError: naming the field and the value.
    """
    bits = INTEGER_BITS.get(field.kind)
    if bits:
        low, high = (0, 2**bits - 1) if field.kind[0] in "uf" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        fits = isinstance(value, int) and low <= value <= high
    elif field.kind == "enum":
        fits = value in field.type
    elif field.kind == "float":
        fits = not math.isfinite(value) or abs(value) < _FLOAT32_END
    else:
        return
    if not fits:
        kind = "/".join(field.type) if field.kind == "enum" else field.kind
        raise GraphError(f"field {field.name} ({kind}) cannot hold {value!r}")


def _tagged(field: Field, value: Any) -> bytes:
    if field.kind == "message":
        raw = encode(value)
    elif field.kind == "string":
        raw = value.encode()
    elif field.kind == "bytes":
        raw = bytes(value)
    else:
        wire = _FIXED[field.kind][0] if field.kind in _FIXED else VARINT
        return tag(field.number, wire) + _scalar(field, value)
    return head(field.number, len(raw)) + raw


def _scalar(field: Field, value: Any) -> bytes:
    """Encode a number, a bool or an enum value, without its tag."""
    check(field, value)
    if field.kind in _FIXED:
        return struct.pack(_FIXED[field.kind][1], value)
    if field.kind not in _VARINTS:
        raise GraphError(f"field {field.name} has kind {field.kind}, which has no wire form here")
    if field.kind == "enum":
        number = field.type[value]
    elif field.kind in ("sint32", "sint64"):
        number = value * 2 if value >= 0 else -value * 2 - 1  # zigzag: 0, -1, 1, -2 ... as 0, 1, 2, 3 ...
    else:
        number = int(value)
    return varint(number & 0xFFFFFFFFFFFFFFFF)  # a negative number as its 64-bit two's complement


def read_varint(data: Bytes, start: int, stop: int) -> tuple[int, int]:
    """Return the number at `start` and the offset behind it.

    Raises:
        Malformed: it does not end before `stop`, or is longer than ten bytes.
    """
    number = shift = 0
    at = start
    while True:
        if at >= stop or shift > 63:
            raise Malformed("a varint does not end", start)
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFFFFFFFFFFFFFF, at
        shift += 7


def read_field(data: Bytes, at: int, end: int) -> Piece:
    """Return the field whose tag stands at `at`, within a message that ends at `end`.

    Raises:
        Malformed: what stands there is no field, or it runs past its message.
    """
    key, start = read_varint(data, at, end)
    number, wire = key >> 3, key & 7
    if not 0 < number < 1 << 29:
        raise Malformed(f"field number {number}", at)
    if wire == VARINT:
        value, stop = read_varint(data, start, end)
        return Piece(number, wire, value, at, start, stop)
    if wire == LENGTH:
        size, start = read_varint(data, start, end)
    elif wire in (FIXED32, FIXED64):
        size = 4 if wire == FIXED32 else 8
    else:
        raise Malformed(f"field {number} has wire type {wire}", at)
    if start + size > end:
        raise Malformed(f"field {number} of {size} bytes runs past its message", at)
    return Piece(number, wire, 0, at, start, start + size)


def walk(data: Bytes, start: int, stop: int) -> Iterator[Piece]:
    """Yield the fields of the message ``data[start:stop]`` in the order in which they stand.

    Raises:
        Malformed: the bytes are no message.
    """
    while start < stop:
        piece = read_field(data, start, stop)
        yield piece
        start = piece.stop
