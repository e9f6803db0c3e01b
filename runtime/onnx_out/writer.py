"""A model as an ONNX file: its weights go from where they lie to the file, piece by piece.

A model is its head, then its graph: nodes first, then each weight as the head of a tensor and its bytes.
Where protobuf could not read so large a file, or the user wants it, weights lie beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from io import RawIOBase
from pathlib import Path
from typing import Final, NamedTuple

from onnx import ModelProto, StringStringEntryProto, TensorProto

from caffeforge.runtime.array import Array
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.onnx_node import element_type, numpy_dtype, tensor
from caffeforge.runtime.wire import head

LARGEST: Final = 2**31 - 1  # bytes; protobuf reads no more
PIECE: Final = 1 << 20  # bytes a write: see caffemodel.PIECE
INSIDE: Final = 1024  # bytes of weights that lie in the model even if others lie beside it
ALIGNED: Final = 4096  # where weights beside the model begin, so that pages of them can be mapped
_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9  # numbers of fields


class _Weight(NamedTuple):
    """A weight about to be written: the bytes before its elements, and the array that holds them."""

    name: str
    head: bytes
    array: Array
    size: int


def write(model: ModelProto, weights: Mapping[str, Array], path: Path, external: bool | None) -> Path | None:
    """Write a model with its weights; return the file beside it, if there is one.

    Args:
        model: its graph holds no initializers.
        weights: arrays by name.
        path: the file.
        external: whether weights lie beside the model; None for where they are too large.

    Raises:
        GraphError: an array does not give the elements that its shape says.
        OSError: a file cannot be written.
    """
    inside = [_inside(name, array) for name, array in weights.items()]
    total = sum(len(weight.head) + weight.size for weight in inside) + model.ByteSize()
    beside = None
    movable = any(weight.size > INSIDE for weight in inside)
    if movable and (external or (external is None and total > LARGEST)):
        beside = path.with_name(f"{path.name}.data")
        with open(beside, "wb", buffering=0) as file:
            inside = list(_moved_out(inside, beside.name, file))
    graph = model.graph.SerializeToString(deterministic=True)
    outer = ModelProto()
    outer.CopyFrom(model)
    outer.ClearField("graph")
    size = len(graph) + sum(len(weight.head) + weight.size for weight in inside)
    with open(path, "wb", buffering=0) as file:
        _put(file, outer.SerializeToString(deterministic=True) + head(_GRAPH, size) + graph)
        for weight in inside:
            _put(file, weight.head)
            _put_elements(file, weight)
    return beside


def _inside(name: str, array: Array) -> _Weight:
    """Return a weight whose elements lie in the model."""
    size = _size(array)
    proto = TensorProto(data_type=element_type(array.dtype), dims=array.shape, name=name)
    own = proto.SerializeToString(deterministic=True) + head(_RAW_DATA, size)
    return _Weight(name, head(_INITIALIZER, len(own) + size) + own, array, size)


def _moved_out(weights: list[_Weight], location: str, file: RawIOBase) -> Iterator[_Weight]:
    """Write the elements of larger weights to `file`; yield all as they lie in the model then."""
    offset = 0
    for weight in weights:
        if weight.size <= INSIDE:
            yield weight
            continue
        _put(file, bytes(-offset % ALIGNED))
        offset += -offset % ALIGNED
        entries = {"location": location, "offset": str(offset), "length": str(weight.size)}
        proto = TensorProto(
            data_type=element_type(weight.array.dtype),
            dims=weight.array.shape,
            name=weight.name,
            data_location=TensorProto.EXTERNAL,
            external_data=[StringStringEntryProto(key=key, value=value) for key, value in entries.items()],
        ).SerializeToString(deterministic=True)
        _put_elements(file, weight)
        offset += weight.size
        yield _Weight(weight.name, head(_INITIALIZER, len(proto)) + proto, weight.array, 0)


def _size(array: Array) -> int:
    """Return how many bytes an array's elements take in a file."""
    if _is_packed(array.dtype):
        return len(tensor("", array.numpy(), array.dtype).raw_data)
    return array.size * numpy_dtype(array.dtype).itemsize


def _is_packed(dtype: str) -> bool:
    """Tell whether elements take less than a byte, or are of a type that NumPy does not know."""
    return dtype == "bfloat16" or dtype.startswith(("int4", "uint4", "int2", "uint2", "float4", "float8"))


def _put_elements(file: RawIOBase, weight: _Weight) -> None:
    if not weight.size:
        return
    if _is_packed(weight.array.dtype):
        _put(file, tensor("", weight.array.numpy(), weight.array.dtype).raw_data)
        return
    written = 0
    for block in weight.array.blocks(weight.array.dtype):
        _put(file, block)
        written += len(block)
    if written != weight.size:  # the heads before it would be wrong
        raise GraphError(f"{weight.array!r} gave {written} bytes of {weight.size}", where=weight.name)


def _put(file: RawIOBase, data: bytes | memoryview) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest[:PIECE]) :]
