"""Bodies of PointNet++'s choices among points: ``FarthestPoints``, ``BallQuery`` and ``NearestThree``."""

from __future__ import annotations

import numpy as np

from caffeforge.generated import hub
from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import Full
from caffeforge.runtime.builder import Builder, Operand
from caffeforge.runtime.graph import Graph, Origin, Value
from caffeforge.runtime.onnx_node import element_type
from caffeforge.runtime.onnx_out.bodies.body import Body
from caffeforge.runtime.onnx_out.bodies.repeated import Repeated
from caffeforge.runtime.references.points import THREADS

_FLOAT = element_type("float32")
_INT = element_type("int64")
_FAR = float(np.finfo(np.float32).max)


def farthest_points(builder: Builder, op: caffe_ops.FarthestPoints, points: Value, result: Value) -> None:
    """Build float32 (sets, count), as ``references.points`` does.

    Points stand in the order in which the first of equally far ones is taken.

    Raises:
        Refused: the number of points is not known.
    """
    body = Body(builder)
    sets, count = points.shape[:2]
    ranks = np.argsort(np.arange(count) % THREADS, kind="stable")
    own = body(hub.Gather(axis=1), body.part(points, 0, 3), body.array(ranks))
    start = Full((sets, 1), 0.0)  # the first point stands first in this order too
    if op.count == 1:
        body.give(result, hub.Identity(), start)
        return
    operands: list[Operand] = [Full((), op.count - 1, "int64"), Full((sets, count), _FAR), start, own]
    dims = [(sets, count), (sets, 1), (op.count - 1, sets, 1)]
    *_, found = body.all_open(Repeated(_next_point(own), 2), operands, dims)
    found = body(hub.Transpose(perm=(1, 0)), body.reshape(found, op.count - 1, sets))
    places = body(hub.Cast(to=_INT), body(hub.Concat(axis=1), start, found))
    body.give(result, hub.Gather(axis=0), body.array(ranks.astype(np.float32)), places)


def _next_point(points: Value) -> Graph:
    """Return how one is chosen: (step, nearest, last, points) -> (nearest, the one, the one)."""
    sets, count, _ = points.shape[:]
    step = Value("step", "int64", ())
    nearest, last = Value("nearest", "float32", (sets, count)), Value("last", "float32", (sets, 1))
    read = Value("points", "float32", (sets, count, 3))
    builder = Builder("point", Origin())
    body = Body(builder)
    starts = body.array(np.arange(sets)[:, None] * count)
    at = body(hub.Add(), body(hub.Cast(to=_INT), last), starts)
    one = body(hub.Gather(axis=0), body.reshape(read, sets * count, 3), at)  # (sets, 1, 3)
    distance = body(hub.Sqrt(), _squares(body, body(hub.Sub(), read, one)))
    after = body(hub.Min(), nearest, distance)
    found = body(hub.Cast(to=_FLOAT), body(hub.ArgMax(axis=1, keepdims=1), after))
    results = [after, found, body(hub.Identity(), found)]
    return Graph("point", [step, nearest, last, read], results, builder.nodes)


def _squares(body: Body, apart: Value) -> Value:
    """Return the squares of distances along three axes, the last axis of (..., 3), in this order."""
    squares = body(hub.Mul(), apart, apart)
    x, y, z = (body(hub.Squeeze(axes=(-1 + apart.rank,)), body.part(squares, k, k + 1)) for k in range(3))
    return body(hub.Add(), body(hub.Add(), x, y), z)


def _all_squares(body: Body, centers: Value, points: Value) -> Value:
    """Return the squares (sets, centers, points) of all distances."""
    total = None
    for axis in range(3):
        one = body.part(centers, axis, axis + 1)
        other = body(hub.Transpose(perm=(0, 2, 1)), body.part(points, axis, axis + 1))
        apart = body(hub.Sub(), one, other)
        square = body(hub.Mul(), apart, apart)
        total = square if total is None else body(hub.Add(), total, square)
    assert total is not None  # there are three axes
    return total


def ball_query(
    builder: Builder, op: caffe_ops.BallQuery, points: Value, centers: Value, result: Value
) -> None:
    """Build float32 (sets, centers, count), as ``references.points`` does.

    Raises:
        Refused: the number of points is not known.
    """
    body = Body(builder)
    count = points.shape[1]
    squares = _all_squares(body, centers, points)
    most = float(np.float32(op.radius) * np.float32(op.radius))
    inside = body(hub.Cast(to=_FLOAT), body(hub.Not(), body(hub.Greater(), squares, Full((), most))))
    # The first points rank highest, those outside at 0.
    rank = body(hub.Mul(), inside, body.array(count - np.arange(count, dtype=np.float32)))
    taken = min(op.count, count)
    best, _ = body.several(hub.TopK(K=taken, axis=2), 2, rank)
    first = body(hub.Sub(), Full((), float(count)), body.part(best, 0, 1))
    some = body(hub.Greater(), body.part(best, 0, 1), Full((), 0.0))
    first = body(hub.Where(), some, first, Full((), 0.0))
    within = body(hub.Greater(), best, Full((), 0.0))
    found = body(hub.Where(), within, body(hub.Sub(), Full((), float(count)), best), first)
    more = [first] * (op.count - taken)
    body.give(result, hub.Concat(axis=2), found, *more)


def nearest_three(
    builder: Builder,
    op: caffe_ops.NearestThree,
    centers: Value,
    points: Value,
    distances: Value,
    indices: Value | None = None,
) -> None:
    """Build float32 (sets, centers, 3) twice, as ``references.points`` does.

    Raises:
        Refused: the number of points is not known.
    """
    body = Body(builder)
    squares = _all_squares(body, centers, points)
    sets, count, own = squares.shape[:]
    taken = min(3, own)
    # Of equal ones the first, which least ones of opset 11 on are too.
    most, places = body.several(hub.TopK(K=taken, axis=2), 2, body(hub.Neg(), squares))
    found = body(hub.Neg(), most)
    where = body(hub.Cast(to=_FLOAT), places)
    missing = (sets, count, 3 - taken)
    for result, value, none in ((distances, found, float("inf")), (indices, where, 0.0)):
        if result is not None:
            more = [Full(missing, none)] if taken < 3 else []
            body.give(result, hub.Concat(axis=2), value, *more)
