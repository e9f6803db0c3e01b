"""Reading elements at indices: gather, indexing by tensors, embeddings, one-hot."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from caffeforge.generated import hub
from caffeforge.runtime.array import Dense, NDArray
from caffeforge.runtime.graph import Value, constant
from caffeforge.runtime.torch_front.call import Call
from caffeforge.runtime.torch_front.layout import gathered, reshaped, sliced, transposed
from caffeforge.runtime.torch_front.registry import torch_op

aten = torch.ops.aten


@torch_op(aten.index.Tensor, aten._unsafe_index.Tensor)
def index(call: Call) -> Value:
    """Gather along one axis, or along several that are written as one.

    aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor
    aten::_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor
    """
    x = call.value("self")
    indices = index_lists(call, call.optional_values("indices"))
    axes = [axis for axis, given in enumerate(indices) if given is not None]
    given = [value for value in indices if value is not None]
    if len(axes) == 1:
        return gathered(call, x, given[0], axes[0])
    if axes != list(range(axes[0], axes[0] + len(axes))):  # then PyTorch puts the indices' axes first
        x = transposed(call, x, [*axes, *(axis for axis in range(x.rank) if axis not in axes)])
        axes = list(range(len(axes)))
    first, behind = axes[0], axes[-1] + 1
    sizes = x.shape[first:behind]
    flat = reshaped(call, x, (*x.dims[:first], math.prod(sizes), *x.dims[behind:]))
    return gathered(call, flat, linear_index(call, given, sizes), first)


@torch_op(aten.index_select.default)
def index_select(call: Call) -> Value:
    """Gather along an axis: aten::index_select(Tensor self, int dim, Tensor index) -> Tensor."""
    x, indices = call.value("self"), call.indices("index")
    if not x.rank:
        return x
    indices = indices if indices.rank else reshaped(call, indices, (1,))
    return gathered(call, x, indices, call.axis("dim", x.rank))


@torch_op(aten.take.default)
def take(call: Call) -> Value:
    """Gather from all elements in a row: aten::take(Tensor self, Tensor index) -> Tensor."""
    x = call.value("self")
    return gathered(call, reshaped(call, x, (math.prod(x.shape[:]),)), call.indices("index"), 0)


@torch_op(aten.gather.default)
def gather(call: Call) -> Value:
    """Gather element by element; of the other axes PyTorch reads as far as the indices go.

    aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor
    """
    x, indices = call.value("self"), call.indices("index")
    if not x.rank or not indices.rank:
        flat = reshaped(call, x, (math.prod(x.shape[:]),))
        return reshaped(call, gathered(call, flat, indices, 0), call.dims, kept=0)
    axis = call.axis("dim", x.rank)
    for other in range(x.rank):
        if other != axis:
            x = sliced(call, x, other, 0, indices.dims[other])
    return call.node(hub.GatherElements(axis=axis), x, indices)


@torch_op(aten.embedding.default)
def embedding(call: Call) -> Value:
    """Gather rows of the table.

    aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False,
    bool sparse=False) -> Tensor
    """
    return gathered(call, call.value("weight"), call.indices("indices"), 0)


@torch_op(aten.one_hot.default)
def one_hot(call: Call) -> Value:
    """Lower as it is: aten::one_hot(Tensor self, int num_classes=-1) -> Tensor."""
    classes = call.argument("num_classes")
    if classes < 0:
        raise call.error("takes its size from the largest element", hint="give num_classes")
    values = constant("", Dense(np.array([0, 1], np.int64)))
    return call.node(hub.OneHot(axis=-1, depth=classes), call.indices("self"), None, values)


@torch_op(aten.as_strided.default, aten.as_strided_copy.default)
def as_strided(call: Call) -> Value:
    """Gather by the places that the strides name, which must be those of a row-major tensor.

    aten::as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)
    aten::as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor
    """
    x, places = call.value("self"), strided_places(call)
    return gathered(call, reshaped(call, x, (math.prod(x.shape[:]),)), constant("", Dense(places)), 0)


def strided_places(call: Call) -> NDArray:
    """Return the places in memory that a call's size, stride and offset name.

    Raises:
        FrontEndError: the argument's memory is no row of its elements.
    """
    source = call.example("self")
    if not source.is_contiguous() or source.storage_offset():
        raise call.error("looks at memory that its argument shows in another order", hint="index it instead")
    places = np.full((), call.argument("storage_offset") or 0, np.int64)
    for size, stride in zip(call.ints("size"), call.ints("stride"), strict=True):
        places = places[..., None] + np.arange(size) * stride
    return places


def index_lists(call: Call, indices: Sequence[Value | None]) -> list[Value | None]:
    """Return one index tensor an axis: a mask that is a constant becomes the places where it is true.

    Raises:
        FrontEndError: a mask is computed, so the size of the result depends on its elements.
    """
    lists: list[Value | None] = []
    for value in indices:
        if value is None or value.dtype not in ("bool", "uint8"):
            lists.append(value if value is None else call.cast(value, "int64"))
        elif value.data is None:
            raise call.error(
                "takes the elements where a mask is true: their number depends on the input",
                hint="use torch.where, or cut the model before with outputs_at",
            )
        else:
            lists += [constant("", Dense(places)) for places in np.nonzero(value.data.numpy())]
    return lists


def linear_index(call: Call, indices: Sequence[Value], sizes: Sequence[int]) -> Value:
    """Return the index into the axes of `sizes` written as one; indices below zero count from the end."""
    if all(value.data is not None for value in indices):
        arrays = [np.asarray(value.data.numpy()) % size for value, size in zip(indices, sizes, strict=True)]  # type: ignore[union-attr]
        flat = np.ravel_multi_index(np.broadcast_arrays(*arrays), tuple(sizes))
        return constant("", Dense(np.asarray(flat, np.int64)))
    total = counted_from_front(call, indices[0], sizes[0])
    for value, size in zip(indices[1:], sizes[1:], strict=True):
        scaled = call.pointwise(hub.Mul(), total, call.full((), size, "int64"))
        total = call.pointwise(hub.Add(), scaled, counted_from_front(call, value, size))
    return total


def counted_from_front(call: Call, indices: Value, size: int) -> Value:
    """Return `indices` with those below zero replaced by their count from the front."""
    if indices.data is not None:
        return constant("", Dense(np.asarray(indices.data.numpy() % size, np.int64)))
    negative = call.pointwise(hub.Less(), indices, call.full((), 0, "int64"), dtype="bool")
    wrapped = call.pointwise(hub.Add(), indices, call.full((), size, "int64"))
    return call.pointwise(hub.Where(), negative, wrapped, indices, dtype="int64")
