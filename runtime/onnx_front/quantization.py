"""The arithmetic of QuantizeLinear and DequantizeLinear on constants, and which numbers they can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from onnx import NodeProto, helper

from caffeforge.runtime.array import NDArray

DOMAINS: Final = (
    "",
    "ai.onnx",
    "com.microsoft",
)  # onnxruntime's own domain holds the same ops for more types
_NARROW: Final = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}  # least and most


@dataclass(frozen=True)
class Quantization:
    """How numbers are held by small integers q: each is ``(q - zero) * scale``.

    Attributes:
        scale: a scalar, one number for each index along ``axis``, or a tensor of one number for each block.
        zero: of ``scale``'s shape; its type is that of the integers.
        axis: along which scales differ.
        block: how many neighbours along ``axis`` share a scale; 0 if there are no blocks.
    """

    scale: NDArray
    zero: NDArray
    axis: int
    block: int

    def same(self, other: Quantization) -> bool:
        """Tell whether two are the same, so that one undoes what the other does."""
        apart = self.scale.ndim > 0 and (self.axis, self.block) != (other.axis, other.block)
        return (
            not apart
            and self.scale.dtype == other.scale.dtype
            and np.array_equal(self.scale, other.scale)
            and self.zero.dtype == other.zero.dtype
            and np.array_equal(self.zero, other.zero)
        )

    def is_whole(self) -> bool:
        """Tell whether the integers are whole numbers, not small floats."""
        return self.zero.dtype.kind in "iu" or self.zero.dtype.name in _NARROW

    def quantized(self, numbers: NDArray) -> NDArray:
        """Return the integers nearest to `numbers`, even ones where two are."""
        scale, zero = self._spread(numbers)
        least, most = _limits(self.zero.dtype)
        found: NDArray = np.rint(numbers.astype(np.float32) / scale.astype(np.float32)) + zero.astype(
            np.float32
        )
        return np.clip(found, least, most).astype(self.zero.dtype)

    def dequantized(self, integers: NDArray) -> NDArray:
        """Return the numbers that `integers` stand for, of the scale's type."""
        scale, zero = self._spread(integers)
        found = (integers.astype(np.float32) - zero.astype(np.float32)) * scale.astype(np.float32)
        return found.astype(self.scale.dtype)

    def top(self) -> float | None:
        """Return the largest number that is held, if 0 is the least and all have one scale; else None.

        Quantizers write such a range behind a Relu, and leave out the Relu: saturating does its work.
        """
        if self.scale.ndim or not self.is_whole():
            return None
        least, most = _limits(self.zero.dtype)
        return (most - least) * float(self.scale) if int(self.zero) == least else None

    def _spread(self, numbers: NDArray) -> tuple[NDArray, NDArray]:
        """Return scale and zero in a shape that broadcasts to that of `numbers`."""
        if self.scale.ndim == 0:
            return self.scale, self.zero
        axis = self.axis % numbers.ndim
        if not self.block:
            shape = [1] * numbers.ndim
            shape[axis] = self.scale.size
            return self.scale.reshape(shape), self.zero.reshape(shape)
        kept = np.arange(numbers.shape[axis])
        scale, zero = (np.repeat(a, self.block, axis).take(kept, axis) for a in (self.scale, self.zero))
        return scale, zero


def _limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the least and the greatest number of a type of whole numbers."""
    if dtype.name in _NARROW:
        return _NARROW[dtype.name]
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def quantization(node: NodeProto, constants: Mapping[str, NDArray], integers: Any) -> Quantization | None:
    """Return the parameters of a QuantizeLinear or DequantizeLinear; None if they are computed.

    Args:
        node: of either op.
        constants: arrays by name.
        integers: the dtype of the integers where the node has no zero point.
    """
    given = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    names = [name for name in node.input[1:] if name]
    if any(name not in constants for name in names):
        return None
    scale = constants[names[0]]
    if len(names) > 1:
        zero = constants[names[1]]
    else:
        wanted = given.get("output_dtype", 0) if node.op_type == "QuantizeLinear" else 0
        zero = np.zeros(scale.shape, helper.tensor_dtype_to_np_dtype(wanted) if wanted else integers)
    if scale.size == 1 and not given.get("block_size"):
        scale, zero = scale.reshape(()), zero.reshape(())
    return Quantization(scale, zero, given.get("axis", 1), given.get("block_size", 0))
