"""The bodies of ``caffe.PSROIPooling`` and its like: R-FCN's means over bins of regions."""

from __future__ import annotations

import numpy as np

from caffeforge.generated import hub
from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import Full
from caffeforge.runtime.builder import Builder
from caffeforge.runtime.graph import Value
from caffeforge.runtime.onnx_node import element_type
from caffeforge.runtime.onnx_out.bodies.body import Body
from caffeforge.runtime.refusal import Refused

_LEAST = 0.1  # pixels: regions are at least so large
_LARGEST = float(np.finfo(np.float32).max)  # older opsets bound on both sides
_DOUBLE = element_type("float64")
_INT = element_type("int64")
_FLOAT = element_type("float32")


def psroi_pooling(
    builder: Builder, op: caffe_ops.PSROIPooling, data: Value, rois: Value, result: Value
) -> None:
    """Build float32 (regions, output_dim, group_size, group_size), as ``references.region_pooling`` does.

    The sum over a bin is a difference of four sums over all that is above and left of its corners. These are
    float64, so nothing is lost in the difference.

    Raises:
        Refused: the size of the map is not known, or its channels are not those of the bins.
    """
    _give_means(Body(builder), op, data, rois, result, 1.0)


def psroi_mask_pooling(
    builder: Builder, op: caffe_ops.PSROIMaskPooling, data: Value, rois: Value, result: Value
) -> None:
    """Build what `psroi_pooling` does, for bins that are `bin_scale` times as large about their middles."""
    _give_means(Body(builder), op, data, rois, result, op.bin_scale)


_Op = caffe_ops.PSROIPooling | caffe_ops.PSROIMaskPooling


def _give_means(body: Body, op: _Op, data: Value, rois: Value, result: Value, bin_scale: float) -> None:
    bins, (images, channels, height, width) = op.group_size, data.shape[:]
    if channels != op.output_dim * bins * bins:
        raise Refused(
            f"{op.output_dim} results of {bins} x {bins} bins need as many channels, there are {channels}"
        )
    sums = body.reshape(_summed(body, data), images * channels * (height + 1) * (width + 1))
    edges = [_edges(op, body, rois, axis, size, bin_scale) for axis, size in ((1, width), (2, height))]
    (left, right), (top, bottom) = edges
    # (regions, output_dim, rows, columns) of places in the sums' planes.
    image = body.reshape(body(hub.Cast(to=_INT), body.part(rois, 0, 1)), -1, 1, 1, 1)
    planes = np.arange(channels).reshape(1, op.output_dim, bins, bins)
    plane = body(hub.Add(), body(hub.Mul(), image, Full((), channels, "int64")), body.array(planes))
    start = body(hub.Mul(), plane, Full((), (height + 1) * (width + 1), "int64"))

    def corner(y: Value, x: Value) -> Value:
        line = body.reshape(body(hub.Mul(), y, Full((), width + 1, "int64")), -1, 1, bins, 1)
        place = body(hub.Add(), line, body.reshape(x, -1, 1, 1, bins))
        return body(hub.Gather(axis=0), sums, body(hub.Add(), start, place))

    inner = body(hub.Sub(), corner(bottom, right), corner(bottom, left))
    outer = body(hub.Sub(), corner(top, right), corner(top, left))
    wide, high = body(hub.Sub(), right, left), body(hub.Sub(), bottom, top)
    area = body(hub.Mul(), body.reshape(high, -1, 1, bins, 1), body.reshape(wide, -1, 1, 1, bins))
    # An empty bin's sum is 0: divided by 1 it stays so.
    divisor = body(hub.Clip(min=1.0, max=_LARGEST), body(hub.Cast(to=_FLOAT), area))
    mean = body(hub.Div(), body(hub.Sub(), inner, outer), body(hub.Cast(to=_DOUBLE), divisor))
    body.give(result, hub.Cast(to=_FLOAT), mean)


def _summed(body: Body, data: Value) -> Value:
    """Return float64 (images, channels, height + 1, width + 1): what is above and left of each place."""
    height, width = data.shape[2:]
    above, left = np.tri(height + 1, height, -1), np.tri(width + 1, width, -1).T
    wide = body(hub.MatMul(), body(hub.Cast(to=_DOUBLE), data), body.array(left))
    return body(hub.MatMul(), body.array(above), wide)


def _edges(op: _Op, body: Body, rois: Value, axis: int, limit: int, bin_scale: float) -> tuple[Value, Value]:
    """Return where bins begin and end along one axis, int64 (regions, bins); none ends before it begins."""
    bins = op.group_size
    begin, end = (_rounded(body, body.part(rois, at, at + 1)) for at in (axis, axis + 2))
    scale = Full((), op.spatial_scale)
    start = body(hub.Mul(), begin, scale)
    stop = body(hub.Mul(), body(hub.Add(), end, Full((), 1.0)), scale)
    size = body(hub.Clip(min=_LEAST, max=_LARGEST), body(hub.Sub(), stop, start))
    step = body(hub.Div(), size, Full((), float(bins)))
    marks = body.array(np.arange(bins + 1, dtype=np.float32)[None])
    lines = body(hub.Add(), body(hub.Mul(), marks, step), start)
    begins, ends = body.part(lines, 0, bins), body.part(lines, 1, bins + 1)
    if bin_scale != 1:
        more = body(hub.Sub(), body(hub.Mul(), step, Full((), bin_scale)), step)
        more = body(hub.Mul(), more, Full((), 0.5))  # on each side of a bin
        begins, ends = body(hub.Sub(), begins, more), body(hub.Add(), ends, more)
    first, last = body(hub.Floor(), begins), body(hub.Ceil(), ends)
    first, last = (body(hub.Clip(min=0.0, max=float(limit)), side) for side in (first, last))
    last = body(hub.Add(), first, body(hub.Relu(), body(hub.Sub(), last, first)))
    places = [body(hub.Cast(to=_INT), side) for side in (first, last)]
    return places[0], places[1]


def _rounded(body: Body, value: Value) -> Value:
    """Return whole numbers as C rounds: halves go away from zero."""

    def of(part: Value) -> Value:
        return body(hub.Floor(), body(hub.Add(), part, Full((), 0.5)))

    below = body(hub.Relu(), body(hub.Neg(), value))
    return body(hub.Sub(), of(body(hub.Relu(), value)), of(below))
