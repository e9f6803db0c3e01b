"""A caffemodel without its prototxt, read by the field numbers of a dialect that the user names.

The file itself does not tell its dialect: what one calls ``round_mode: FLOOR`` another reads as
``ceil_mode: true``, from the same bytes. `identify` tells where dialects differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from caffeforge.runtime.backend import Backend
from caffeforge.runtime.caffemodel_reader import mapped
from caffeforge.runtime.errors import FileError, joined
from caffeforge.runtime.file_kind import BINARY, refuse_other
from caffeforge.runtime.joining import join
from caffeforge.runtime.net import Net
from caffeforge.runtime.private_pool import PrivatePool, unknown
from caffeforge.runtime.prototxt_reader import Prototxt, Source, read_proto
from caffeforge.runtime.wire import LENGTH, Bytes, Malformed, Piece, head, walk


@dataclass(frozen=True)
class _Layers(Source):
    """Stands for the text that a caffemodel alone does not have: places are layers by index."""

    def place(self, word: str, index: int) -> str:
        return f"{self.name}: {word} {index}"

    def line(self, word: str, index: int) -> str:
        return self.place(word, index)


def read_alone(path: Path, backend: Backend) -> Net:
    """Read a net from its caffemodel alone, parameters included.

    Raises:
        FileError: the file is no caffemodel, or holds what the dialect does not know.
    """
    refuse_other(path, "caffemodel", frozenset({BINARY}))
    return join(_read_parameters(path, backend), path, backend, compare=False)


def _read_parameters(path: Path, backend: Backend) -> Prototxt:
    pool = PrivatePool(backend)
    proto = pool.message("NetParameter")()
    try:
        proto.ParseFromString(_without_blobs(mapped(path), backend, pool))
    except DecodeError:
        raise FileError(f"the file cannot be decoded as {backend.name} has it", where=str(path)) from None
    except FileError as fault:
        fault.where = str(path)
        if isinstance(fault, Malformed):
            fault.what = f"this is no caffemodel, or a damaged one: {fault.what}"
        raise
    problems = [FileError(sentence, where=str(path)) for sentence in _foreign(proto, backend)]
    if problems:
        error = joined(problems, str(path))
        error.hint = f"the caffemodel was written in another dialect than {backend.name}"
        raise error
    _forget_phases(proto)
    words = "layers" if _is_old(proto) else "layer"
    text = f"{words} {{}}\n" * len(getattr(proto, words))
    return read_proto(proto, backend, pool, _Layers(text, str(path)))


def _forget_phases(proto: Any) -> None:
    """Remove what chose the layers of the net that was saved: the file holds just those chosen."""
    for layer in getattr(proto, "layers" if _is_old(proto) else "layer"):
        for name in ("phase", "include", "exclude"):
            if name in layer.DESCRIPTOR.fields_by_name:
                layer.ClearField(name)


def _is_old(proto: Any) -> bool:
    return "layers" in proto.DESCRIPTOR.fields_by_name and bool(proto.layers)


def _foreign(proto: Any, backend: Backend) -> Iterator[str]:
    """Yield what the schema does not know, layer by layer."""
    for layer in getattr(proto, "layers" if _is_old(proto) else "layer"):
        found = sorted(set(unknown(layer)))
        if found:
            yield f"layer {layer.name} has {', '.join(found)}, unknown to {backend.name}"


def _without_blobs(data: Bytes, backend: Backend, pool: PrivatePool) -> bytes:
    """Return the NetParameter without the weights, which protobuf need not see."""
    old = pool.field_number("NetParameter", "layers")
    blobs = {backend.skeleton.net_layer: backend.skeleton.layer_blobs}
    if old:
        blobs[old] = pool.field_number("V1LayerParameter", "blobs")
    result = bytearray()
    for piece in walk(data, 0, len(data)):
        if piece.number in blobs and piece.wire == LENGTH:
            inner = _layer_without(data, piece, blobs[piece.number])
            result += head(piece.number, len(inner)) + inner
        else:
            result += data[piece.at : piece.stop]
    return bytes(result)


def _layer_without(data: Bytes, outer: Piece, blobs: int) -> bytes:
    pieces = (piece for piece in walk(data, outer.start, outer.stop) if piece.number != blobs)
    return b"".join(data[piece.at : piece.stop] for piece in pieces)
