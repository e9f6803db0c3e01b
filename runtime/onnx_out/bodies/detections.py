"""The body of ``caffe.DetectionOutput``: SSD's last layer."""

from __future__ import annotations

from math import prod

import numpy as np

from caffeforge.generated import hub
from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import Full, NDArray
from caffeforge.runtime.builder import Builder
from caffeforge.runtime.graph import Value
from caffeforge.runtime.onnx_out.bodies.body import Body
from caffeforge.runtime.onnx_out.bodies.suppression import LOWEST, Limits, Suppression, by_op
from caffeforge.runtime.refusal import Refused


def detection_output(
    builder: Builder,
    op: caffe_ops.DetectionOutput,
    locations: Value,
    confidences: Value,
    priors: Value,
    boxes: Value,
    *,
    suppress: Suppression = by_op,
) -> None:
    """Build float32 (1, 1, found, 7), as ``references.detections`` does, in its order.

    All boxes of a class stand in a row, best first, and a mask tells which stay; those are read off at last.
    A row more for each image stands below them all: it counts where nothing is found.

    Raises:
        Refused: the number of boxes or images is not known, or it does not suit `suppress`.
    """
    if op.nms_top_k == 0 or op.keep_top_k == 0:
        raise Refused("it keeps no box at all")
    body = Body(builder)
    images, count = locations.shape[0], priors.shape[2] // 4
    coded = 1 if op.shared_locations else op.num_classes
    _check_sizes(op, locations, confidences, priors)
    labels = [label for label in range(op.num_classes) if label != op.background]
    decoded = _decoded(op, body, body.reshape(locations, images, count, coded, 4), priors)
    scores = body(hub.Transpose(perm=(0, 2, 1)), body.reshape(confidences, images, count, op.num_classes))
    scores = body(hub.Gather(axis=1), scores, body.array(np.array(labels)))
    taken = min(op.nms_top_k, count) if op.nms_top_k > 0 else count
    best, places = body.several(hub.TopK(K=taken, axis=2), 2, scores)  # of equal ones the first, as in Caffe
    rows = images * len(labels)
    sorted_boxes = _gathered(op, body, decoded, places, labels)
    sorted_scores = body.reshape(best, rows, taken)
    limits = Limits(op.nms_threshold, max(op.score_threshold, LOWEST), taken, op.nms_eta)
    mask = suppress(body, _of_no_area(op, body, sorted_boxes), sorted_scores, limits)
    if -1 < op.keep_top_k < len(labels) * taken:
        mask = _best(body, mask, sorted_scores, images, op.keep_top_k)
    found = body.size(boxes.dims[2], "found")
    nothing = body(hub.Sub(), Full((), 1.0), body(hub.ReduceMax(axes=(0, 1), keepdims=0), mask))
    first = np.zeros((images, taken), np.float32)
    first[:, 0] = 1
    mask = body(hub.Concat(axis=0), mask, body(hub.Mul(), body.array(first), nothing))
    where = body.open(hub.NonZero(), mask, dims=(2, found))
    row, rank = (body(hub.Gather(axis=0), where, Full((), axis, "int64")) for axis in (0, 1))
    at = body(hub.Add(), body(hub.Mul(), row, Full((), taken, "int64")), rank)
    heads = body(hub.Gather(axis=0), body.array(_heads(images, labels)), row)
    below = Full((images * taken, 1), -1.0), Full((images * taken, 4), -1.0)
    all_scores = body(hub.Concat(axis=0), body.reshape(sorted_scores, rows * taken, 1), below[0])
    all_boxes = body(hub.Concat(axis=0), body.reshape(sorted_boxes, rows * taken, 4), below[1])
    parts = [heads, *(body(hub.Gather(axis=0), each, at) for each in (all_scores, all_boxes))]
    body.give(boxes, hub.Reshape(shape=(1, 1, -1, 7)), body(hub.Concat(axis=1), *parts))


