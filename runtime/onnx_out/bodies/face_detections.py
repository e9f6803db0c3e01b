"""The body of ``caffe.RetinaFaceDetection``: faces and their points, padded with zeros."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caffeforge.generated import hub
from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import Full
from caffeforge.runtime.builder import Builder
from caffeforge.runtime.graph import Graph, Origin, Value
from caffeforge.runtime.onnx_node import element_type
from caffeforge.runtime.onnx_out.bodies.body import Body
from caffeforge.runtime.onnx_out.bodies.repeated import Repeated
from caffeforge.runtime.onnx_out.bodies.survivors import padded
from caffeforge.runtime.references.face_detections import LEVELS, MIDDLE, POINTS, UNIT
from caffeforge.runtime.refusal import Refused

_FLOAT = element_type("float32")
_COLUMNS = 5 + 2 * POINTS


def retina_face_detection(
    builder: Builder, op: caffe_ops.RetinaFaceDetection, maps: Sequence[Value], faces: Value
) -> None:
    """Build float32 (images, 1, keep_top_k, 15), as ``references.face_detections`` does, in its order.

    Raises:
        Refused: the size of a map is not known, or there are not scores, deltas and points of three.
    """
    body = Body(builder)
    images = maps[0].shape[0]
    depths = (4, 8, 4 * POINTS) * len(LEVELS)
    if [m.shape[:2] for m in maps] != [(images, depth) for depth in depths]:
        raise Refused("three maps are due, each of 4 scores, 8 deltas and 20 numbers of points in a cell")
    levels = [_of_level(body, maps[at : at + 3], *sizes) for at, sizes in zip((6, 3, 0), LEVELS, strict=True)]
    table = body(hub.Concat(axis=1), *levels)  # (images, count, 15)
    count = table.shape[1]
    found = []
    for image in range(images):
        rows = body.reshape(body.part(table, image, image + 1, 0), count, _COLUMNS)
        best, places = body.several(
            hub.TopK(K=count, axis=0), 2, body.reshape(body.part(rows, 4, 5), count)
        )  # of equal ones the first
        good = body.chosen(body.at_least(best, op.score_threshold))
        rows = body(hub.Gather(axis=0), rows, body(hub.Gather(axis=0), places, good))
        found.append(padded(body, rows, _chosen(body, rows, op.nms_threshold), op.keep_top_k))
    body.give(faces, hub.Reshape(shape=faces.shape[:]), body(hub.Concat(axis=0), *found))


def _of_level(body: Body, maps: Sequence[Value], stride: int, scales: Sequence[int]) -> Value:
    """Return all faces (images, anchors * cells, 15) of one level, by anchor, then cell."""
    scores, deltas, points = maps
    images, _, rows, columns = scores.shape[:]
    cells, anchors = rows * columns, len(scales)

    def by_face(value: Value, numbers: int) -> Value:
        parts = body.reshape(value, images, anchors, numbers, cells)
        return body.reshape(body(hub.Transpose(perm=(0, 1, 3, 2)), parts), images, anchors * cells, numbers)

    own = by_face(body.part(scores, anchors, 2 * anchors, 1), 1)
    y, x = np.mgrid[:rows, :columns].astype(np.float32)
    middle = np.stack([x, y], -1).reshape(-1, 2) * stride + np.float32(MIDDLE)
    middle = np.tile(middle, (anchors, 1)).astype(np.float32)
    size = np.repeat(np.array(scales, np.float32) * UNIT + 1, cells)[:, None]
    told, marks = by_face(deltas, 4), by_face(points, 2 * POINTS)
    at = body(hub.Mul(), body.part(told, 0, 2), body.array(size))
    at = body(hub.Add(), at, body.array(middle))
    half = body(hub.Mul(), body(hub.Exp(), body.part(told, 2, 4)), body.array(size))
    half = body(hub.Div(), body(hub.Sub(), half, Full((), 1.0)), Full((), 2.0))
    marks = body(hub.Mul(), marks, body.array(size))
    marks = body(hub.Add(), marks, body.array(np.tile(middle, (1, POINTS))))
    return body(hub.Concat(axis=2), body(hub.Sub(), at, half), body(hub.Add(), at, half), own, marks)


def _chosen(body: Body, rows: Value, threshold: float) -> Value:
    """Return which of the faces (found, 15), best first, stay, (found): see ``face_detections.chosen``."""
    dims = rows.dims[:1]
    low, high = body.part(rows, 0, 2), body.part(rows, 2, 4)
    sides = body(hub.Add(), body(hub.Sub(), high, low), Full((), 1.0))
    area = body(hub.ReduceProd(axes=(1,), keepdims=0), sides)
    places = body.chosen(body.ones(area), dims[0])
    read = [low, high, area, places, body.reshape(body.count(area), 1)]
    op = Repeated(_one_face(read, threshold), 1)
    (kept,) = body.all_open(op, [body.count(area), body.ones(area), *read], [dims])
    return kept


def _one_face(values: Sequence[Value], threshold: float) -> Graph:
    """Return what is done for one face: (step, who is there, what it reads) -> who is there."""
    step, there = Value("step", "int64", ()), Value("there", "float32", values[2].dims)
    names = ("low", "high", "area", "places", "count")
    read = [Value(name, v.dtype, v.dims) for name, v in zip(names, values, strict=True)]
    low, high, area, places, count = read
    builder = Builder("each", Origin())
    body = Body(builder)
    at = body.reshape(step, 1)
    one = Full((1,), 1, "int64")
    # The one behind it; behind the last is none, and what comes of that meets nobody.
    behind = body(hub.Add(), at, one)
    ends = body(hub.Equal(), behind, count)
    behind = body(hub.Sub(), behind, body(hub.Cast(to=element_type("int64")), ends))

    def of(value: Value, where: Value) -> Value:
        return body(hub.Gather(axis=0), value, where)

    def true(value: Value) -> Value:
        return body(hub.Cast(to=_FLOAT), value)

    sides = body(hub.Sub(), body(hub.Min(), high, of(high, behind)), body(hub.Max(), low, of(low, behind)))
    sides = body(hub.Add(), sides, Full((), 1.0))
    some = body(hub.Greater(), body(hub.ReduceMin(axes=(1,), keepdims=0), sides), Full((), 0.0))
    shared = body(hub.ReduceProd(axes=(1,), keepdims=0), sides)
    whole = body(hub.Sub(), body(hub.Add(), of(area, at), area), shared)
    much = body(hub.Greater(), body(hub.Div(), shared, whole), Full((), threshold))
    later = body(hub.Greater(), places, at)
    gone = true(body(hub.And(), body(hub.And(), some, much), later))
    gone = body(hub.Mul(), gone, of(there, at))
    after = body(hub.Mul(), there, body(hub.Sub(), Full((), 1.0), gone))
    return Graph("each", [step, there, *read], [after], builder.nodes)
