"""What moves nothing is dropped, reshapes of reshapes are one, and cuts of one tensor are one Split."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from caffeforge.generated import hub
from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.lib import open_batch, slice_cuts, steps_of


def drop_what_moves_nothing(graph: Graph) -> dict[Value, Value]:
    """Return, for each result that is its operand, what stands for it; the graph's outputs stay."""
    outputs = set(graph.outputs)
    same: dict[Value, Value] = {}
    for node in graph.nodes:
        if len(node.outputs) == 1 and node.outputs[0] not in outputs and _moves_nothing(node):
            (x,) = (value for value in node.inputs if value is not None)
            same[node.outputs[0]] = same.get(x, x)
    return same


def _moves_nothing(node: Node) -> bool:
    operands = [value for value in node.inputs if value is not None]
    if len(operands) != 1 or operands[0].data is not None or operands[0].dims != node.outputs[0].dims:
        return False
    if operands[0].dtype != node.outputs[0].dtype:
        return False
    op = node.op
    if isinstance(op, caffe_ops.Power):
        return (op.scale, op.shift, op.power) == (1.0, 0.0, 1.0)
    if isinstance(op, hub.Transpose):
        return op.perm == tuple(range(len(op.perm)))
    return isinstance(op, (hub.Identity, hub.Reshape))


def reshape_once(graph: Graph) -> dict[Node, Node]:
    """Return, for each reshape of a reshape that nothing else reads, the one that stands for both."""
    users, outputs = graph.users(), set(graph.outputs)
    reshaped: dict[Value, Node] = {}
    joined: dict[Node, Node] = {}
    for node in graph.nodes:
        if not isinstance(node.op, hub.Reshape) or node.op.shape is None:
            continue
        x, (result,) = node.inputs[0], node.outputs
        inner = reshaped.get(x) if x is not None and len(users[x]) == 1 and x not in outputs else None
        reshaped[result] = node
        dims = _both(inner, node) if inner is not None else ()
        if inner is not None and dims:
            op = hub.Reshape(shape=dims)
            reshaped[result] = joined[node] = Node(node.name, op, inner.inputs, [result], node.origin)
    return joined


def _both(first: Node, second: Node) -> tuple[int, ...]:
    """Return the shape of two reshapes as one, with the batch as open as they leave it; () if none is."""
    inner, outer = _dims(first), _dims(second)
    if not outer or (-1 in inner[1:] and outer[0] != -1):
        return ()
    begin = inner[0] if outer[0] == 0 and inner else outer[0]
    sizes = second.outputs[0].shape
    rest = [-1 if size == -1 and begin != -1 else sizes[i] for i, size in enumerate(outer)]
    return (begin, *rest[1:])


def _dims(node: Node) -> tuple[int, ...]:
    """Return the sizes of a reshape as a layer has them: 0 for one that stays, -1 for what is left."""
    x = node.inputs[0]
    assert isinstance(node.op, hub.Reshape) and node.op.shape is not None and x is not None
    return open_batch(x, node.op.shape)


def split_once(graph: Graph) -> tuple[dict[Node, Node], set[Node]]:
    """Return, for the first of several cuts of one tensor, the Split that stands for all, and the others."""
    cuts: dict[tuple[Value, int], list[tuple[int, int, Node]]] = defaultdict(list)
    for node in graph.nodes:
        cut = _cut(node)
        if cut is not None:
            cuts[cut[:2]].append((*cut[2:], node))
    first: dict[Node, Node] = {}
    others: set[Node] = set()
    for (x, axis), found in cuts.items():
        apart = _apart(found)
        if len(apart) > 1:
            made = _split(x, axis, apart, min((n for *_, n in apart), key=graph.nodes.index))
            first[made[0]] = made[1]
            others |= {node for *_, node in apart} - {made[0]}
    return first, others


def _cut(node: Node) -> tuple[Value, int, int, int] | None:
    """Return (tensor, axis, begin, end) of a node that cuts one piece out of a tensor along one axis."""
    op, x = node.op, node.inputs[0] if node.inputs else None
    if not isinstance(op, hub.Slice) or x is None or op.starts is None or x.data is not None:
        return None
    if any(step != 1 for step in steps_of(op.starts, op.steps)):
        return None
    cuts = slice_cuts(x.shape[:], op.starts, op.ends, op.axes)
    return (x, *cuts[0]) if len(cuts) == 1 else None


def _apart(cuts: Sequence[tuple[int, int, Node]]) -> list[tuple[int, int, Node]]:
    """Return cuts in order, without those that reach into another."""
    found: list[tuple[int, int, Node]] = []
    for begin, end, node in sorted(cuts, key=lambda cut: cut[:2]):
        if not found or begin >= found[-1][1]:
            found.append((begin, end, node))
    return found


def _split(x: Value, axis: int, cuts: Sequence[tuple[int, int, Node]], first: Node) -> tuple[Node, Node]:
    sizes: list[int] = []
    results: list[Value] = []
    at = 0
    for begin, end, node in [*cuts, (x.shape[axis], x.shape[axis], first)]:
        if begin > at:
            dims = (*x.dims[:axis], begin - at, *x.dims[axis + 1 :])
            results.append(Value(f"{first.name}/between_{at}", x.dtype, dims))
            sizes.append(begin - at)
        if end > begin:
            results.append(node.outputs[0])
            sizes.append(end - begin)
        at = end
    op = hub.Split(axis=axis, split=tuple(sizes))
    return first, Node(first.name, op, [x], results, first.origin)


def renamed(node: Node, same: Mapping[Value, Value]) -> Node:
    """Return `node` reading what stands for its operands."""
    inputs = [same.get(value, value) if value is not None else None for value in node.inputs]
    return Node(node.name, node.op, inputs, node.outputs, node.origin) if inputs != node.inputs else node