def _check_sizes(op: caffe_ops.DetectionOutput, locations: Value, confidences: Value, priors: Value) -> None:
    images, count = locations.shape[0], priors.shape[2] // 4
    coded = count * 4 * (1 if op.shared_locations else op.num_classes)
    held = count * 4 * (1 if op.variance_in_target and priors.shape[1] == 1 else 2)
    due = ((locations, images * coded), (confidences, images * count * op.num_classes), (priors, held))
    for value, size in due:
        if prod(value.shape[:]) != size:
            raise Refused(f"{value.name} has {prod(value.shape[:])} numbers, {size} are due")


def _decoded(op: caffe_ops.DetectionOutput, body: Body, locations: Value, priors: Value) -> Value:
    """Return boxes (images, count, coded, 4) from locations of that shape."""
    count = locations.shape[1]
    both = body.reshape(priors, priors.shape[1], count, 1, 4)
    default = body(hub.Gather(axis=0), both, Full((), 0, "int64"))
    moved = locations
    if not op.variance_in_target:
        moved = body(hub.Mul(), locations, body(hub.Gather(axis=0), both, Full((), 1, "int64")))
    low, high = body.part(default, 0, 2), body.part(default, 2, 4)
    if op.last_pixel:
        high = body(hub.Add(), high, Full((), 1.0))
    size = body(hub.Sub(), high, low)
    if op.code == "CORNER":
        return body(hub.Add(), default, moved)
    if op.code == "CORNER_SIZE":
        sizes = body(hub.Concat(axis=2), size, size)
        return body(hub.Add(), default, body(hub.Mul(), moved, sizes))
    if op.code != "CENTER_SIZE":
        raise Refused(f"code {op.code} is not known")
    middle = body(hub.Mul(), body(hub.Add(), low, high), Full((), 0.5))
    middle = body(hub.Add(), middle, body(hub.Mul(), body.part(moved, 0, 2), size))
    half = body(hub.Mul(), body(hub.Mul(), body(hub.Exp(), body.part(moved, 2, 4)), size), Full((), 0.5))
    return body(hub.Concat(axis=3), body(hub.Sub(), middle, half), body(hub.Add(), middle, half))


def _gathered(
    op: caffe_ops.DetectionOutput, body: Body, decoded: Value, places: Value, labels: list[int]
) -> Value:
    """Return the boxes at `places` (images, labels, taken), as (images * labels, taken, 4)."""
    images, count, coded, _ = decoded.shape
    flat = body.reshape(body(hub.Transpose(perm=(0, 2, 1, 3)), decoded), images * coded * count, 4)
    columns = np.zeros(len(labels), np.int64) if op.shared_locations else np.array(labels)
    starts = (np.arange(images)[:, None] * coded + columns) * count
    found = body(hub.Gather(axis=0), flat, body(hub.Add(), places, body.array(starts[:, :, None])))
    return body.reshape(found, images * len(labels), places.shape[2], 4)


def _of_no_area(op: caffe_ops.DetectionOutput, body: Body, boxes: Value) -> Value:
    """Return boxes by their edges, none with its right side left of its left one: such ones are empty."""
    low, high = body.part(boxes, 0, 2), body.part(boxes, 2, 4)
    if op.last_pixel:
        high = body(hub.Add(), high, Full((), 1.0))
    return body(hub.Concat(axis=2), low, body(hub.Max(), low, high))


def _best(body: Body, mask: Value, scores: Value, images: int, count: int) -> Value:
    """Return the mask of the `count` best boxes of each image, of equal ones the first."""
    rows, taken = mask.shape
    by_image = body.reshape(mask, images, rows // images * taken)
    lowest = body(hub.Mul(), body(hub.Sub(), Full((), 1.0), mask), Full((), LOWEST))
    own = body(hub.Add(), body(hub.Mul(), scores, mask), lowest)
    _, places = body.several(hub.TopK(K=count, axis=1), 2, body.reshape(own, images, rows // images * taken))
    ones = body.array(np.ones((images, count), np.float32))
    kept = body(hub.ScatterElements(axis=1), Full(by_image.shape[:], 0.0), places, ones)
    return body.reshape(body(hub.Mul(), kept, by_image), rows, taken)


def _heads(images: int, labels: list[int]) -> NDArray:
    """Return image and class of each row of boxes, then those of images where nothing is found."""
    found = [(image, label) for image in range(images) for label in labels]
    return np.array([*found, *((image, -1) for image in range(images))], np.float32)
