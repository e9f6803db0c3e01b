"""A Net's weights as a caffemodel: written in wire format straight from where the arrays lie.

Lengths are summed bottom-up from the arrays' shapes, so only heads are ever built; the floats go from
the source's memory to the file. `caffemodel_reader` is the way back.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import RawIOBase
from pathlib import Path
from typing import Final, NamedTuple

from caffeforge.runtime.array import Array
from caffeforge.runtime.backend import Backend, Skeleton
from caffeforge.runtime.errors import FileError, GraphError
from caffeforge.runtime.net import Layer, Net
from caffeforge.runtime.wire import encode, encode_field, head, string, varint

LARGEST: Final = 2**31 - 1  # bytes; protobuf, and so every Caffe, reads no more
# Bytes a write. For larger ones the kernel takes its page cache in blocks of 2 MiB, and on virtual machines
# that give free memory back, just these are gone: the first large file was then written at 0.5 GB/s, not 4.
PIECE: Final = 1 << 20


class _Blob(NamedTuple):
    """A blob about to be written: what stands before its floats, and the array that holds them."""

    head: bytes
    array: Array


_Part = bytes | _Blob


def write(net: Net, backend: Backend, path: Path) -> int:
    """Write a net's names, types, parameters and weights; return the number of bytes.

    Weights are written as float32, whatever their dtype: `casts` tells which are not. A layer that borrows
    another one's is left out.

    Raises:
        FileError: the file would be larger than protobuf reads; nothing is written.
        GraphError: a value has no place in its field, or a weight none in float32.
        OSError: the file cannot be written.
    """
    skeleton = backend.skeleton
    start = string(skeleton.net_name, net.name)
    own = [layer for layer in net.layers if not layer.borrows]
    layers = [_layer_parts(layer, skeleton) for layer in own]
    sizes = [sum(map(_length, parts)) for parts in layers]
    total = len(start) + sum(len(head(skeleton.net_layer, size)) + size for size in sizes)
    if total > LARGEST:
        raise FileError(
            f"the caffemodel would take {total:,} bytes, and protobuf reads no more than {LARGEST:,}",
            where=net.name,
            hint="split the net in two, or export to ONNX, which keeps large weights beside the model",
        )
    with open(path, "wb", buffering=0) as file:
        pending = bytearray(start)
        for layer, parts, size in zip(own, layers, sizes, strict=True):
            pending += head(skeleton.net_layer, size)
            for part in parts:
                if isinstance(part, bytes):
                    pending += part
                else:
                    _put(file, pending + part.head)
                    pending = bytearray()
                    _put_floats(file, part.array, layer)
        _put(file, pending)
    return total


def casts(net: Net) -> list[str]:
    """Name the weights that are written as float32 though they are something else, one sentence each."""
    return [
        f"blob {index} of layer {layer.name} is {blob.dtype} and is written as float32"
        for layer in net.layers
        for index, blob in enumerate(layer.blobs)
        if blob.dtype != "float32"
    ]


def _layer_parts(layer: Layer, skeleton: Skeleton) -> list[_Part]:
    """Return the LayerParameter in pieces, its fields in the order of their numbers."""
    fields: list[tuple[int, _Part]] = [
        (skeleton.layer_name, string(skeleton.layer_name, layer.name)),
        (skeleton.layer_type, string(skeleton.layer_type, layer.type)),
    ]
    fields += [(skeleton.layer_bottom, string(skeleton.layer_bottom, name)) for name in layer.bottoms]
    fields += [(skeleton.layer_top, string(skeleton.layer_top, name)) for name in layer.tops]
    fields += [(skeleton.layer_blobs, _blob(blob, skeleton)) for blob in layer.blobs]
    try:
        fields += _parameter_parts(layer)
    except GraphError as error:
        error.where = f"layer {layer.name}"
        raise
    return [part for _, part in sorted(fields, key=lambda item: item[0])]


def _parameter_parts(layer: Layer) -> Iterator[tuple[int, _Part]]:
    outer = layer.param.PARAM
    if outer is None:
        for field, value in layer.param.present():
            yield field.number, encode_field(field, value)
    elif any(layer.param.present()):
        raw = encode(layer.param)
        yield outer.number, head(outer.number, len(raw)) + raw


def _blob(array: Array, skeleton: Skeleton) -> _Blob:
    """Return a BlobProto, from its own tag to the head of its packed floats; a scalar has an empty shape."""
    dims = b"".join(map(varint, array.shape))
    shape = head(skeleton.shape_dim, len(dims)) + dims if dims else b""
    start = head(skeleton.blob_shape, len(shape)) + shape
    if array.size:
        start += head(skeleton.blob_data, 4 * array.size)
    return _Blob(head(skeleton.layer_blobs, len(start) + 4 * array.size) + start, array)


def _length(part: _Part) -> int:
    return len(part) if isinstance(part, bytes) else len(part.head) + 4 * part.array.size


def _put_floats(file: RawIOBase, array: Array, layer: Layer) -> None:
    written = 0
    try:
        for block in array.blocks("float32"):
            _put(file, block)
            written += len(block)
    except GraphError as error:
        error.where = error.where or f"layer {layer.name}"
        raise
    if written != 4 * array.size:  # the heads before it would be wrong
        raise GraphError(f"{array!r} gave {written} bytes of float32", where=f"layer {layer.name}")


def _put(file: RawIOBase, data: bytearray | memoryview) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest[:PIECE]) :]
