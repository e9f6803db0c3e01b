"""Operators that give the same elements another shape or another order of axes."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from caffeforge.generated import hub
from caffeforge.runtime.graph import Value
from caffeforge.runtime.torch_front.call import Call, normalized
from caffeforge.runtime.torch_front.layout import reshaped, swapped, transposed
from caffeforge.runtime.torch_front.registry import torch_op

aten = torch.ops.aten


@torch_op(aten.flatten.using_ints)
def flatten(call: Call) -> Value:
    """Become Flatten if all axes but the batch's are joined, else a reshape.

    aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)
    """
    x = call.value("self")
    start, end = call.axis("start_dim", x.rank), call.axis("end_dim", x.rank)
    if x.rank > 2 and (start, end) == (1, x.rank - 1):
        return call.node(hub.Flatten(axis=1), x)
    return reshaped(call, x, call.dims, kept=start)


@torch_op(
    aten.view.default,
    aten.reshape.default,
    aten._unsafe_view.default,
    aten._reshape_copy.default,
    aten.view_copy.default,
    aten.reshape_as.default,
    aten.view_as.default,
)
def reshape(call: Call) -> Value:
    """Become a reshape; leading dimensions that stay equal are copied, so that the batch stays free.

    aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)
    aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)
    aten::_unsafe_view(Tensor self, SymInt[] size) -> Tensor
    aten::_reshape_copy(Tensor self, SymInt[] size) -> Tensor
    aten::view_copy(Tensor self, SymInt[] size) -> Tensor
    aten::reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)
    aten::view_as(Tensor(a) self, Tensor other) -> Tensor(a)
    """
    return reshaped(call, call.value("self"), call.dims)


@torch_op(aten.unflatten.int)
def unflatten(call: Call) -> Value:
    """Become a reshape.

    aten::unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)
    """
    x = call.value("self")
    return reshaped(call, x, call.dims, kept=call.axis("dim", x.rank))


@torch_op(aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims)
def squeeze(call: Call) -> Value:
    """Become a reshape.

    aten::squeeze(Tensor(a) self) -> Tensor(a)
    aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)
    aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)
    """
    x = call.value("self")
    axes = [normalized(axis, x.rank) for axis in call.ints("dim")] if call.has("dim") else range(x.rank)
    removed = [axis for axis in axes if x.rank and x.dims[axis] == 1]
    return reshaped(call, x, call.dims, kept=min(removed, default=x.rank))


@torch_op(aten.unsqueeze.default)
def unsqueeze(call: Call) -> Value:
    """Become a reshape.

    aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)
    """
    return reshaped(call, call.value("self"), call.dims, kept=call.axis("dim", len(call.dims)))


@torch_op(aten.permute.default, aten.permute_copy.default)
def permute(call: Call) -> Value:
    """Become a transpose.

    aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)
    aten::permute_copy(Tensor self, int[] dims) -> Tensor
    """
    rank = len(call.dims)
    return transposed(call, call.value("self"), [normalized(axis, rank) for axis in call.ints("dims")])


@torch_op(aten.transpose.int)
def transpose(call: Call) -> Value:
    """Exchange two axes: aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)."""
    return _swapped(call, "dim0", "dim1")


@torch_op(aten.swapaxes.default)
def swapaxes(call: Call) -> Value:
    """Exchange two axes: aten::swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)."""
    return _swapped(call, "axis0", "axis1")


@torch_op(aten.t.default, aten.numpy_T.default, aten.mT.default)
def t(call: Call) -> Value:
    """Reverse the order of the axes, for mT of the last two.

    aten::t(Tensor(a) self) -> Tensor(a)
    aten::numpy_T(Tensor(a) self) -> Tensor(a)
    aten::mT(Tensor(a) self) -> Tensor(a)
    """
    x = call.value("self")
    if call.overload is aten.mT.default:
        return swapped(call, x, x.rank - 2, x.rank - 1)
    return transposed(call, x, range(x.rank)[::-1])


@torch_op(aten.movedim.int, aten.movedim.intlist)
def movedim(call: Call) -> Value:
    """Move axes, leave the others in order.

    aten::movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)
    aten::movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)
    """
    x = call.value("self")
    sources = [normalized(axis, x.rank) for axis in call.ints("source")]
    destinations = [normalized(axis, x.rank) for axis in call.ints("destination")]
    others = iter(axis for axis in range(x.rank) if axis not in sources)
    perm = [
        sources[destinations.index(axis)] if axis in destinations else next(others) for axis in range(x.rank)
    ]
    return transposed(call, x, perm)


@torch_op(aten.pixel_shuffle.default)
def pixel_shuffle(call: Call) -> Value:
    """Move channels into blocks of pixels: aten::pixel_shuffle(Tensor self, int upscale_factor) -> Tensor."""
    x = call.batched("self", 2)
    return call.node(hub.DepthToSpace(blocksize=call.argument("upscale_factor"), mode="CRD"), x)


@torch_op(aten.pixel_unshuffle.default)
def pixel_unshuffle(call: Call) -> Value:
    """Move the pixels of a block into channels next to each other; ONNX's SpaceToDepth spreads them.

    aten::pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor
    """
    x, block = call.batched("self", 2), call.argument("downscale_factor")
    n, c, h, w = x.dims[0], *x.shape[1:]
    blocks = reshaped(call, x, (n, c, h // block, block, w // block, block))
    return reshaped(call, transposed(call, blocks, (0, 1, 3, 5, 2, 4)), call.dims, kept=1)


@torch_op(aten.channel_shuffle.default, aten.native_channel_shuffle.default)
def channel_shuffle(call: Call) -> Value:
    """Take the channels of all groups in turn.

    aten::channel_shuffle(Tensor self, SymInt groups) -> Tensor
    aten::native_channel_shuffle(Tensor self, SymInt groups) -> Tensor
    """
    x, groups = call.value("self"), call.argument("groups")
    n, c, *rest = x.dims
    grouped = reshaped(call, x, (n, groups, c // groups, *rest))
    order: Sequence[int] = (0, 2, 1, *range(3, grouped.rank))
    return reshaped(call, transposed(call, grouped, order), call.dims, kept=1)


def _swapped(call: Call, first: str, second: str) -> Value:
    x = call.value("self")
    if not x.rank:
        return x
    return swapped(call, x, call.axis(first, x.rank), call.axis(second, x.rank))
