"""The body of ``caffe.MatrixInverse``: elimination, row by row, with the largest pivot of each column."""

from __future__ import annotations

from math import prod

import numpy as np

from caffeforge.generated import hub
from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import Full
from caffeforge.runtime.builder import Builder
from caffeforge.runtime.graph import Value
from caffeforge.runtime.onnx_node import element_type
from caffeforge.runtime.onnx_out.bodies.body import Body
from caffeforge.runtime.refusal import Refused

_LARGEST = 16  # rows: each is a dozen nodes
_DOUBLE = element_type("float64")
_FLOAT = element_type("float32")


def matrix_inverse(builder: Builder, op: caffe_ops.MatrixInverse, matrices: Value, result: Value) -> None:
    """Build the inverses, of the operand's shape, computed in float64; one that does not exist is not finite.

    Raises:
        Refused: the shape is not known, or matrices are larger than 16 x 16.
    """
    body = Body(builder)
    shape = matrices.shape[:]
    size, count = shape[-1], prod(shape[:-2])
    if size > _LARGEST:
        raise Refused(f"ONNX has no inverse of a matrix; {size} rows would be {12 * size} nodes")
    eye = np.tile(np.eye(size), (count, 1, 1))
    own = body(hub.Cast(to=_DOUBLE), body.reshape(matrices, count, size, size))
    whole = body(hub.Concat(axis=2), own, body.array(eye))
    for row in range(size):
        whole = _eliminated(body, whole, row)
    found = body.reshape(body.part(whole, size, 2 * size), *shape)
    body.give(result, hub.Cast(to=element_type(matrices.dtype)), found)


def _eliminated(body: Body, whole: Value, row: int) -> Value:
    """Return matrices (count, rows, columns) of which one column is 0 but for a 1 in this row."""
    count, size, columns = whole.shape[:]
    column = body.part(whole, row, row + 1)  # (count, rows, 1)
    sizes = body(hub.Cast(to=_FLOAT), body(hub.Abs(), body.part(column, row, size, 1)))
    best = body(hub.Add(), body(hub.ArgMax(axis=1, keepdims=0), sizes), Full((), row, "int64"))  # (count, 1)
    starts = body.array(np.arange(count)[:, None] * size)
    pivot = body(
        hub.Gather(axis=0), body.reshape(whole, count * size, columns), body(hub.Add(), best, starts)
    )
    here = body.part(whole, row, row + 1, 1)
    rows = body.array(np.arange(size)[None, :, None])
    taken = body(hub.Equal(), rows, body.reshape(best, count, 1, 1))
    mine = body.array((np.arange(size) == row)[None, :, None])
    swapped = body(hub.Where(), taken, here, whole)
    unit = body(hub.Div(), pivot, body.part(pivot, row, row + 1))
    rest = body(hub.Mul(), body.part(swapped, row, row + 1), unit)
    return body(hub.Where(), mine, unit, body(hub.Sub(), swapped, rest))
