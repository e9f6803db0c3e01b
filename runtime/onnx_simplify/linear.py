"""A product with weights and its bias as one Gemm, where no more changes of shape are needed for it."""

from __future__ import annotations

from math import prod
from typing import Final, NamedTuple

from caffeforge.generated import hub
from caffeforge.runtime.graph import Graph, Node, Symbol, Value
from caffeforge.runtime.onnx_simplify.edit import only_reader, remove

_RESHAPES: Final = (hub.Reshape, hub.Flatten, hub.Squeeze, hub.Unsqueeze)
_FLOATS: Final = ("float16", "float32", "float64")


class _Linear(NamedTuple):
    """A product and the sum behind it."""

    product: Node
    total: Node
    rows: Value
    weights: Value
    bias: Value


def join_bias(graph: Graph) -> int:
    """Make one Gemm of MatMul and Add; return how many.

    Gemm takes two axes. More of them are joined before and parted behind, which costs nothing where the shape
    is changed there anyway: by the only node that the product reads, and the only one that reads the sum.
    """
    count = 0
    for node in list(graph.nodes):
        found = _linear(graph, node)
        if found is None:
            continue
        if found.rows.rank == 2 or _flattened(graph, found):
            _join(found)
            count += 1
    remove(graph, ())
    return count


def _linear(graph: Graph, product: Node) -> _Linear | None:
    if not isinstance(product.op, hub.MatMul):
        return None
    rows, weights = product.inputs
    total = only_reader(graph, product.outputs[0])
    if rows is None or weights is None or total is None or not isinstance(total.op, hub.Add):
        return None
    bias = next((v for v in total.inputs if v is not product.outputs[0]), None)
    if bias is None or bias.data is None or weights.data is None or weights.dtype not in _FLOATS:
        return None
    if weights.rank != 2 or bias.rank != 1 or bias.dims != weights.dims[1:] or rows.data is not None:
        return None
    return _Linear(product, total, rows, weights, bias) if rows.rank >= 2 else None


def _flattened(graph: Graph, linear: _Linear) -> bool:
    """Let the changes of shape before and behind join and part axes; return whether there are such."""
    before = linear.rows.producer
    result = linear.total.outputs[0]
    behind = only_reader(graph, result)
    if before is None or behind is None or not isinstance(before.op, _RESHAPES):
        return False
    if not isinstance(behind.op, _RESHAPES) or only_reader(graph, linear.rows) is not linear.product:
        return False
    after = behind.outputs[0]
    if any(isinstance(dim, Symbol) for value in (linear.rows, after) for dim in value.dims):
        return False
    if 0 in (*linear.rows.shape[:], *after.shape[:]):  # which Reshape reads as: the same as before
        return False
    count = prod(linear.rows.shape[:-1])
    before.op = hub.Reshape(shape=(count, linear.rows.shape[-1]))
    before.inputs = before.inputs[:1]
    behind.op = hub.Reshape(shape=after.shape[:])
    behind.inputs = behind.inputs[:1]
    linear.rows.dims = (count, linear.rows.shape[-1])
    result.dims = (count, result.shape[-1])
    return True


def _join(linear: _Linear) -> None:
    """Let the sum be the Gemm; nothing reads the product any more."""
    linear.total.op = hub.Gemm()
    linear.total.inputs = [linear.rows, linear.weights, linear.bias]
