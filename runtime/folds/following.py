"""Where elements go: what nodes that only move them about do to each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from caffeforge.generated import hub
from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.folds.linear import Linear, linear
from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.lib import open_batch, steps_of
from caffeforge.runtime.refusal import Refused

FOLLOWED = 1 << 22  # elements; of larger tensors they are not followed
Order = tuple[int, ...]


class Step(NamedTuple):
    """A node that moves elements, and which of its results is on the way."""

    node: Node
    place: int = 0


class Ways:
    """Who makes and who reads the values of a graph.

    With `modules`, a blob may go away although it holds what a module returns.
    """

    def __init__(self, graph: Graph, modules: bool) -> None:
        self.users = graph.users()
        self.outputs = set(graph.outputs)
        self.producers = {value: node for node in graph.nodes for value in node.outputs}
        self.modules = modules
        found = [made for made in map(linear, graph.nodes) if made is not None]
        self.owners = Counter(made.weight_key for made in found)

    def alone(self, node: Node) -> Linear | None:
        """Return the product that `node` is, if nothing else has its weights."""
        made = linear(node)
        return made if made is not None and self.owners[made.weight_key] == 1 else None

    def hidden(self, value: Value, reader: Node) -> bool:
        """Tell whether nothing but `reader` needs `value`."""
        producer = self.producers.get(value)
        if producer is None or value in self.outputs:
            return False
        if any(user is not reader for user in self.users[value]):
            return False
        inside, reading = producer.origin.module, reader.origin.module
        return self.modules or not inside or reading == inside or reading.startswith(f"{inside}.")

    def before(self, reader: Node, place: int = 0) -> list[Step]:
        """Return the steps to an operand of `reader`, the last first, as far as nothing else needs them."""
        steps: list[Step] = []
        value = reader.inputs[place]
        while value is not None and self.hidden(value, reader):
            reader = self.producers[value]
            if not moves(reader) or len(reader.outputs) != 1:
                break
            steps.append(Step(reader))
            value = reader.inputs[0]
        return steps

    def behind(self, value: Value) -> list[Step]:
        """Return the steps by which alone `value` goes on; what they yield on the way nothing else needs."""
        steps: list[Step] = []
        while len(self.users[value]) == 1 and self.hidden(value, self.users[value][0]):
            (reader,) = self.users[value]
            if not moves(reader) or len(reader.outputs) != 1:
                break
            steps.append(Step(reader))
            (value,) = reader.outputs
        return steps


def moves(node: Node) -> bool:
    """Tell whether `node` does nothing but move elements, each to one place or to none."""
    op = node.op
    if isinstance(op, hub.Gather):
        index = node.inputs[1] if len(node.inputs) > 1 else None
        return index is not None and index.data is not None
    same = (hub.Reshape, hub.Flatten, hub.Squeeze, hub.Unsqueeze, hub.Identity)
    blocks = (hub.DepthToSpace, hub.SpaceToDepth, caffe_ops.Exchange)
    return isinstance(op, (*same, *blocks, hub.Transpose, hub.Split, hub.Slice))


def follow(steps: Sequence[Step], elements: NDArray) -> NDArray:
    """Return what steps make of elements; Refused if the sizes do not suit them."""
    for step in steps:
        try:
            elements = _results(step.node, elements)[step.place]
        except (ValueError, IndexError):
            raise Refused(f"{step.node.name} cannot move elements of shape {elements.shape}") from None
    return elements


def places(shape: Sequence[int]) -> NDArray:
    """Return an array of `shape` of its own flat indices; Refused if it is very large."""
    return np.arange(followed(shape)).reshape(shape)


def followed(shape: Sequence[int]) -> int:
    """Return the number of elements; Refused if they are too many to follow each."""
    count = prod(shape)
    if count > FOLLOWED:
        raise Refused(f"{count} elements are too many to follow")
    return count


def _results(node: Node, elements: NDArray) -> list[NDArray]:
    op = node.op
    if isinstance(op, hub.Transpose):
        return [elements.transpose(op.perm)]
    if isinstance(op, caffe_ops.Exchange):
        blocks, _, both, size = elements.shape
        return [elements.reshape(blocks, both // op.size, op.size, size).transpose(0, 2, 1, 3)]
    if isinstance(op, hub.Split):
        ends = np.cumsum([value.shape[op.axis] for value in node.outputs])
        return np.split(elements, ends[:-1], op.axis)
    if isinstance(op, hub.Gather):
        assert node.inputs[1] is not None and node.inputs[1].data is not None
        return [elements.take(node.inputs[1].data.numpy().astype(np.int64), op.axis)]
    if isinstance(op, hub.Slice):
        return [elements[_cut(op, elements.ndim)]]
    if isinstance(op, (hub.DepthToSpace, hub.SpaceToDepth)):
        return [_blocks(op, elements)]
    return [elements.reshape(_sizes(node, elements))]


def _cut(op: hub.Slice, rank: int) -> tuple[slice, ...]:
    if op.starts is None or op.ends is None:
        raise Refused("where it cuts is computed")
    cut = [slice(None)] * rank
    axes = op.axes if op.axes is not None else tuple(range(len(op.starts)))
    for axis, start, end, step in zip(axes, op.starts, op.ends, steps_of(op.starts, op.steps), strict=True):
        turned = step < 0 and end < -(1 << 31)  # as ONNX says: to the beginning
        cut[axis] = slice(start, None if turned else end, step)
    return tuple(cut)


def _blocks(op: hub.DepthToSpace | hub.SpaceToDepth, elements: NDArray) -> NDArray:
    count, channels, height, width = elements.shape
    size = op.blocksize
    if isinstance(op, hub.SpaceToDepth):
        small: NDArray = elements.reshape(count, channels, height // size, size, width // size, size)
        small = small.transpose(0, 3, 5, 1, 2, 4)
        return small.reshape(count, -1, height // size, width // size)
    cells: NDArray
    depth = channels // size**2
    if op.mode == "CRD":
        cells = elements.reshape(count, depth, size, size, height, width).transpose(0, 1, 4, 2, 5, 3)
    else:
        cells = elements.reshape(count, size, size, depth, height, width).transpose(0, 3, 4, 1, 5, 2)
    large: NDArray = cells.reshape(count, depth, height * size, width * size)
    return large


def _sizes(node: Node, elements: NDArray) -> Sequence[int]:
    """Return the shape that a reshape gives, also of another batch than the graph's."""
    op, x, (result,) = node.op, node.inputs[0], node.outputs
    assert x is not None
    if elements.shape == x.shape[:]:
        return result.shape[:]
    if isinstance(op, hub.Reshape) and op.shape is not None:
        sizes = open_batch(x, op.shape)
        return [elements.shape[at] if size == 0 else size for at, size in enumerate(sizes)]
    if elements.shape[1:] == x.shape[1:] and x.shape[0] == result.shape[0]:
        return (elements.shape[0], *result.shape[1:])
    raise Refused("it is fixed to one batch")


