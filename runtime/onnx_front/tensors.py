"""Tensors of a model as lazy arrays: raw, typed, packed, sparse, or in the mapped bytes of a file."""

from __future__ import annotations

import math
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import SparseTensorProto, TensorProto, helper

from caffeforge.runtime.array import Array, Dense, NDArray
from caffeforge.runtime.errors import FileError, FrontEndError
from caffeforge.runtime.onnx_front.model_file import ModelFile
from caffeforge.runtime.onnx_front.stripped import ITSELF
from caffeforge.runtime.onnx_node import DTYPES, PACKED
from caffeforge.runtime.wire import Bytes

_LARGEST = 4 << 30  # bytes of a sparse tensor with its zeros


class Tensors:
    """Reads the tensors of one model; files of external data are mapped once."""

    def __init__(self, file: ModelFile) -> None:
        self.file = file
        self._mapped: dict[Path, Bytes] = {}

    def array(self, proto: TensorProto) -> Array:
        """Return a tensor as an array, a view of the file where its elements lie there as NumPy has them.

        Raises:
            FrontEndError: it is of no type, or does not hold the elements that its shape asks for.
            FileError: its external data cannot be read.
        """
        where = f"tensor {proto.name}" if proto.name else "a tensor"
        if proto.data_type == TensorProto.UNDEFINED:
            raise FrontEndError("it holds elements of no type", where=where)
        if proto.data_type not in TensorProto.DataType.values():
            raise FrontEndError(f"its elements are of an unknown type, {proto.data_type}", where=where)
        if any(size < 0 for size in proto.dims):
            raise FrontEndError(f"its shape {list(proto.dims)} has a negative size", where=where)
        try:
            if proto.data_location == TensorProto.EXTERNAL:
                return Dense(self._external(proto))
            return Dense(onnx.numpy_helper.to_array(proto))
        except (ValueError, TypeError) as error:
            what = f"it does not hold {list(proto.dims)} elements of its type: {error}"
            raise FrontEndError(what, where=where) from None

    def sparse(self, proto: SparseTensorProto) -> Array:
        """Return a sparse tensor with its zeros; its indices are linear or one row an element.

        Raises:
            FrontEndError: an index lies outside the tensor, or it is too large to be written out.
        """
        values = self.array(proto.values).numpy()
        indices = self.array(proto.indices).numpy()
        shape = tuple(proto.dims)
        where = f"tensor {proto.values.name}"
        limits = np.array(shape if indices.ndim == 2 else math.prod(shape))
        if (indices < 0).any() or (indices >= limits).any() or len(indices) != len(values):
            raise FrontEndError(f"its indices do not lie in its shape {list(shape)}", where=where)
        if math.prod(shape) * values.itemsize > _LARGEST:
            raise FrontEndError(f"with its zeros it is too large: {list(shape)}", where=where)
        dense = np.zeros(shape, values.dtype)
        if indices.ndim == 2:
            dense[tuple(indices.T)] = values
        else:
            dense.reshape(-1)[indices] = values
        return Dense(dense)

    def _external(self, proto: TensorProto) -> NDArray:
        entries = {entry.key: entry.value for entry in proto.external_data}
        data = self._bytes(entries.get("location", ""), proto.name)
        offset = int(entries.get("offset", 0))
        dtype: np.dtype[Any] = helper.tensor_dtype_to_np_dtype(proto.data_type)
        count = int(np.prod(proto.dims, dtype=np.int64))
        packed = PACKED.get(DTYPES[proto.data_type])
        size = -(-count * packed // 8) if packed else count * dtype.itemsize
        length = int(entries.get("length", size))
        if offset + length > len(data) or length < size:
            raise FileError(
                f"tensor {proto.name} wants bytes {offset} to {offset + max(size, length)} of its data file, "
                f"which has {len(data)} and gives it {length}",
                where=self.file.name,
                hint="the file of external data is not the one that was written with the model",
            )
        if packed:
            copy = TensorProto(data_type=proto.data_type, dims=proto.dims, name=proto.name)
            copy.raw_data = bytes(data[offset : offset + length])
            return onnx.numpy_helper.to_array(copy)
        if proto.data_type == TensorProto.FLOAT16 and entries.get("location") == ITSELF and length != size:
            raise ValueError(f"{length} bytes for {count} elements")
        found = np.frombuffer(data, dtype.newbyteorder("<"), count, offset)
        return found.view(dtype).reshape(tuple(proto.dims))

    def _bytes(self, location: str, tensor: str) -> Bytes:
        if location == ITSELF and self.file.data is not None:
            return self.file.data
        path = (self.file.folder / location).resolve()
        if not path.is_relative_to(self.file.folder.resolve()):
            raise FileError(
                f"tensor {tensor} lies in {location}, outside the model's folder", where=self.file.name
            )
        if path not in self._mapped:
            try:
                with open(path, "rb") as file:
                    self._mapped[path] = mmap(file.fileno(), 0, access=ACCESS_READ)
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or "it is empty"
                raise FileError(
                    f"tensor {tensor} lies in {location}, which cannot be read: {reason}",
                    where=self.file.name,
                    hint="external data must stand beside the model",
                ) from None
        return self._mapped[path]
