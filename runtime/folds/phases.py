"""Focus and its like: every second row and column of an image, stacked as channels, is one convolution.

A convolution over the stack is one over the image: its taps lie between each other in a larger window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from caffeforge.generated import hub
from caffeforge.runtime.array import Dense, NDArray
from caffeforge.runtime.graph import Graph, Node, Value, constant
from caffeforge.runtime.lib import steps_of

Accepts = Callable[[Node], bool]


class _Phases(NamedTuple):
    """A stack of the rows and columns of `x` that begin at `offsets` and are `step` apart."""

    x: Value
    step: int
    offsets: Sequence[tuple[int, int]]


def join_phases(graph: Graph, accepts: Accepts) -> list[Node]:
    """Return the nodes of `graph` with stacks of phases, and what convolves one, as convolutions."""
    users, outputs = graph.users(), set(graph.outputs)
    new: dict[Node, Node] = {}
    for node in graph.nodes:
        phases = _phases(node)
        if phases is None:
            continue
        (stack,) = node.outputs
        conv = users[stack][0] if len(users[stack]) == 1 and stack not in outputs else None
        made = (conv, _convolved(conv, phases)) if conv is not None and _is_plain(conv) else None
        if made is None or not accepts(made[1]):
            made = (node, _stacked(node, phases))
        if accepts(made[1]):
            new[made[0]] = made[1]
    if not new:
        return graph.nodes
    nodes = [new.get(node, node) for node in graph.nodes]
    for node in nodes:
        node.own_outputs()
    return _read(nodes, outputs, {value for found in new.values() for value in found.outputs})


def _read(nodes: Sequence[Node], outputs: set[Value], joined: set[Value]) -> list[Node]:
    """Return the nodes without stacks and phases that nothing reads any more."""
    wanted = set(outputs)
    kept: list[Node] = []
    for node in reversed(nodes):
        loose = isinstance(node.op, (hub.Concat, hub.Slice)) and not wanted.intersection(node.outputs)
        if not loose or joined.intersection(node.outputs):
            kept.append(node)
            wanted.update(value for value in node.inputs if value is not None)
    return kept[::-1]


def _phases(node: Node) -> _Phases | None:
    """Return what a Concat stacks, if it stacks phases of one image alone."""
    if not isinstance(node.op, hub.Concat) or node.outputs[0].rank != 4 or node.op.axis % 4 != 1:
        return None
    found = [_phase(value) for value in node.inputs if value is not None]
    if len(found) < 2 or None in found:
        return None
    whole = [phase for phase in found if phase is not None]
    (x, step, _), *_ = whole
    if any(phase.x is not x or phase.step != step for phase in whole):
        return None
    return _Phases(x, step, [phase.offsets[0] for phase in whole])


def _phase(value: Value) -> _Phases | None:
    """Return the one phase that a chain of slices is."""
    begins, steps = [0, 0], [1, 1]
    while value.producer is not None and isinstance(value.producer.op, hub.Slice):
        op, x = value.producer.op, value.producer.inputs[0]
        if x is None or x.rank != 4 or op.starts is None or op.ends is None:
            return None
        axes = op.axes if op.axes is not None else tuple(range(len(op.starts)))
        every = steps_of(op.starts, op.steps)
        for axis, start, end, step in zip(axes, op.starts, op.ends, every, strict=True):
            at = axis % 4 - 2
            if at < 0 or not 0 <= start < step or end < x.shape[axis] or steps[at] > 1:
                return None
            begins[at], steps[at] = start, step
        value = x
    step = steps[0]
    if step == 1 or steps != [step, step] or any(size % step for size in value.shape[2:]):
        return None
    return _Phases(value, step, [(begins[0], begins[1])])


def _is_plain(node: Node) -> bool:
    op = node.op
    return (
        isinstance(op, hub.Conv)
        and (op.group, set(op.strides), set(op.dilations)) == (1, {1}, {1})
        and op.pads[:2] == op.pads[2:]
        and node.inputs[1] is not None
        and node.inputs[1].data is not None
    )


def _convolved(node: Node, phases: _Phases) -> Node:
    """Return the convolution of the image that does what `node` does of the stack."""
    op, weight = node.op, node.inputs[1]
    assert isinstance(op, hub.Conv) and weight is not None and weight.data is not None
    given = weight.data.numpy()
    parts = np.split(given, len(phases.offsets), axis=1)
    step = phases.step
    sizes = tuple(size * step for size in given.shape[2:])
    taps: NDArray = np.zeros((given.shape[0], parts[0].shape[1], *sizes), given.dtype)
    for (row, column), part in zip(phases.offsets, parts, strict=True):
        taps[:, :, row::step, column::step] += part
    whole = hub.Conv(
        kernel_shape=sizes,
        strides=(step, step),
        dilations=(1, 1),
        pads=tuple(pad * step for pad in op.pads),
        group=1,
    )
    inputs = [phases.x, constant(f"{weight.name}/spread", Dense(taps)), *node.inputs[2:]]
    return Node(node.name, whole, inputs, node.outputs, node.origin)


def _stacked(node: Node, phases: _Phases) -> Node:
    """Return the convolution that does nothing but stack the phases."""
    channels, step = phases.x.shape[1], phases.step
    taps = np.zeros((len(phases.offsets) * channels, channels, step, step), np.float32)
    for index, (row, column) in enumerate(phases.offsets):
        taps[index * channels : (index + 1) * channels, :, row, column] = np.eye(channels)
    whole = hub.Conv(
        kernel_shape=(step, step), strides=(step, step), dilations=(1, 1), pads=(0, 0, 0, 0), group=1
    )
    inputs = [phases.x, constant(f"{node.name}/taps", Dense(taps))]
    return Node(node.name, whole, inputs, node.outputs, node.origin)
