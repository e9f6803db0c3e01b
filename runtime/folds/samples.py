"""Convolutions beside what trades places for channels: one convolution, or one transposed, of larger windows.

``pixel_unshuffle`` and a convolution are a convolution by strides; a convolution and ``pixel_shuffle`` are a
transposed convolution, and so are repeated pixels and a convolution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from caffeforge.generated import hub
from caffeforge.runtime.array import Dense, NDArray
from caffeforge.runtime.folds.following import Step, Ways, doubled, follow, places
from caffeforge.runtime.folds.linear import Linear
from caffeforge.runtime.graph import Graph, Node, Value, constant
from caffeforge.runtime.lib import quotient, repeats_whole, whole_factors
from caffeforge.runtime.refusal import Refused

New = dict[Node, Node | None]
Accepts = Callable[[Node], bool]


class Cells(NamedTuple):
    """How channels of a small image are places of a large one: cells of `size`, rows by columns.

    `channels` gives for each (channel of the large image, row, column within a cell) that of the small one.
    """

    size: tuple[int, int]
    channels: NDArray


def join_samples(graph: Graph, modules: bool, accepts: Accepts) -> list[Node]:
    """Return the nodes of `graph` with convolutions in place of them and of what samples beside them.

    Args:
        graph: what is to be lowered; it is not changed, but its results may have new producers.
        modules: also where a blob goes away that holds what a module returns, and where weights grow.
        accepts: tells whether the target takes a node as it is.
    """
    ways = Ways(graph, modules)
    found: New = {}
    for node in graph.nodes:
        made = ways.alone(node)
        if made is None or not _plain(node):
            continue
        for fold in (_gathered, _scattered, _repeated):
            try:
                new = fold(ways, made)
            except Refused:  # a size is a symbol
                continue
            taken = all(accepts(node) for node in new.values() if node is not None)
            if new and taken and not any(old in found for old in new):
                found.update(new)
                break
    nodes = [new for node in graph.nodes for new in [found.get(node, node)] if new is not None]
    for node in nodes:
        node.own_outputs()
    return nodes


def _plain(node: Node) -> bool:
    op = node.op
    return (
        isinstance(op, hub.Conv) and op.group == 1 and set(op.dilations) == {1} and len(op.kernel_shape) == 2
    )


def _cells(steps: Sequence[Step], large: Value, small: Value, back: bool) -> Cells | None:
    """Return how steps make the small image of the large one, or `back`, the large one of the small."""
    if large.rank != 4 or small.rank != 4 or large.dims[0] != small.dims[0] or not steps:
        return None
    if not whole_factors(small.shape[2:], large.shape[2:]):
        return None
    rows, columns = quotient(large.shape[2:], small.shape[2:])
    size = (rows, columns)
    if rows * columns == 1 or large.shape[1] * rows * columns != small.shape[1]:
        return None
    channels = _channels(steps, large.shape[:], small.shape[:], size, back)
    if channels is None or large.shape[0] > 1:
        return Cells(size, channels) if channels is not None else None
    try:
        again = _channels(steps, doubled(large.shape[:]), doubled(small.shape[:]), size, back)
    except Refused:  # the steps are fixed to their batch anyhow
        again = channels
    same = again is not None and np.array_equal(channels, again)
    return Cells(size, channels) if same else None


def _channels(
    steps: Sequence[Step], large: Sequence[int], small: Sequence[int], size: tuple[int, int], back: bool
) -> NDArray | None:
    """Return the channels of `Cells`, None if the steps do another thing."""
    if back:
        moved = follow(steps, places(small))
    else:  # the place in the small image of each element of the large one
        taken = follow(steps, places(large)).reshape(-1)
        moved = np.argsort(taken)
        if not np.array_equal(taken[moved], np.arange(taken.size)):
            return None
        moved = moved.reshape(large)
    count, height, width = large[1], *small[2:]
    cells = moved.reshape(-1, count, height, size[0], width, size[1]).transpose(0, 1, 3, 5, 2, 4)
    channels: NDArray = cells[0, :, :, :, 0, 0] // (height * width)
    if not np.array_equal(np.sort(channels, None), np.arange(small[1])) or not np.array_equal(
        cells, places(small)[:, channels]
    ):
        return None
    return channels


def _gathered(ways: Ways, made: Linear) -> New:
    """Return the convolution of the large image, for one of the small image that is made of it."""
    steps = ways.before(made.node)
    for count in range(len(steps), 0, -1):
        path = steps[count - 1 :: -1]
        x = path[0].node.inputs[0]
        cells = _cells(path, x, made.x, back=False) if x is not None else None
        if x is None or cells is None:
            continue
        op = _conv(made)
        taps = _taps(made)
        (rows, columns), outs = cells.size, taps.shape[0]
        spread = taps[:, cells.channels].transpose(0, 1, 4, 2, 5, 3)  # outs, ins, ky, row, kx, column
        whole = spread.reshape(outs, -1, op.kernel_shape[0] * rows, op.kernel_shape[1] * columns)
        new = hub.Conv(
            kernel_shape=_times(op.kernel_shape, cells.size),
            strides=_times(op.strides, cells.size),
            dilations=(1, 1),
            pads=_times(op.pads, cells.size * 2),
            group=1,
        )
        return _instead(path, made, new, x, whole, made.node.outputs[0])
    return {}


def _scattered(ways: Ways, made: Linear) -> New:
    """Return the transposed convolution that yields the large image, for one whose channels become places."""
    (y,) = made.node.outputs
    op = _conv(made)
    steps = ways.behind(y)
    reaches = _reaches(op)
    if set(op.strides) != {1} or reaches is None:
        return {}
    for count in range(len(steps), 0, -1):
        path = steps[:count]
        (z,) = path[-1].node.outputs
        cells = _cells(path, z, y, back=True)
        if cells is None:
            continue
        bias = _numbers(made)[cells.channels]
        if (bias != bias[:, :1, :1]).any():  # a layer has one number for all places of a channel
            return {}
        size = _times(op.kernel_shape, cells.size)
        taps = _taps(made)[:, :, ::-1, ::-1][cells.channels]  # outs, row, column, ins, ky, kx
        whole = taps.transpose(3, 0, 4, 1, 5, 2).reshape(taps.shape[3], -1, *size)
        pads = _times(reaches, cells.size * 2)
        held = constant(f"{made.node.name}/bias", Dense(bias[:, 0, 0])) if made.bias is not None else None
        return _transposed(path, made, made.x, whole, held, cells.size, pads, z)
    return {}


def _repeated(ways: Ways, made: Linear) -> New:
    """Return the transposed convolution of an image, for a convolution of it with its pixels repeated."""
    node, op = ways.producers.get(made.x), _conv(made)
    reaches = _reaches(op)
    if node is None or not ways.modules or not ways.hidden(made.x, made.node):
        return {}
    if not _repeats(node) or set(op.strides) != {1} or reaches is None:
        return {}
    x = node.inputs[0]
    assert x is not None
    rows, columns = quotient(made.x.shape[2:], x.shape[2:])
    taps = _taps(made)[:, :, ::-1, ::-1].transpose(1, 0, 2, 3)
    sizes = (op.kernel_shape[0] + rows - 1, op.kernel_shape[1] + columns - 1)
    whole = np.zeros((*taps.shape[:2], *sizes), np.float64)
    for row in range(rows):
        for column in range(columns):
            whole[:, :, row : row + taps.shape[2], column : column + taps.shape[3]] += taps
    return _transposed(
        [Step(node)], made, x, whole, made.bias, (rows, columns), reaches, made.node.outputs[0]
    )


def _repeats(node: Node) -> bool:
    op, x = node.op, node.inputs[0]
    if not isinstance(op, hub.Resize) or op.mode != "nearest" or x is None or x.rank != 4:
        return False
    y = node.outputs[0]
    if x.dims[:2] != y.dims[:2] or x.dims == y.dims or not whole_factors(x.shape[2:], y.shape[2:]):
        return False
    return repeats_whole(op.coordinate_transformation_mode, op.nearest_mode)


def _transposed(
    path: Sequence[Step],
    made: Linear,
    x: Value,
    taps: NDArray,
    bias: Value | None,
    strides: tuple[int, int],
    pads: Sequence[int],
    result: Value,
) -> New:
    op = hub.ConvTranspose(
        kernel_shape=taps.shape[2:],
        strides=strides,
        dilations=(1, 1),
        pads=tuple(pads),
        output_padding=(0, 0),
        group=1,
    )
    return _instead(path, made, op, x, taps, result, bias)


def _instead(
    path: Sequence[Step],
    made: Linear,
    op: hub.Conv | hub.ConvTranspose,
    x: Value,
    taps: NDArray,
    result: Value,
    bias: Value | None = None,
) -> New:
    weight = constant(f"{made.weight.name}/spread", Dense(np.ascontiguousarray(taps, np.float32)))
    held = made.bias if isinstance(op, hub.Conv) else bias
    new: New = {step.node: None for step in path}
    new[made.node] = Node(made.node.name, op, [x, weight, held], [result], made.node.origin)
    return new


def _numbers(made: Linear) -> NDArray:
    """Return the bias, one number for each channel."""
    known = np.zeros(1, np.float32) if made.bias is None or made.bias.data is None else made.bias.data.numpy()
    return np.broadcast_to(known.reshape(-1), (made.channels,))


def _reaches(op: hub.Conv) -> tuple[int, ...] | None:
    """Return the pads of the transposed convolution: what a window reaches beyond its padding."""
    found = tuple(size - 1 - pad for size, pad in zip(op.kernel_shape * 2, op.pads, strict=True))
    return found if min(found) >= 0 else None


def _conv(made: Linear) -> hub.Conv:
    assert isinstance(made.node.op, hub.Conv)
    return made.node.op


def _taps(made: Linear) -> NDArray:
    assert made.weight.data is not None
    return made.weight.data.numpy()


def _times(numbers: Sequence[int], factors: Sequence[int]) -> tuple[int, ...]:
    return tuple(a * b for a, b in zip(numbers, factors, strict=True))
