"""Operators that make a tensor larger or move its elements around: joins, repeats, padding, rolling."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from caffeforge.generated import hub
from caffeforge.runtime.array import Dense
from caffeforge.runtime.graph import Value, constant
from caffeforge.runtime.symbol import Dim, Symbol
from caffeforge.runtime.torch_front.call import Call, normalized
from caffeforge.runtime.torch_front.layout import (
    BEHIND,
    expanded,
    gathered,
    joined,
    reshaped,
    slice_of_size,
    sliced,
    unsqueezed,
)
from caffeforge.runtime.torch_front.registry import Result, torch_op

aten = torch.ops.aten


@torch_op(aten.cat.default, aten.concat.default, aten.concatenate.default)
def cat(call: Call) -> Value:
    """Concatenate; vectors without elements fit any tensor in PyTorch and are left out.

    aten::cat(Tensor[] tensors, int dim=0) -> Tensor
    aten::concat(Tensor[] tensors, int dim=0) -> Tensor
    aten::concatenate(Tensor[] tensors, int dim=0) -> Tensor
    """
    axis = call.axis("dim", len(call.dims))
    parts = [v for v in call.values("tensors") if v.dims != (0,) and (v.rank <= axis or v.dims[axis] != 0)]
    if not parts:
        raise call.error("joins tensors without elements")
    return joined(call, [call.cast(part, call.dtype) for part in parts], axis)


@torch_op(aten.stack.default)
def stack(call: Call) -> Value:
    """Concatenate along a new axis: aten::stack(Tensor[] tensors, int dim=0) -> Tensor."""
    axis = call.axis("dim", len(call.dims))
    parts = [call.cast(part, call.dtype) for part in call.values("tensors")]
    return joined(call, [unsqueezed(call, part, axis) for part in parts], axis)


@torch_op(aten.expand.default, aten.expand_as.default, aten.broadcast_to.default)
def expand(call: Call) -> Value:
    """Spread axes of size one.

    aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)
    aten::expand_as(Tensor(a) self, Tensor other) -> Tensor(a)
    aten::broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)
    """
    return expanded(call, call.value("self"), call.dims)


@torch_op(aten.repeat.default)
def repeat(call: Call) -> Value:
    """Put copies next to each other: aten::repeat(Tensor self, SymInt[] repeats) -> Tensor."""
    return _tiled(call, call.size_list("repeats"))


@torch_op(aten.tile.default)
def tile(call: Call) -> Value:
    """Put copies next to each other: aten::tile(Tensor self, SymInt[] dims) -> Tensor."""
    return _tiled(call, call.size_list("dims"))


@torch_op(aten.repeat_interleave.self_int)
def repeat_interleave(call: Call) -> Value:
    """Gather every element of an axis some times in a row, of all elements if no axis is given.

    aten::repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *,
    SymInt? output_size=None) -> Tensor
    """
    x, count = call.value("self"), call.argument("repeats")
    if not call.has("dim"):
        x = reshaped(call, x, (math.prod(x.shape[:]),))
    axis = call.axis("dim", x.rank) if call.has("dim") else 0
    places = np.repeat(np.arange(x.shape[axis], dtype=np.int64), count)
    return x if count == 1 else gathered(call, x, constant("", Dense(places)), axis)


@torch_op(aten.meshgrid.default, aten.meshgrid.indexing)
def meshgrid(call: Call) -> Result:
    """Spread each vector along an axis of its own; of "xy" the first two change places.

    aten::meshgrid(Tensor[] tensors) -> Tensor[]
    aten::meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]
    """
    vectors = call.values("tensors")
    places = list(range(len(vectors)))
    if call.has("indexing") and call.argument("indexing") == "xy" and len(vectors) > 1:
        places[:2] = [1, 0]
    results = []
    for vector, place in zip(vectors, places, strict=True):
        shape: list[Dim] = [1] * len(vectors)
        shape[place] = vector.dims[0] if vector.rank else 1
        results.append(expanded(call, reshaped(call, vector, shape, kept=0), call.dims))
    return results


@torch_op(aten.roll.default)
def roll(call: Call) -> Value:
    """Exchange the two parts of each axis that is rolled.

    aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor
    """
    x, shifts = call.value("self"), call.ints("shifts")
    dims = call.ints("dims")
    if not dims:  # of all elements in a row
        flat = reshaped(call, x, (math.prod(x.shape[:]),))
        return reshaped(call, _rolled(call, flat, 0, shifts[0]), call.dims, kept=0)
    for axis, shift in zip(dims, shifts, strict=True):
        x = _rolled(call, x, normalized(axis, x.rank), shift)
    return x


@torch_op(aten.flip.default)
def flip(call: Call) -> Value:
    """Slice backwards: aten::flip(Tensor self, int[] dims) -> Tensor."""
    x = call.value("self")
    axes = [normalized(axis, x.rank) for axis in call.ints("dims")] if x.rank else []
    if not axes:
        return x
    count = len(axes)
    op = hub.Slice(
        starts=(-1,) * count,
        ends=(-BEHIND,) * count,
        axes=tuple(axes),
        steps=(-1,) * count,
    )
    return call.node(op, x)


@torch_op(aten.pad.default)
def pad(call: Call) -> Value:
    """Pad in any mode; numbers below zero cut.

    aten::pad(Tensor self, SymInt[] pad, str mode="constant", float? value=None) -> Tensor
    """
    mode = {"reflect": "reflect", "replicate": "edge", "circular": "wrap", "constant": "constant"}
    return _padded(call, call.ints("pad"), mode[call.argument("mode")], call.argument("value") or 0.0)


@torch_op(aten.constant_pad_nd.default)
def constant_pad_nd(call: Call) -> Value:
    """Pad by a number: aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor."""
    return _padded(call, call.ints("pad"), "constant", call.argument("value"))


@torch_op(aten.reflection_pad1d.default, aten.reflection_pad2d.default, aten.reflection_pad3d.default)
def reflection_pad(call: Call) -> Value:
    """Pad by mirroring.

    aten::reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor
    aten::reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor
    aten::reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor
    """
    return _padded(call, call.ints("padding"), "reflect")


@torch_op(aten.replication_pad1d.default, aten.replication_pad2d.default, aten.replication_pad3d.default)
def replication_pad(call: Call) -> Value:
    """Pad by the outermost element.

    aten::replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor
    aten::replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor
    aten::replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor
    """
    return _padded(call, call.ints("padding"), "edge")


def _tiled(call: Call, counts: Sequence[Dim]) -> Value:
    x = call.value("self")
    rank = len(call.dims)
    counts = (1,) * (rank - len(counts)) + tuple(counts)
    x = reshaped(call, x, (1,) * (rank - x.rank) + x.dims, kept=0 if x.rank < rank else None)
    if set(counts) <= {1}:
        return x
    if any(isinstance(count, Symbol) for count in counts):
        return call.node(hub.Tile(), x, call.shape_value(counts))
    return call.node(hub.Tile(repeats=call.numbers(counts)), x)


def _rolled(call: Call, x: Value, axis: int, shift: int) -> Value:
    size = x.dims[axis]
    if isinstance(size, Symbol):  # a slice cuts what lies outside, so a shift within the axis is enough
        if not shift:
            return x
        front = slice_of_size(call, x, axis, (-shift, None, 1), shift if shift > 0 else size + shift)
        back = slice_of_size(call, x, axis, (0, -shift, 1), size - shift if shift > 0 else -shift)
        return joined(call, [front, back], axis)
    cut = -shift % size if size else 0
    if not cut:
        return x
    return joined(call, [sliced(call, x, axis, cut, size), sliced(call, x, axis, 0, cut)], axis)


def _wrapped(call: Call, x: Value, pads: Sequence[int]) -> Value:
    """Join the end of each padded axis, the axis itself, and its begin."""
    for axis, (begin, end) in enumerate(zip(pads[: x.rank], pads[x.rank :], strict=True)):
        if not begin and not end:
            continue
        size = x.shape[axis]
        parts = [x]
        if begin:
            parts.insert(0, sliced(call, x, axis, size - begin, size))
        if end:
            parts.append(sliced(call, x, axis, 0, end))
        x = joined(call, parts, axis)
    return x


def _padded(call: Call, amounts: Sequence[int], mode: str, number: float = 0.0) -> Value:
    """Cut where an amount is below zero, then pad; amounts name the last axis first, begin before end."""
    x = call.value("self")
    begins, ends = [0] * x.rank, [0] * x.rank
    for index in range(len(amounts) // 2):
        begins[-1 - index], ends[-1 - index] = amounts[2 * index : 2 * index + 2]
    for axis, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        if begin < 0 or end < 0:
            first, last = max(-begin, 0), x.shape[axis] + min(end, 0)
            if first >= last:
                raise call.error("cuts everything away before it pads")
            x = sliced(call, x, axis, first, last)
    pads = tuple(max(amount, 0) for amount in (*begins, *ends))
    if not any(pads):
        return x
    if mode == "wrap":
        return _wrapped(call, x, pads)
    value = float(number) if mode == "constant" else None
    return call.node(hub.Pad(mode=mode, pads=pads, constant_value=value), x)