def channel_order(moved: NDArray, axis: int, shape: Sequence[int], before: int) -> Order | None:
    """Return the order in which channels stand in `moved`, if nothing else has changed.

    Args:
        moved: flat indices of the elements of a tensor of `shape`.
        axis: that of the channels, now.
        shape: of the tensor before.
        before: the axis of its channels.

    Returns:
        For each channel now its index before; None if this is no permutation of channels.
    """
    old = np.moveaxis(np.arange(prod(shape)).reshape(shape), before, -1).reshape(-1, shape[before])
    new = np.moveaxis(moved, axis, -1).reshape(-1, moved.shape[axis])
    if old.shape != new.shape or not old.size:
        return None
    order = np.searchsorted(old[0], new[0]).clip(0, old.shape[1] - 1)
    if len(set(order.tolist())) < order.size or not np.array_equal(old[:, order], new):
        return None
    return tuple(order.tolist())


def doubled(shape: Sequence[int]) -> tuple[int, ...]:
    """Return a shape of twice the batch."""
    return (2 * shape[0], *shape[1:])


def moved_order(steps: Sequence[Step], shape: Sequence[int], before: int, axis: int) -> Order | None:
    """Return the `channel_order` of what steps make of a tensor, None too if a batch of one hides more."""
    order = channel_order(follow(steps, places(shape)), axis, shape, before)
    if order is None or shape[0] > 1:
        return order
    twice = doubled(shape)
    try:
        again = channel_order(follow(steps, places(twice)), axis, twice, before)
    except Refused:  # the steps are fixed to their batch anyhow
        return order
    return order if again == order else None
