"""The body of ``caffe.PaddedProposal``: Faster R-CNN's regions as Cambricon's Caffe finds them."""

from __future__ import annotations

import numpy as np

from caffeforge.generated import hub
from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import Full, NDArray
from caffeforge.runtime.builder import Builder
from caffeforge.runtime.graph import Value
from caffeforge.runtime.onnx_node import element_type
from caffeforge.runtime.onnx_out.bodies.body import Body
from caffeforge.runtime.onnx_out.bodies.proposals import check_shapes
from caffeforge.runtime.onnx_out.bodies.suppression import LOWEST, Limits, Suppression, by_op
from caffeforge.runtime.onnx_out.bodies.survivors import padded
from caffeforge.runtime.references.padded_proposals import first_boxes
from caffeforge.runtime.refusal import Refused

_FLOAT = element_type("float32")
_DOUBLE = element_type("float64")


def padded_proposal(
    builder: Builder,
    op: caffe_ops.PaddedProposal,
    scores: Value,
    deltas: Value,
    info: Value,
    rois: Value,
    *,
    suppress: Suppression = by_op,
) -> None:
    """Build float32 (count, 5), as ``references.padded_proposals`` does, in its order; float64 in between.

    Raises:
        Refused: the size of the map is not known, or does not fit the anchors, or no region is kept.
    """
    if op.pre_nms_top_n < 1:
        raise Refused("it keeps no region at all")
    body = Body(builder)
    shapes = first_boxes(op)
    rows, columns = scores.shape[2:]
    check_shapes(1, len(shapes), scores, deltas)
    count = rows * columns * len(shapes)
    height, width, scale = _sizes(op, body, info)
    low, high = _corners(op, body, shapes, deltas)
    low = body(hub.Max(), low, Full((), 0.0))
    last = body(hub.Sub(), body(hub.Concat(axis=0), width, height), Full((), 1.0))
    high = body(hub.Min(), high, last)
    ends = body(hub.Add(), high, Full((), 1.0))  # the last pixel counts
    least = body.array(np.array(op.least, np.float64))
    least = body(hub.Mul(), least, body(hub.Cast(to=_DOUBLE), scale))
    sides = body(hub.Cast(to=_DOUBLE), body(hub.Add(), body(hub.Sub(), high, low), Full((), 1.0)))
    small = body(hub.Cast(to=_FLOAT), body(hub.Less(), sides, least))
    small = body(hub.Greater(), body(hub.ReduceMax(axes=(1,), keepdims=0), small), Full((), 0.0))
    own = body.reshape(body.part(scores, len(shapes), 2 * len(shapes), 1), count)
    own = body(hub.Where(), small, Full((), LOWEST), own)
    taken = min(op.pre_nms_top_n, count)
    best, places = body.several(hub.TopK(K=taken, axis=0), 2, own)  # of equal ones the first
    boxes = body(hub.Gather(axis=0), body(hub.Concat(axis=1), low, ends), places)
    mask = suppress(
        body,
        body(hub.Unsqueeze(axes=(0,)), boxes),
        body(hub.Unsqueeze(axes=(0,)), best),
        Limits(op.nms_threshold, LOWEST, op.count),
    )
    table = body(hub.Concat(axis=1), Full((count, 1), 0.0), low, high)
    found = padded(body, body(hub.Gather(axis=0), table, places), mask, op.count)
    body.give(rois, hub.Reshape(shape=(op.count, 5)), found)


def _sizes(op: caffe_ops.PaddedProposal, body: Body, info: Value) -> list[Value]:
    """Return the height, the width and the scale, float32 (1) each: those given, or the op's own."""
    given = body.part(body.reshape(info, -1), 0, 3)
    told = body(hub.Greater(), body(hub.Abs(), body.part(given, 0, 1)), Full((), 0.0))
    sizes = body(hub.Where(), told, given, body.array(np.array(op.image, np.float32)))
    return [body.part(sizes, at, at + 1) for at in range(3)]


def _corners(op: caffe_ops.PaddedProposal, body: Body, shapes: NDArray, deltas: Value) -> tuple[Value, Value]:
    """Return the corners (count, 2) of the regions, float32, by anchor, then cell."""
    rows, columns = deltas.shape[2:]
    cells = rows * columns
    y, x = np.mgrid[:rows, :columns] * op.stride
    places = (shapes[:, None, None] + np.stack([x, y, x, y], -1)).reshape(-1, 4)
    sizes = places[:, 2:] - places[:, :2] + 1
    moved = body(hub.Cast(to=_DOUBLE), body.reshape(deltas, len(shapes), 4, cells))
    moved = body.reshape(body(hub.Transpose(perm=(0, 2, 1)), moved), len(shapes) * cells, 4)
    middle = body(hub.Mul(), body.part(moved, 0, 2), body.array(sizes))
    middle = body(hub.Add(), body.array((places[:, :2] + places[:, 2:] + 1) / 2), middle)
    half = body(hub.Mul(), body(hub.Exp(), body.part(moved, 2, 4)), body.array(sizes))
    half = body(hub.Div(), half, Full((), 2.0, "float64"))
    ends = body(hub.Sub(), middle, half), body(hub.Add(), middle, half)
    low, high = (body(hub.Cast(to=_FLOAT), end) for end in ends)
    return low, high
