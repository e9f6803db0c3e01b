"""A caffemodel as names, types and weights, by walking the wire format over the mapped file.

The weights stay in the file: arrays are views of it. The parameters of each layer are handed on as
bytes, since the dialect's schema alone does not tell whether they were written in that dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from caffeforge.runtime.array import Array, Dense, NDArray
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.errors import FileError
from caffeforge.runtime.legacy import v0_net
from caffeforge.runtime.legacy.v1_net import upgraded_layer
from caffeforge.runtime.private_pool import PrivatePool
from caffeforge.runtime.wire import (
    FIXED32,
    FIXED64,
    LENGTH,
    VARINT,
    Bytes,
    Malformed,
    Piece,
    head,
    read_field,
    read_varint,
    tag,
    walk,
)


@dataclass(frozen=True)
class SavedLayer:
    """One layer of a caffemodel.

    Attributes:
        blobs: views of the mapped file, float32 or float64.
        rest: the bytes of all other fields of the LayerParameter, in the order in which they stand.
    """

    name: str
    type: str
    bottoms: tuple[str, ...]
    tops: tuple[str, ...]
    blobs: tuple[Array, ...]
    rest: bytes


@dataclass(frozen=True)
class Caffemodel:
    """What a caffemodel says, in its order."""

    name: str
    layers: tuple[SavedLayer, ...]


def read(path: Path, backend: Backend, pool: PrivatePool | None = None) -> Caffemodel:
    """Read a caffemodel by the field numbers of a dialect.

    Raises:
        FileError: the file cannot be opened, is no caffemodel, or holds blobs that are not understood.
    """
    data = mapped(path)
    try:
        return _Walker(data, backend, pool or PrivatePool(backend)).model()
    except FileError as error:
        error.where = f"{path}: {error.where}" if error.where else str(path)
        if isinstance(error, Malformed):
            error.what = f"this is no caffemodel, or a damaged one: {error.what}"
        raise


def mapped(path: Path) -> mmap:
    """Return the bytes of a file without reading them.

    Raises:
        FileError: it cannot be opened, or is empty.
    """
    try:
        with open(path, "rb") as file:
            return mmap(file.fileno(), 0, access=ACCESS_READ)
    except ValueError:
        raise FileError("the file is empty", where=str(path)) from None
    except OSError as error:
        raise FileError(f"cannot read the file: {error.strerror}", where=str(path)) from error


class _Walker:
    """Walks over the bytes of one file."""

    def __init__(self, data: Bytes, backend: Backend, pool: PrivatePool) -> None:
        self.data = data
        self.skeleton = backend.skeleton
        number = pool.field_number
        self.old_layers = number("NetParameter", "layers")
        self.pool = pool
        self.legacy_dims = [number("BlobProto", name) for name in ("num", "channels", "height", "width")]
        self.gradients = {number("BlobProto", name) for name in ("diff", "double_diff")} - {0}

    def model(self) -> Caffemodel:
        name, layers, old = "", [], []
        for piece in walk(self.data, 0, len(self.data)):
            if piece.number == self.skeleton.net_name and piece.wire == LENGTH:
                name = self.text(piece)
            elif piece.number == self.skeleton.net_layer and piece.wire == LENGTH:
                layers.append(self.layer(piece))
            elif piece.number == self.old_layers and piece.wire == LENGTH:
                old.append(piece)
        layers += self.upgraded(old)
        if not layers:
            raise FileError("the file holds no layers, so it is no caffemodel of this dialect")
        return Caffemodel(name, tuple(layers))

    def layer(self, outer: Piece) -> SavedLayer:
        skeleton = self.skeleton
        texts: dict[int, list[str]] = {
            skeleton.layer_name: [],
            skeleton.layer_type: [],
            skeleton.layer_bottom: [],
            skeleton.layer_top: [],
        }
        saved, rest = [], bytearray()
        for piece in walk(self.data, outer.start, outer.stop):
            if piece.number in texts and piece.wire == LENGTH:
                texts[piece.number].append(self.text(piece))
            elif piece.number == skeleton.layer_blobs and piece.wire == LENGTH:
                saved.append(piece)
            else:
                rest += self.data[piece.at : piece.stop]
        name, kind, bottoms, tops = texts.values()
        title = name[-1] if name else ""
        blobs = tuple(self.blob(piece, f"blob {index} of layer {title}") for index, piece in enumerate(saved))
        return SavedLayer(title, kind[-1] if kind else "", tuple(bottoms), tuple(tops), blobs, bytes(rest))

    def upgraded(self, pieces: Sequence[Piece]) -> list[SavedLayer]:
        """Return layers of a format before 2015, upgraded."""
        if not pieces:
            return []
        found = [self.old_layer(piece) for piece in pieces]
        oldest = v0_net.is_v0([old for old, _ in found])
        unpadded = v0_net.without_padding([old for old, _ in found]) if oldest else None
        for fault in unpadded.faults.values() if unpadded is not None else ():
            raise fault
        layers = []
        for index, (given, saved) in enumerate(found):
            old = unpadded.layers.get(index) if unpadded is not None else given
            if old is None:
                continue
            today: Any = self.pool.message("LayerParameter")()
            (v0_net.upgrade if oldest else upgraded_layer)(old, today)
            ends = tuple(today.bottom), tuple(today.top)
            blobs = tuple(
                self.blob(piece, f"blob {i} of layer {today.name}") for i, piece in enumerate(saved)
            )
            name, kind = today.name, today.type
            for part in ("name", "type", "bottom", "top"):
                today.ClearField(part)
            layers.append(SavedLayer(name, kind, *ends, blobs, today.SerializeToString()))
        return layers

    def old_layer(self, outer: Piece) -> tuple[Any, list[Piece]]:
        """Return a layer of a format before 2015 without its blobs, and those."""
        kind: Any = (
            self.pool.message("NetParameter").DESCRIPTOR.fields_by_number[self.old_layers].message_type
        )
        if "type" not in kind.fields_by_name:
            raise FileError(
                "the caffemodel has its layers in `layers`, the format before 2015, unknown to this dialect",
                hint="upgrade it with Caffe's upgrade_net_proto_binary",
            )
        numbers = {field.name: field.number for field in kind.fields}
        oldest = kind.fields_by_name["layer"].message_type if "layer" in numbers else None
        saved, rest = [], bytearray()
        for piece in walk(self.data, outer.start, outer.stop):
            if piece.number == numbers["blobs"] and piece.wire == LENGTH:
                saved.append(piece)
            elif oldest is not None and piece.number == numbers["layer"] and piece.wire == LENGTH:
                inner, own = self.parted(piece, oldest.fields_by_name["blobs"].number)
                saved += own
                rest += head(piece.number, len(inner)) + inner
            else:
                rest += self.data[piece.at : piece.stop]
        old = self.pool.message(kind.full_name.rsplit(".", 1)[-1])()
        try:
            old.ParseFromString(bytes(rest))
        except DecodeError:
            raise Malformed("a layer of the format before 2015 cannot be decoded", outer.at) from None
        _refuse_broken_texts(old, outer.at)
        return old, saved

    def parted(self, outer: Piece, number: int) -> tuple[bytes, list[Piece]]:
        """Return the bytes of a message without the pieces of one field, and those."""
        pieces = list(walk(self.data, outer.start, outer.stop))
        own = [piece for piece in pieces if piece.number == number and piece.wire == LENGTH]
        rest = b"".join(self.data[piece.at : piece.stop] for piece in pieces if piece not in own)
        return rest, own

    def text(self, piece: Piece) -> str:
        try:
            text = self.data[piece.start : piece.stop].decode()
        except UnicodeDecodeError:
            raise Malformed("a name is not UTF-8", piece.start) from None
        if "\0" in text:
            raise Malformed("a name holds a zero byte", piece.start)
        return text

    def blob(self, outer: Piece, title: str) -> Array:
        skeleton = self.skeleton
        runs: dict[int, list[NDArray]] = {skeleton.blob_data: [], skeleton.blob_double_data: []}
        shape: tuple[int, ...] | None = None
        legacy: dict[int, int] = {}
        at, gradients = outer.start, False
        while at < outer.stop:
            piece = read_field(self.data, at, outer.stop)
            at = piece.stop
            if piece.number in runs:
                kind = "<f4" if piece.number == skeleton.blob_data else "<f8"
                run, at = self.numbers(piece, outer.stop, kind)
                runs[piece.number].append(run)
            elif piece.number == skeleton.blob_shape and piece.wire == LENGTH:
                shape = (shape or ()) + self.dims(piece)
            elif piece.number in self.legacy_dims and piece.wire == VARINT:
                legacy[piece.number] = _signed(piece.value)
            elif piece.number in self.gradients:
                gradients = True
            else:
                raise FileError(f"{title} has field {piece.number}, which is not known of blobs")
        if legacy:
            four = tuple(legacy.get(number, 0) for number in self.legacy_dims)
            if shape is not None and prod(shape) != prod(four):
                raise FileError(f"{title} has shape {list(shape)}, and {list(four)} in the older form")
            shape = four if shape is None else shape
        chosen = runs[skeleton.blob_double_data] or runs[skeleton.blob_data]  # as Caffe prefers
        return Dense(_shaped(chosen, shape or (), title, gradients))

    def numbers(self, piece: Piece, end: int, kind: str) -> tuple[NDArray, int]:
        """Return the run of numbers that begins with `piece`, and the offset behind it."""
        size = 4 if kind == "<f4" else 8
        if piece.wire == LENGTH:
            count, torn = divmod(piece.stop - piece.start, size)
            if torn:
                raise Malformed(f"packed numbers of {size} bytes do not fill their field", piece.at)
            return np.frombuffer(self.data, kind, count, piece.start), piece.stop
        if piece.wire != (FIXED32 if size == 4 else FIXED64):
            raise Malformed(f"field {piece.number} has wire type {piece.wire}", piece.at)
        # Not packed: each number has a tag of its own. Where a field begins with this tag, the next one
        # begins a tag and a number later, so the first other tag ends the run.
        mark = tag(piece.number, piece.wire)
        record = np.dtype([("tag", f"V{len(mark)}"), ("number", kind)])
        records = np.frombuffer(self.data, record, (end - piece.at) // record.itemsize, piece.at)
        others = np.flatnonzero(records["tag"] != np.void(mark))
        count = int(others[0]) if others.size else len(records)
        return records["number"][:count], piece.at + count * record.itemsize

    def dims(self, outer: Piece) -> tuple[int, ...]:
        dims = []
        for piece in walk(self.data, outer.start, outer.stop):
            if piece.number != self.skeleton.shape_dim:
                raise FileError(f"a blob's shape has field {piece.number}, which is not known")
            if piece.wire == VARINT:
                dims.append(_signed(piece.value))
                continue
            at = piece.start
            while piece.wire == LENGTH and at < piece.stop:
                dim, at = read_varint(self.data, at, piece.stop)
                dims.append(_signed(dim))
        return tuple(dims)


def _refuse_broken_texts(message: Any, at: int) -> None:
    """Refuse a message that holds strings which are not UTF-8: protobuf tells only when they are read.

    Raises:
        Malformed: with the offset of the layer that it is part of.
    """
    try:
        for field, value in message.ListFields():
            parts = value if field.is_repeated else [value]
            if field.type == field.TYPE_STRING and not all(isinstance(part, str) for part in parts):
                raise Malformed("a text is not UTF-8", at)
            for part in parts if field.message_type is not None else ():
                _refuse_broken_texts(part, at)
    except UnicodeDecodeError:
        raise Malformed("a text is not UTF-8", at) from None


def _shaped(runs: list[NDArray], shape: tuple[int, ...], title: str, gradients: bool) -> NDArray:
    """Return the numbers of a blob in its shape, a view where they lie in one run."""
    count = sum(run.size for run in runs)
    wanted = prod(shape)
    if not count and wanted and gradients:
        raise FileError(f"{title} holds gradients (diff) and no weights (data)")
    if count != wanted or min(shape, default=0) < 0:
        raise FileError(f"{title} has shape {list(shape)} and {count} elements")
    if len(runs) == 1:
        return runs[0].reshape(shape)
    return np.concatenate(runs).reshape(shape) if runs else np.empty(shape, np.float32)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
