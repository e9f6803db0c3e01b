"""A serialized model without its large tensors: they stay where they lie in the file, and are referred to.

Protobuf would copy every weight. So the bytes of raw data, and of packed float and double data, are cut out
of the message before it is parsed; in their place stands a reference, in the form of external data, to the
file's own bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from secrets import token_hex
from typing import Final

from onnx import StringStringEntryProto, TensorProto

from caffeforge.runtime.wire import LENGTH, Bytes, Piece, head, walk

# The location that stands for the file itself; no file can name it.
ITSELF: Final = f"itself:{token_hex(16)}"

LARGE: Final = 4096  # bytes

# Which fields of a message lead to tensors, as ``onnx.proto`` numbers them.
_INNER: Final[dict[str, dict[int, str]]] = {
    "Model": {7: "Graph", 25: "Function"},
    "Graph": {1: "Node", 5: "Tensor"},
    "Function": {7: "Node"},
    "Node": {5: "Attribute"},
    "Attribute": {5: "Tensor", 6: "Graph", 10: "Tensor", 11: "Graph"},
}
_DATA: Final = (4, 9, 10)  # float_data, raw_data, double_data


def stripped(data: Bytes) -> bytes:
    """Return the serialized ModelProto `data` without the bytes of its large tensors.

    Raises:
        Malformed: the bytes are no protobuf message.
    """
    return b"".join(_parts(data, 0, len(data), "Model"))


def _parts(data: Bytes, start: int, stop: int, kind: str) -> Iterator[bytes]:
    """Yield the fields of a message, runs of those that stay as they are in one piece."""
    kept = begin = start
    inner = _INNER.get(kind, {})
    for piece in walk(data, start, stop):
        end = piece.stop
        large = piece.wire == LENGTH and piece.stop - piece.start > LARGE
        if large and kind == "Tensor" and piece.number in _DATA:
            yield bytes(data[kept:begin])
            yield _reference(piece)
            kept = end
        elif large and piece.number in inner:
            yield bytes(data[kept:begin])
            body = b"".join(_parts(data, piece.start, piece.stop, inner[piece.number]))
            yield head(piece.number, len(body)) + body
            kept = end
        begin = end
    yield bytes(data[kept:stop])


def _reference(piece: Piece) -> bytes:
    """Return the fields of a TensorProto that say where its data lies."""
    entries = (("location", ITSELF), ("offset", str(piece.start)), ("length", str(piece.stop - piece.start)))
    return TensorProto(
        data_location=TensorProto.EXTERNAL,
        external_data=[StringStringEntryProto(key=key, value=value) for key, value in entries],
    ).SerializeToString()
