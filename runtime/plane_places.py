"""Places of maxima as Caffe counts them: within each plane, where ONNX counts through the whole tensor."""

from __future__ import annotations

import math
from collections.abc import Callable

from caffeforge.generated import hub
from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.lib import caffe_pool_size, covers, is_scalar, scalar

Accepts = Callable[[Node], bool]


def with_plane_places(graph: Graph, accepts: Accepts) -> list[Node]:
    """Return the nodes of `graph` with pools whose places are asked for as pools that count within planes.

    What reads the places reads those within planes where that is what it makes of them: `Mod` by the size
    of a plane, `MaxUnpool` of the same windows. A pool that the target does not take, by `accepts`, stays.
    """
    if not any(_counts(node) for node in graph.nodes):
        return graph.nodes
    pools = _Pools(graph)
    for node in graph.nodes:
        if not (_counts(node) and pools.take(node, accepts)):
            pools.read(node)
    return pools.nodes


def _counts(node: Node) -> bool:
    return isinstance(node.op, hub.MaxPool) and len(node.outputs) == 2


class _Pools:
    """The nodes so far, and for each places that ONNX counts those that Caffe does."""

    def __init__(self, graph: Graph) -> None:
        self.nodes: list[Node] = []
        self.outputs = set(graph.outputs)
        self.users = graph.users()
        self.masks: dict[Value, tuple[Value, Node]] = {}  # and the pool that they are of
        self.same: dict[Value, Value] = {}

    def take(self, node: Node, accepts: Accepts) -> bool:
        """Append `node` as a pool that counts within planes, if it can be one."""
        op, (x, *_), (values, places) = node.op, node.inputs, node.outputs
        assert isinstance(op, hub.MaxPool) and x is not None
        if x.rank != 4 or any(step != 1 for step in op.dilations):
            return False
        sizes = caffe_pool_size(x.shape[2:], op.kernel_shape, op.strides, op.pads[:2])
        whole = sizes == values.shape[2:]
        if not whole and not covers(sizes, values.shape[2:]):
            return False
        own = caffe_ops.MaxPool(kernel_shape=op.kernel_shape, strides=op.strides, pads=op.pads[:2])
        mask = Value(f"{node.name}/mask", places.dtype, values.dims)
        tops = [values, mask]
        if not whole:
            dims = (*values.dims[:2], *sizes)
            tops = [Value(f"{top.name}/every", top.dtype, dims) for top in tops]
        name = node.name if whole else f"{node.name}/every"
        pool = Node(name, own, [self.same.get(x, x)], tops, node.origin)
        if not accepts(pool):
            node.own_outputs()
            return False
        self.nodes.append(pool)
        if not whole:
            cut = hub.Slice(starts=(0, 0), ends=values.shape[2:], axes=(2, 3))
            self.nodes.append(Node(node.name, cut, [tops[0]], [values], node.origin))
            self.nodes.append(Node(f"{node.name}/mask", cut, [tops[1]], [mask], node.origin))
        self.masks[places] = (mask, node)
        if places in self.outputs or not all(self._within(user) for user in self.users[places]):
            through = caffe_ops.Places(plane=math.prod(x.shape[2:]))
            self.nodes.append(Node(f"{node.name}/places", through, [mask], [places], node.origin))
        return True

    def read(self, node: Node) -> None:
        """Append another node, which may read places."""
        inputs = [self.same.get(v, v) if v is not None else None for v in node.inputs]
        if not self._within(node):
            self.nodes.append(Node(node.name, node.op, inputs, node.outputs, node.origin))
            return
        (result,) = node.outputs
        if isinstance(node.op, hub.Mod):
            mask, _ = self.masks[node.inputs[0]]  # type: ignore[index]
            self.same[result] = mask
            if result in self.outputs:
                self.nodes.append(Node(node.name, hub.Identity(), [mask], [result], node.origin))
            return
        mask, pool = self.masks[node.inputs[1]]  # type: ignore[index]
        self._unpool(node, inputs[0], mask, pool)

    def _within(self, node: Node) -> bool:
        """Tell whether `node` reads places as those within planes would do."""
        places = [value for value in node.inputs if value in self.masks]
        if len(places) != 1:
            return False
        pool = self.masks[places[0]][1]
        x = pool.inputs[0]
        if x is None or not isinstance(pool.op, hub.MaxPool):
            return False
        if isinstance(node.op, hub.Mod):
            by = node.inputs[1]
            return by is not None and is_scalar(by) and scalar(by) == math.prod(x.shape[2:])
        return isinstance(node.op, hub.MaxUnpool) and (
            node.inputs[0] not in places
            and node.op.kernel_shape == node.op.strides == pool.op.kernel_shape == pool.op.strides
            and not any((*node.op.pads, *pool.op.pads))
            and node.outputs[0].shape == x.shape
        )

    def _unpool(self, node: Node, x: Value | None, mask: Value, pool: Node) -> None:
        assert x is not None and isinstance(pool.op, hub.MaxPool)
        (result,) = node.outputs
        height, width = (n * k for n, k in zip(x.shape[2:], pool.op.kernel_shape, strict=True))
        own = caffe_ops.MaxUnpool(kernel_shape=pool.op.kernel_shape, width=result.shape[3])
        if (height, width) == result.shape[2:]:
            self.nodes.append(Node(node.name, own, [x, mask], [result], node.origin))
            return
        inner = Value(f"{node.name}/inner", x.dtype, (*x.dims[:2], height, width))
        behind = (0, 0, 0, 0, 0, 0, result.shape[2] - height, result.shape[3] - width)
        self.nodes.append(Node(f"{node.name}/inner", own, [x, mask], [inner], node.origin))
        pad = hub.Pad(pads=behind, constant_value=0.0)
        self.nodes.append(Node(node.name, pad, [inner], [result], node.origin))
