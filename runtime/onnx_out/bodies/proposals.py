"""The bodies of ``caffe.Proposal`` and ``caffe.PartSortedProposal``: Faster R-CNN's regions."""

from __future__ import annotations

import numpy as np

from caffeforge.generated import hub
from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import Full
from caffeforge.runtime.builder import Builder
from caffeforge.runtime.graph import Value
from caffeforge.runtime.onnx_out.bodies.body import Body
from caffeforge.runtime.onnx_out.bodies.suppression import LOWEST, Limits, Suppression, by_op
from caffeforge.runtime.references.proposals import anchors
from caffeforge.runtime.refusal import Refused


def proposal(
    builder: Builder,
    op: caffe_ops.Proposal,
    scores: Value,
    deltas: Value,
    info: Value,
    rois: Value,
    own_scores: Value | None = None,
    *,
    suppress: Suppression = by_op,
) -> None:
    """Build float32 (found, 5) and (found), as ``references.proposals`` does, in its order.

    Raises:
        Refused: the size of the map is not known, or does not fit the anchors.
    """
    body = Body(builder)
    shapes = anchors(op.base_size, op.ratios, op.scales)
    images, _, rows, columns = scores.shape
    check_shapes(images, len(shapes), scores, deltas)
    if images > 1 and info.shape[0] > 1:
        raise Refused("one row tells the size of all images")
    count = rows * columns * len(shapes)
    height, width, scale = (body.part(body.reshape(info, -1), at, at + 1) for at in range(3))
    limits = body(hub.Sub(), body(hub.Concat(axis=0), width, height), Full((), 1.0))
    low, high = (body.reshape(side, images * count, 2) for side in _sides(op, body, deltas, limits))
    small = _small(op, body, low, high, scale)
    own = body(hub.Transpose(perm=(0, 2, 3, 1)), body.part(scores, len(shapes), 2 * len(shapes), 1))
    own = body(hub.Where(), small, Full((), LOWEST), body.reshape(own, images * count))
    taken = min(op.pre_nms_top_n, count) if op.pre_nms_top_n > 0 else count
    most = op.post_nms_top_n if op.post_nms_top_n > 0 else taken
    boxes = (low, high, body.reshape(own, images, count))
    _give(body, boxes, taken, most, op.nms_threshold, (rois, own_scores), suppress)


def part_sorted_proposal(
    builder: Builder,
    op: caffe_ops.PartSortedProposal,
    scores: Value,
    deltas: Value,
    info: Value,
    rois: Value,
    own_scores: Value | None = None,
    *,
    suppress: Suppression = by_op,
) -> None:
    """Build float32 (found, 5) and (found), as ``references.part_sorted_proposals`` does, in its order.

    Raises:
        Refused: the size of the map is not known, does not fit the anchors, or more of them than are sorted.
    """
    body = Body(builder)
    shapes = anchors(op.base_size, op.ratios, op.scales)
    _, _, rows, columns = scores.shape
    check_shapes(1, len(shapes), scores, deltas)
    count = rows * columns * len(shapes)
    if count > op.sorted:
        raise Refused(f"of {count} anchors {op.sorted} are sorted, and the others lie as a heap leaves them")
    height, width, scale = (body.part(body.reshape(info, -1), at, at + 1) for at in range(3))
    sides = body(hub.Floor(), body(hub.Concat(axis=0), width, height))
    limits = body(hub.Sub(), sides, Full((), 1.0))
    # The last anchor comes first: of equal scores TopK takes the first.
    order = body.array(np.arange(count).reshape(rows * columns, len(shapes)).T.reshape(-1)[::-1].copy())
    low, high = (
        body(hub.Gather(axis=0), body.reshape(side, count, 2), order)
        for side in _sides(op, body, deltas, limits)
    )
    small = body(hub.And(), _small(op, body, low, high, scale), body.array(np.arange(count) > 0))
    own = body(hub.Transpose(perm=(0, 2, 3, 1)), body.part(scores, len(shapes), 2 * len(shapes), 1))
    own = body(hub.Gather(axis=0), body.reshape(own, count), order)
    own = body(hub.Where(), small, Full((), LOWEST), own)
    boxes = (low, high, body.reshape(own, 1, count))
    _give(body, boxes, count, op.count, op.nms_threshold, (rois, own_scores), suppress)


