"""Nodes that onnxruntime (1.32) accepts and then refuses to run, or computes otherwise than ONNX says.

Each was found by ONNX's own node tests; onnx's reference evaluator runs them instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from caffeforge.generated import hub
from caffeforge.runtime.graph import Node, Value
from caffeforge.runtime.op import Op


def is_miscomputed(node: Node) -> bool:
    """Tell whether onnxruntime does not compute a node as ONNX says."""
    check = _CHECKS.get(type(node.op))
    return check is not None and check(node.op, node)


def _attention(op: hub.Attention, node: Node) -> bool:
    """Masked scores among the results; a mask that is shorter than the keys."""
    mask = node.inputs[3] if len(node.inputs) > 3 else None
    return len(node.outputs) > 3 or (mask is not None and mask.dims[-1:] != _keys(node))


def _keys(node: Node) -> tuple[Any, ...]:
    keys = node.inputs[1]
    past = node.inputs[4] if len(node.inputs) > 4 else None
    if keys is None or past is not None:
        return node.inputs[3].dims[-1:] if node.inputs[3] is not None else ()
    return (keys.dims[-2],)


def _conv_integer(op: hub.ConvInteger, node: Node) -> bool:
    """A zero point for each channel of the weights."""
    zero = node.inputs[3] if len(node.inputs) > 3 else None
    return zero is not None and zero.dims not in ((), (1,))


def _max_unpool(op: hub.MaxUnpool, node: Node) -> bool:
    """Indices are of what the windows cover, onnxruntime reads them as those of the larger result.

    Where they come from a pool of a tensor as large as the result they are those of the result.
    """
    if op.output_shape is None and len(node.inputs) < 3:
        return False
    places = node.inputs[1]
    pool = places.producer if places is not None else None
    pooled = pool.inputs[0] if pool is not None and isinstance(pool.op, hub.MaxPool) else None
    return pooled is None or pooled.dims != node.outputs[0].dims


def _mod(op: hub.Mod, node: Node) -> bool:
    """Floats with the divisor's sign."""
    return not op.fmod and _first(node).dtype.startswith("float")


def _reduce_max(op: hub.ReduceMax, node: Node) -> bool:
    """Bools of which there are none."""
    return _first(node).dtype == "bool" and 0 in _first(node).dims


def _resize(op: hub.Resize, node: Node) -> bool:
    """Places depend on the exact size, onnxruntime takes the one that is rounded down."""
    mode = op.coordinate_transformation_mode
    if mode not in ("align_corners", "pytorch_half_pixel"):
        return False
    if op.scales is None:
        return len(node.inputs) > 2 and node.inputs[2] is not None
    x = _first(node)
    axes = op.axes or range(x.rank - len(op.scales), x.rank)
    dims = [x.dims[axis] for axis in axes]
    sizes = [d * s for d, s in zip(dims, op.scales, strict=True) if isinstance(d, int)]
    if mode == "pytorch_half_pixel":
        return any(1 + 1e-4 < size < 2 for size in sizes)
    return any(abs(size - round(size)) > 1e-4 for size in sizes)


def _pool(op: hub.MaxPool | hub.AveragePool | hub.LpPool, node: Node) -> bool:
    """Windows that lie in the padding alone: PyTorch's old exporter pads so where it rounds sizes up."""
    count = len(op.kernel_shape)
    pads = op.pads or (0,) * 2 * count
    return any(pad >= size for pad, size in zip(pads, op.kernel_shape * 2, strict=True))


def _first(node: Node) -> Value:
    found = node.inputs[0]
    assert found is not None  # the ops here have one
    return found


_CHECKS: Final[dict[type[Op], Callable[[Any, Node], bool]]] = {
    hub.Attention: _attention,
    hub.AveragePool: _pool,
    hub.ConvInteger: _conv_integer,
    hub.LpPool: _pool,
    hub.MaxPool: _pool,
    hub.MaxUnpool: _max_unpool,
    hub.Mod: _mod,
    hub.ReduceMax: _reduce_max,
    hub.Resize: _resize,
}
