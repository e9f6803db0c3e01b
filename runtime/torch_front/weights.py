"""Weights of a traced program as lazy arrays over the module's own memory."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final

import numpy as np
import torch

from caffeforge.runtime.array import Array, Full, NDArray
from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.graph import Value, constant

_DTYPES: Final = {
    torch.float32: "float32",
    torch.float64: "float64",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.int64: "int64",
    torch.int32: "int32",
    torch.int16: "int16",
    torch.int8: "int8",
    torch.uint8: "uint8",
    torch.bool: "bool",
}

_TORCH_DTYPES: Final = {name: dtype for dtype, name in _DTYPES.items()}


def dtype_name(dtype: torch.dtype) -> str:
    """Return the hub's name of an element type.

    Raises:
        FrontEndError: the hub has none.
    """
    if dtype not in _DTYPES:
        raise FrontEndError(f"{dtype} has no place in the hub")
    return _DTYPES[dtype]


class TorchArray(Array):
    """A tensor's elements; in place where they are row-major on the CPU, else brought over slab by slab."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: torch.Tensor) -> None:
        super().__init__(tensor.shape, dtype_name(tensor.dtype))
        self.tensor = tensor.detach().resolve_neg()

    def rows(self, start: int, stop: int) -> NDArray:
        tensor = self.tensor if self.shape else self.tensor.reshape(1)
        return _numpy(tensor[start:stop])

    def numpy(self) -> NDArray:
        return _numpy(self.tensor)

    def _in_place(self, dtype: str) -> NDArray | None:
        same = dtype == self.dtype and self.dtype != "bfloat16"
        return self.tensor.numpy() if same and self.tensor.is_cpu and self.tensor.is_contiguous() else None


def converted(array: Array, dtype: str) -> Array:
    """Return the elements of `array` in another element type, as PyTorch converts them."""
    if isinstance(array, Full) and dtype != "bfloat16":
        kind = {"b": bool, "i": int, "u": int, "f": float}[np.dtype(dtype).kind]
        return Full(array.shape, kind(array.value), dtype)
    return TorchArray(tensor_of(array).to(_TORCH_DTYPES[dtype]))


def tensor_of(array: Array) -> torch.Tensor:
    """Return the elements of `array` as a tensor; where they are PyTorch's own memory, that memory."""
    if isinstance(array, TorchArray):
        return array.tensor
    return torch.from_numpy(np.array(array.numpy(), order="C")).to(_TORCH_DTYPES[array.dtype])


class Weights:
    """The constants of one program: tied tensors, the same memory read in the same way, become one value.

    Args:
        named: the model's tensors by name, in its own order; of tied ones the first name stays.
    """

    def __init__(self, named: Mapping[str, torch.Tensor]) -> None:
        self._values: dict[Hashable, Value] = {}
        self._names: dict[Hashable, str] = {}
        for name, tensor in named.items():
            self._names.setdefault(_memory(tensor), name)

    def value(self, tensor: torch.Tensor) -> Value:
        """Return the constant that holds `tensor`, without a name if it is none of the model's own.

        Raises:
            FrontEndError: the tensor is no plain array of a type that the hub has.
        """
        memory = _memory(tensor)
        name = self._names.get(memory, "")
        if tensor.layout is not torch.strided or tensor.is_quantized:
            kind = "quantized" if tensor.is_quantized else str(tensor.layout).removeprefix("torch.")
            raise FrontEndError(f"weight {name or 'computed in forward()'} is {kind}", hint="make it dense")
        if memory not in self._values:
            self._values[memory] = constant(name, TorchArray(tensor))
        return self._values[memory]


def _memory(tensor: torch.Tensor) -> Hashable:
    """Return a key that tensors share if they are the same memory read in the same way.

    The tensors are alive as long as the keys are used, so an address is not used again.
    """
    if tensor.layout is not torch.strided or not tensor.numel():
        return tensor  # tensors are hashed by identity
    return tensor.data_ptr(), tensor.dtype, tensor.device, tensor.shape, tensor.stride()


def _numpy(tensor: torch.Tensor) -> NDArray:
    tensor = tensor.cpu()
    array: NDArray = (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy()
    return array
