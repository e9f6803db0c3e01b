"""NumPy arrays as onnxruntime's values and back, for element types that NumPy lacks too."""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np
import onnxruntime

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.onnx_node import element_type, numpy_dtype

OrtValue = Any  # onnxruntime ships no types

# An entry of session options: float32 sums where weights have four bits, which by default are of 8 bits.
EXACT_BLOCKS: Final = ("session.qdq_matmulnbits_accuracy_level", "1")


def ort_value(array: NDArray, dtype: str) -> OrtValue:
    """Return `array` as an OrtValue; it is copied only if it is not row-major, native and of `dtype`.

    `dtype` is no text and not `PACKED`: onnxruntime takes two of these for one byte, NumPy has one a byte.
    """
    native = np.ascontiguousarray(array, numpy_dtype(dtype)).reshape(array.shape)
    if native.dtype.isbuiltin == 1:
        return onnxruntime.OrtValue.ortvalue_from_numpy(native)
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(native, element_type(dtype))


def elements(value: OrtValue, dtype: str) -> NDArray:
    """Return what an OrtValue on the CPU holds; `dtype` is not `PACKED`.

    onnxruntime gives no arrays of types that NumPy lacks, so their bytes are copied.
    """
    kind = numpy_dtype(dtype)
    if kind.isbuiltin == 1:
        found: NDArray = value.numpy()
        return found
    shape = tuple(value.shape())
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    data = ctypes.string_at(value.data_ptr(), size) if size else b""
    return np.frombuffer(data, kind).reshape(shape)


def give_back_memory() -> None:
    """Let the system have what onnxruntime freed when it made a session: by far more than it keeps."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of Linux's own C library
    if trim is not None:
        trim(0)