def check_shapes(images: int, count: int, scores: Value, deltas: Value) -> None:
    """Refuse what is not two scores and four deltas of each of `count` anchors at each place of the images.

    Raises:
        Refused: naming the first that is not.
    """
    for value, each in ((scores, 2), (deltas, 4)):
        due = (images, each * count, *scores.shape[2:])
        if value.shape[:] != due:
            raise Refused(f"{count} anchors need {list(due)}, {value!r} is given")


def _small(
    op: caffe_ops.Proposal | caffe_ops.PartSortedProposal, body: Body, low: Value, high: Value, scale: Value
) -> Value:
    """Return bool (boxes): which are too small."""
    sides = body(hub.Add(), body(hub.Sub(), high, low), Full((), 1.0))
    least = body(hub.Mul(), scale, Full((), op.min_size))
    return body(hub.Less(), body(hub.ReduceMin(axes=(1,), keepdims=0), sides), least)


def _give(
    body: Body,
    boxes: tuple[Value, Value, Value],
    taken: int,
    most: int,
    threshold: float,
    results: tuple[Value, Value | None],
    suppress: Suppression,
) -> None:
    """Give the regions that stay, at most ``most`` of the best ``taken`` of each image, and their scores.

    boxes: two corners (images * count, 2), scores (images, count).
    """
    low, high, own = boxes
    rois, own_scores = results
    images, count = own.shape
    best, places = body.several(hub.TopK(K=taken, axis=1), 2, own)
    starts = body.array(np.arange(images)[:, None] * count)
    places = body.reshape(body(hub.Add(), places, starts), images * taken)
    low, high = (body(hub.Gather(axis=0), side, places) for side in (low, high))
    ends = body(hub.Add(), high, Full((), 1.0))  # the last pixel counts
    joined = body.reshape(body(hub.Concat(axis=1), low, ends), images, taken, 4)
    mask = body.reshape(suppress(body, joined, best, Limits(threshold, LOWEST, most)), images * taken)
    where = body.open(hub.NonZero(), mask, dims=(1, body.size(rois.dims[0], "found")))
    where = body(hub.Squeeze(axes=(0,)), where)
    image = body.array(np.repeat(np.arange(images, dtype=np.float32), taken)[:, None])
    body.give(rois, hub.Gather(axis=0), body(hub.Concat(axis=1), image, low, high), where)
    if own_scores is not None:
        body.give(own_scores, hub.Gather(axis=0), body.reshape(best, images * taken), where)


def _sides(
    op: caffe_ops.Proposal | caffe_ops.PartSortedProposal, body: Body, deltas: Value, limits: Value
) -> tuple[Value, Value]:
    """Return the corners (images, cells, anchors, 2) of the anchors that were moved, within the image."""
    shapes = anchors(op.base_size, op.ratios, op.scales).astype(np.float32)
    images, _, rows, columns = deltas.shape
    x, y = np.meshgrid(np.arange(columns) * op.stride, np.arange(rows) * op.stride)
    cells = np.stack([x, y], -1).reshape(-1, 1, 2).astype(np.float32)
    sizes = shapes[:, 2:] - shapes[:, :2] + 1
    moved = body(hub.Transpose(perm=(0, 2, 3, 1)), deltas)
    moved = body.reshape(moved, images, rows * columns, len(shapes), 4)
    middle = body(hub.Mul(), body.part(moved, 0, 2), body.array(sizes))
    middle = body(hub.Add(), middle, body.array(shapes[:, :2] + sizes / 2))  # within the cell at 0
    middle = body(hub.Add(), middle, body.array(cells))
    half = body(hub.Mul(), body(hub.Exp(), body.part(moved, 2, 4)), body.array(sizes / 2))
    low, high = body(hub.Sub(), middle, half), body(hub.Add(), middle, half)
    inside = [body(hub.Min(), body(hub.Max(), side, Full((), 0.0)), limits) for side in (low, high)]
    return inside[0], inside[1]
