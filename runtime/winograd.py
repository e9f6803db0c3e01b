"""Convolutions of 3 x 3 in Winograd's form, which multiplies two or four times less.

onnxruntime's own kernel multiplies nine weights for every result. Here a plane is cut into tiles of 2 x 2 or
4 x 4 results; their operands and, once, the weights are transformed, so that what is between is one product
for each of 4 x 4 or 6 x 6 places, summed over the channels: a matrix product for each place. The matrices are
those of `winograd_form.py`.

All nodes are of ONNX, chosen for what onnxruntime does fast: operands are transformed by convolutions of each
channel by itself, along one axis, then along the other; the products are one convolution with a group for
each place, to which the bias belongs too; results are transformed by one matrix, with the channels innermost,
so that tiles are put beside each other in long pieces.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from caffeforge.generated import hub
from caffeforge.runtime.array import Dense, Full, NDArray
from caffeforge.runtime.builder import Builder
from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.op import Op
from caffeforge.runtime.winograd_form import Form, form

_FILTERS: Final = 8192  # that are transformed at once, in float64, which shall not take much memory

# What may follow a convolution and is computed where its results are in the best order.
_ELEMENTWISE: Final = (hub.Relu, hub.Clip, hub.LeakyRelu, hub.Elu, hub.Sigmoid, hub.Tanh)


def winograd(graph: Graph, tile: Callable[[Node], int]) -> None:
    """Put convolutions of `graph` in Winograd's form, in place, with what scales or bounds their results.

    Args:
        graph: its nodes are nobody else's; its outputs stay its outputs.
        tile: how many results along each axis make a tile of a convolution, 2 or 4; 0 to leave it.
    """
    users, outputs = graph.users(), set(graph.outputs)
    replaced: dict[Node, list[Node]] = {}
    gone: set[Node] = set()
    for node in graph.nodes:
        size = tile(node) if _is_fit(node) else 0
        if not size:
            continue
        layer = _layer(node, form(size), users, outputs)
        replaced[node] = layer.nodes()
        gone.update(layer.taken)
    nodes = [new for node in graph.nodes for new in replaced.get(node, [] if node in gone else [node])]
    graph.nodes = nodes
    for node in nodes:
        node.own_outputs()


def _is_fit(node: Node) -> bool:
    """Tell whether a node is a convolution that has the form, of sizes and weights that are known."""
    op = node.op
    if not isinstance(op, hub.Conv) or op.kernel_shape != (3, 3) or op.group != 1:
        return False
    if set(op.strides) | set(op.dilations) != {1} or max(op.pads) > 2 or node.outputs[0].dtype != "float32":
        return False
    dims = (*_first(node).dims, *node.outputs[0].dims)
    constants = all(value is not None and value.data is not None for value in node.inputs[1:])
    return constants and all(isinstance(dim, int) for dim in dims)


@dataclass
class _Layer:
    """A convolution and the nodes behind it that become part of it.

    Attributes:
        conv: the convolution.
        form: how it shall be computed.
        weights: float32 or float64[O, C, 3, 3].
        bias: the same type, [O].
        taken: all nodes that are replaced.
        activation: the op behind the sum, if any.
        pooled: whether the greatest of each 2 x 2 results is taken at the end.
        result: what all of them together compute, [N, O, H, W].
    """

    conv: Node
    form: Form
    weights: NDArray
    bias: NDArray
    taken: list[Node]
    activation: Op | None
    pooled: bool
    result: Value

    def nodes(self) -> list[Node]:
        """Return the nodes that compute the result."""
        build = Builder(f"{self.conv.name}/winograd", self.conv.origin)
        value = self._products(build, self._transformed_operands(build))
        self._joined(build, value)
        return build.nodes

    def _transformed_operands(self, build: Builder) -> Value:
        """Return B' d B of all tiles, [N, places * C, tiles down, tiles across], columns before rows."""
        assert isinstance(self.conv.op, hub.Conv)
        value, (top, left) = _first(self.conv), self.conv.op.pads[:2]
        height, width = self.conv.outputs[0].shape[2:]
        value = _along(build, value, self.form, 2, top, -(-height // self.form.tile))
        return _along(build, value, self.form, 3, left, -(-width // self.form.tile))

    def _products(self, build: Builder, value: Value) -> Value:
        """Return the sums over the channels, [N, places * O, tiles down, tiles across], columns before rows.

        The bias is part of them: the same number for all results of a tile is a sum of what A' takes.
        """
        ones = np.linalg.lstsq(self.form.results, np.ones(self.form.tile), rcond=None)[0]
        bias = np.einsum("b,a,o->bao", ones, ones, self.bias).astype(np.float32)
        weights = self._transformed_weights().reshape(bias.size, -1, 1, 1)
        op = hub.Conv(kernel_shape=(1, 1), group=self.form.span**2)
        return build.value(op, [value, Dense(weights), Dense(bias.reshape(-1))])

    def _transformed_weights(self) -> NDArray:
        """Return G g G' of all filters, float32[places, O * C], columns before rows."""
        g, filters = self.form.weights, self.weights.reshape(-1, 3, 3)
        transformed = np.empty((self.form.span**2, len(filters)), np.float32)
        for start in range(0, len(filters), _FILTERS):
            piece = filters[start : start + _FILTERS].astype(np.float64).transpose(2, 1, 0)
            columns = (g @ piece.reshape(3, -1)).reshape(self.form.span, 3, -1)
            transformed[:, start : start + _FILTERS] = np.matmul(g, columns).reshape(len(transformed), -1)
        return transformed

    def _joined(self, build: Builder, value: Value) -> None:
        """Compute the tiles of results and put them together.

        The last convolution only brings results into the order that onnxruntime's kernels want, once for all
        readers: it does so where a single convolution follows a transposition, and has the bound for nothing.
        """
        batch, outs, height, width = self.result.shape
        down, across = value.shape[2:]
        tiles, side = batch * down * across, self.form.tile
        value = build.value(hub.Transpose(perm=(0, 2, 3, 1)), [value])
        value = build.value(hub.Reshape(shape=(tiles, self.form.span**2, outs)), [value])
        value = build.value(hub.MatMul(), [_tile_matrix(self.form, self.pooled), value])
        if self.pooled:
            side //= 2
            value = build.value(hub.Reshape(shape=(tiles, 4, side * side * outs)), [value])
            value = build.value(hub.ReduceMax(axes=(1,), keepdims=0), [value])
        fused = not self.pooled and isinstance(self.activation, hub.Relu)
        if self.activation is not None and not fused:
            value = build.value(self.activation, [value])
        value = build.value(hub.Reshape(shape=(batch * down, across, side, side * outs)), [value])
        value = build.value(hub.Transpose(perm=(0, 2, 1, 3)), [value])
        value = build.value(hub.Reshape(shape=(batch, down * side, across * side, outs)), [value])
        if (down * side, across * side) != (height, width):
            value = build.value(hub.Slice(starts=(0, 0), ends=(height, width), axes=(1, 2)), [value])
        back = hub.Transpose(perm=(0, 3, 1, 2))
        if not fused:
            build.apply(back, [value], [self.result])
            return
        same = hub.Conv(kernel_shape=(1, 1), group=outs)
        value = build.value(same, [build.value(back, [value]), Full((outs, 1, 1, 1), 1.0)])
        build.apply(hub.Relu(), [value], [self.result])


def _tile_matrix(form: Form, pooled: bool) -> Dense:
    """Return what takes the sums of all places to the results of a tile, float32[1, results, places].

    Results are in rows; if they are `pooled`, the first ones of all windows come first, then the second ones.
    """
    matrix = np.einsum("ya,xb->yxba", form.results, form.results)
    if pooled:
        half = form.tile // 2
        matrix = matrix.reshape(half, 2, half, 2, -1).transpose(1, 3, 0, 2, 4)
    return Dense(np.ascontiguousarray(matrix.reshape(1, form.tile**2, form.span**2), np.float32))


def _along(build: Builder, value: Value, form: Form, axis: int, before: int, tiles: int) -> Value:
    """Return B' of the tiles along an axis: for each row of B' all channels, one row after the other.

    Args:
        build: takes the nodes.
        value: [N, C, H, W].
        form: holds B'.
        axis: 2 or 3.
        before: how many zeros are put before the first element.
        tiles: how many tiles there are.
    """
    channels, size = value.shape[1], value.shape[axis]
    found: list[Value | Dense] = []
    for row in form.operands:
        first, last = (int(i) for i in np.flatnonzero(row)[[0, -1]])
        first = min(first, before)  # a kernel cannot begin behind the first element
        taps = row[first : last + 1].astype(np.float32)
        pads = before - first, max(0, form.tile * (tiles - 1) - before + last + 1 - size)
        down = axis == 2
        op = hub.Conv(
            kernel_shape=(len(taps), 1) if down else (1, len(taps)),
            strides=(form.tile, 1) if down else (1, form.tile),
            pads=(pads[0], 0, pads[1], 0) if down else (0, pads[0], 0, pads[1]),
            group=channels,
        )
        kernel = np.broadcast_to(taps, (channels, len(taps))).reshape(channels, 1, *op.kernel_shape)
        found.append(build.value(op, [value, Dense(np.ascontiguousarray(kernel))]))
    return build.value(hub.Concat(axis=1), found)


def _layer(conv: Node, form: Form, users: dict[Value, list[Node]], outputs: set[Value]) -> _Layer:
    """Return a convolution with the nodes behind it that scale, shift and bound its results."""
    weights = _elements(conv.inputs[1])
    bias = _elements(conv.inputs[2]) if len(conv.inputs) > 2 else np.zeros(len(weights))
    layer = _Layer(conv, form, weights, bias, [conv], None, False, conv.outputs[0])
    while layer.result not in outputs and len(users[layer.result]) == 1 and not layer.pooled:
        node = users[layer.result][0]
        linear = _scale_and_shift(node, layer.result) if layer.activation is None else None
        if linear is not None:
            scale, shift = linear
            layer.weights = layer.weights * scale.reshape(-1, 1, 1, 1)
            layer.bias = layer.bias * scale + shift
        elif isinstance(node.op, _ELEMENTWISE) and len(node.inputs) == 1 and layer.activation is None:
            layer.activation = node.op  # of its result alone: bounds may be computed too
        elif _keeps_order(layer.activation) and _is_pool_of_pairs(node):
            layer.pooled = True  # of numbers and of their bounds the greatest is the same
        else:
            break
        layer.taken.append(node)
        layer.result = node.outputs[0]
    return layer


def _keeps_order(activation: Op | None) -> bool:
    return activation is None or isinstance(activation, (hub.Relu, hub.Clip))


def _is_pool_of_pairs(node: Node) -> bool:
    """Tell whether a node takes the greatest of each 2 x 2 results, of whole windows."""
    op = node.op
    if not isinstance(op, hub.MaxPool) or len(node.outputs) > 1 or op.kernel_shape != (2, 2):
        return False
    halves = tuple(size // 2 for size in _first(node).shape[2:])
    plain = op.strides == (2, 2) and set(op.pads) == {0} and set(op.dilations) == {1}
    return plain and node.outputs[0].shape[2:] == halves


def _scale_and_shift(node: Node, value: Value) -> tuple[NDArray, NDArray] | None:
    """Return what a node multiplies `value` by and adds to it, float64[O] each; None if it does else."""
    channels = value.shape[1]
    constants = [v for v in node.inputs if v is not value]
    if any(v is None or v.data is None for v in constants) or len(node.outputs) != 1:
        return None
    if isinstance(node.op, hub.BatchNormalization) and not node.op.training_mode:
        scale, shift, mean, variance = (_elements(v).astype(np.float64) for v in constants)
        scale = scale / np.sqrt(variance + node.op.epsilon)
        return scale, shift - mean * scale
    if isinstance(node.op, (hub.Mul, hub.Add)) and len(constants) == 1:
        numbers = _elements(constants[0])
        if numbers.shape not in ((channels, 1, 1), (1, channels, 1, 1)):
            return None
        numbers, still = numbers.astype(np.float64).reshape(channels), np.zeros(channels)
        return (numbers, still) if isinstance(node.op, hub.Mul) else (still + 1, numbers)
    return None


def _elements(value: Value | None) -> NDArray:
    assert value is not None and value.data is not None  # constants, as the caller has checked
    return value.data.numpy()


def _first(node: Node) -> Value:
    value = node.inputs[0]
    assert value is not None  # Conv has this operand
    return value
