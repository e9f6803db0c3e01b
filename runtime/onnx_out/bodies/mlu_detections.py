"""Bodies of Cambricon's detectors: YOLO 2, YOLO 3 and the end of Faster R-CNN."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caffeforge.generated import hub
from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import Full, NDArray
from caffeforge.runtime.builder import Builder, Operand
from caffeforge.runtime.graph import Graph, Origin, Value
from caffeforge.runtime.onnx_node import element_type
from caffeforge.runtime.onnx_out.bodies.body import Body
from caffeforge.runtime.onnx_out.bodies.repeated import Repeated
from caffeforge.runtime.onnx_out.bodies.suppression import LOWEST, Limits, Suppression, by_op
from caffeforge.runtime.onnx_out.bodies.survivors import Boxes, padded, survivors
from caffeforge.runtime.onnx_out.bodies.yolo_boxes import cell_boxes
from caffeforge.runtime.refusal import Refused

_FLOAT = element_type("float32")
_INT = element_type("int64")
_HEAD = 64  # numbers before the boxes of Yolov3Detection
_ANCHORS = 3  # of a cell, in Yolov3Detection


def detection_out(
    builder: Builder,
    op: caffe_ops.DetectionOut,
    data: Value,
    result: Value,
    *,
    suppress: Suppression = by_op,
) -> None:
    """Build float32 (1, 1, found, 7), as ``references.mlu_detections`` does, in its order.

    Raises:
        Refused: the size of the map is not known, or does not fit the anchors.
    """
    body = Body(builder)
    anchors = np.reshape(op.anchors, (-1, 2))
    _check_map(data, len(anchors), op.num_classes)
    middle, wide, objects, values = cell_boxes(body, data, anchors, op.num_classes, 1.0)
    scores = body(hub.Mul(), objects, body(hub.Softmax(axis=1), values))
    best = body(hub.ReduceMax(axes=(1,), keepdims=1), scores)
    at = body.chosen(body.at_least(body.reshape(best, -1), op.score_threshold))
    label = body(hub.Cast(to=_FLOAT), body(hub.ArgMax(axis=1, keepdims=1), scores))
    own = [body(hub.Gather(axis=0), each, at) for each in (label, best, middle, wide)]
    half = body(hub.Div(), own[3], Full((), 2.0))
    low, high = body(hub.Sub(), own[2], half), body(hub.Add(), own[2], half)
    # Only what lies in the image counts.
    inside = body(hub.Max(), low, Full((), 0.0)), body(hub.Min(), high, Full((), 1.0))
    boxes = body(hub.Unsqueeze(axes=(0,)), body(hub.Concat(axis=1), *inside))
    first = body(hub.Unsqueeze(axes=(0,)), body(hub.Neg(), body(hub.Cast(to=_FLOAT), at)))  # they go first
    # What overlaps by the threshold itself goes too.
    threshold = float(np.nextafter(np.float32(op.nms_threshold), np.float32(-1)))
    mask = suppress(body, boxes, first, Limits(threshold, LOWEST, best.shape[0]))
    table = body(hub.Concat(axis=1), body.zeros(own[0]), *own)
    kept = body.chosen(body.reshape(mask, -1), body.size(result.dims[2], "found"))
    body.give(result, hub.Reshape(shape=(1, 1, -1, 7)), body(hub.Gather(axis=0), table, kept))


def _check_map(data: Value, boxes: int, classes: int) -> None:
    images, channels, _, _ = data.shape[:]
    if images != 1 or channels != boxes * (5 + classes):
        raise Refused(
            f"{boxes} boxes of {classes} classes need a map [1, {boxes * (5 + classes)}, rows, columns], "
            f"it is {[*data.shape[:]]}"
        )


def yolov3_detection(
    builder: Builder,
    op: caffe_ops.Yolov3Detection,
    maps: Sequence[Value],
    result: Value,
    *,
    suppress: Suppression = by_op,
) -> None:
    """Build float32 (1, 64 + 7 * most, 1, 1), as ``references.mlu_detections`` does, in its order.

    A run fails where more boxes stay than there is room for.

    Raises:
        Refused: the size of a map is not known, or does not fit the anchors.
    """
    body = Body(builder)
    anchors = np.reshape(op.anchors, (len(maps), _ANCHORS, 2))
    found = [_in_pixels(op, body, data, own) for data, own in zip(maps, anchors, strict=True)]
    boxes, scores = (body(hub.Concat(axis=0), *each) for each in zip(*found, strict=True))
    count = boxes.shape[0]
    by_class = body(hub.Transpose(perm=(1, 0)), scores)
    orders = _orders(body, by_class)
    starts = body.array(np.arange(op.num_classes)[:, None] * count)
    flat = body.reshape(by_class, -1)
    sorted_ = body(hub.Gather(axis=0), flat, body(hub.Add(), orders, starts))
    # Ranks at which any class has a box.
    some = body(hub.ReduceMax(axes=(0,), keepdims=0), sorted_)
    ranks = body.chosen(body(hub.Greater(), some, Full((), 0.0)))
    orders_of, best = (body(hub.Gather(axis=1), each, ranks) for each in (orders, sorted_))
    # Pixels count at both ends.
    ends = body(hub.Add(), body.part(boxes, 2, 4), Full((), 1.0))
    areas = body(hub.Concat(axis=1), body.part(boxes, 0, 2), ends)
    limits = Limits(op.nms_threshold, 0.0, count)
    mask = suppress(body, body(hub.Gather(axis=0), areas, orders_of), best, limits)
    places = body.reshape(body(hub.Add(), orders_of, starts), -1)
    none = Full((op.num_classes * count,), 0.0)
    stays = body(hub.ScatterElements(axis=0), none, places, body.reshape(mask, -1))
    last = body.reshape(body.part(orders, op.num_classes - 1, op.num_classes, 0), count)
    stays = body(hub.Gather(axis=1), body.reshape(stays, op.num_classes, count), last)
    at = body.chosen(body.reshape(body(hub.Transpose(perm=(1, 0)), stays), -1))
    rank = body(hub.Div(), at, Full((), op.num_classes, "int64"))
    label = body(hub.Sub(), at, body(hub.Mul(), rank, Full((), op.num_classes, "int64")))
    box = body(hub.Gather(axis=0), last, rank)
    place = body(hub.Add(), body(hub.Mul(), label, Full((), count, "int64")), box)
    own = [
        body(hub.Unsqueeze(axes=(1,)), each)
        for each in (body(hub.Cast(to=_FLOAT), label), body(hub.Gather(axis=0), flat, place))
    ]
    sides = body.array(np.array([[op.image_size[1], op.image_size[0]] * 2], np.float32))
    parts = body(hub.Div(), body(hub.Gather(axis=0), boxes, box), sides)
    table = body(hub.Concat(axis=1), body.zeros(own[0]), *own, parts)
    _give_list(op, body, table, result)


def _in_pixels(
    op: caffe_ops.Yolov3Detection, body: Body, data: Value, anchors: NDArray
) -> tuple[Value, Value]:
    """Return the boxes (count, 4) of a map in pixels, and their scores (count, classes), 0 where too low."""
    _check_map(data, _ANCHORS, op.num_classes)
    cells = data.shape[3]
    middle, wide, objects, values = cell_boxes(body, data, anchors, op.num_classes, 1.0)
    middle = body(hub.Mul(), middle, Full((), float(cells * (op.image_size[1] // cells))))
    half = body(hub.Div(), body(hub.Mul(), wide, Full((), float(cells))), Full((), 2.0))
    boxes = body(hub.Concat(axis=1), body(hub.Sub(), middle, half), body(hub.Add(), middle, half))
    scores = body(hub.Mul(), objects, body.sigmoid(values))
    bound = Full((), op.score_threshold)
    good = body(hub.And(), body(hub.Greater(), objects, bound), body(hub.Greater(), scores, bound))
    return boxes, body(hub.Where(), good, scores, Full((), 0.0))


def _orders(body: Body, scores: Value) -> Value:
    """Return int64 (classes, count): boxes by their scores of each class, equal ones as the class before."""
    classes, count = scores.shape[:]
    step, before = Value("step", "int64", ()), Value("before", "float32", (count,))
    read = Value("scores", "float32", (classes, count))
    builder = Builder("class", Origin())
    inner = Body(builder)
    own = inner.reshape(inner(hub.Gather(axis=0), read, inner.reshape(step, 1)), count)
    own = inner(hub.Gather(axis=0), own, inner(hub.Cast(to=_INT), before))
    _, places = inner.several(hub.TopK(K=count, axis=0), 2, own)  # of equal ones the first
    after = inner(hub.Gather(axis=0), before, places)
    given = inner(hub.Identity(), after)
    op = Repeated(Graph("class", [step, before, read], [after, given], builder.nodes), 1)
    start = body.array(np.arange(count, dtype=np.float32))
    operands: list[Operand] = [Full((), classes, "int64"), start, scores]
    _, orders = body.all_open(op, operands, [(count,), (classes, count)])
    return body(hub.Cast(to=_INT), orders)


def _give_list(op: caffe_ops.Yolov3Detection, body: Body, table: Value, result: Value) -> None:
    """Give how many rows there are, then the rows, -1 elsewhere."""
    row = body.reshape(body.count(body.part(table, 0, 1)), 1)
    free = body(hub.Mul(), body(hub.Sub(), Full((1,), op.most, "int64"), row), Full((1,), 7, "int64"))
    zeros = body.open(hub.ConstantOfShape(), free, dims=(body.own_size("free"),), dtype="float32")
    parts: list[Operand] = [
        body(hub.Cast(to=_FLOAT), row),
        Full((_HEAD - 1,), -1.0),
        body.reshape(table, -1),
        body(hub.Sub(), zeros, Full((), 1.0)),
    ]
    body.give(result, hub.Reshape(shape=result.shape[:]), body(hub.Concat(axis=0), *parts))


def image_detect(
    builder: Builder, op: caffe_ops.ImageDetect, deltas: Value, scores: Value, rois: Value, result: Value
) -> None:
    """Build float32 (1, regions * classes, 1, 6), as ``references.mlu_detections`` does, in its order.

    Raises:
        Refused: the number of regions is not known.
    """
    body = Body(builder)
    count, classes = deltas.shape[0], op.num_classes
    low, high = _moved(op, body, body.reshape(deltas, count, classes, 4), body.reshape(rois, count, 5))
    low, high = (body(hub.Transpose(perm=(1, 0, 2)), each) for each in (low, high))
    own = body(hub.Transpose(perm=(1, 0)), body.reshape(scores, count, classes))
    area = body(hub.ReduceProd(axes=(2,), keepdims=0), body(hub.Sub(), high, low))

    def overlap(body: Body, sides: Value, one: Value, areas: Value) -> Value:
        whole = body(hub.Floor(), body(hub.Relu(), sides))  # whole pixels: the program cuts them
        shared = body(hub.ReduceProd(axes=(2,), keepdims=0), whole)
        part = body(hub.Div(), shared, body(hub.Sub(), body(hub.Add(), areas, one), shared))
        return body.at_least(part, op.nms_threshold)

    kept = survivors(body, Boxes(low, high, area, own), overlap, dropped_meet=True)
    sure = body(hub.Cast(to=_FLOAT), body(hub.Greater(), own, Full((), op.score_threshold)))
    kept = body(hub.Mul(), kept, sure)
    labels = np.repeat(np.arange(classes, dtype=np.float32), count)[:, None]
    corners = [body.reshape(each, classes * count, 2) for each in (low, high)]
    table = body(hub.Concat(axis=1), *corners, body.array(labels), body.reshape(own, classes * count, 1))
    body.give(result, hub.Reshape(shape=result.shape[:]), padded(body, table, kept, count * classes))


def _moved(op: caffe_ops.ImageDetect, body: Body, deltas: Value, rois: Value) -> tuple[Value, Value]:
    """Return the corners (regions, classes, 2) of boxes in pixels, within the image."""
    regions = body(hub.Div(), body.part(rois, 1, 5), Full((), op.scale))
    start = body.part(regions, 0, 2)
    size = body(hub.Add(), body(hub.Sub(), body.part(regions, 2, 4), start), Full((), 1.0))
    middle = body(hub.Add(), start, body(hub.Div(), size, Full((), 2.0)))
    size, middle = (body(hub.Unsqueeze(axes=(1,)), each) for each in (size, middle))
    middle = body(hub.Add(), middle, body(hub.Mul(), size, body.part(deltas, 0, 2)))
    half = body(hub.Mul(), body(hub.Exp(), body.part(deltas, 2, 4)), size)
    half = body(hub.Div(), half, Full((), 2.0))
    edges = np.array(op.image_size[::-1], np.float32)
    low = body(hub.Max(), body(hub.Sub(), middle, half), Full((), 0.0))
    high = body(hub.Add(), middle, half)
    inside = body(hub.Less(), high, body.array(edges))
    return low, body(hub.Where(), inside, high, body.array(edges - 1))
