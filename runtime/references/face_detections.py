"""``caffe.RetinaFaceDetection``: faces and their five points, from anchors of three feature maps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.reference import reference
from caffeforge.runtime.references.survivors import fixed_rows

# Pixels from cell to cell, and the sides of both anchors in units; faces of the coarsest maps stand first.
LEVELS = ((32, (32, 16)), (16, (8, 4)), (8, (2, 1)))
UNIT = 17  # pixels; an anchor is one pixel wider than so many units
MIDDLE = 8.5  # of the first cell's anchors
POINTS = 5


@reference(caffe_ops.RetinaFaceDetection)
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def retina_face_detection(
    op: caffe_ops.RetinaFaceDetection, operands: Sequence[NDArray | None]
) -> Sequence[NDArray]:
    """Return float32 (images, 1, keep_top_k, 15): left, top, right, bottom, score, x and y of the points.

    The best faces come first, in pixels; zeros stand behind them.

    Raises:
        GraphError: there are not scores, deltas and points of three feature maps.
    """
    maps = [operand for operand in operands if operand is not None]
    shapes = [tuple(m.shape) for m in maps]
    due = [
        (len(maps[0]), n, *shapes[at - at % 3][2:]) for at, n in enumerate((4, 8, 4 * POINTS) * len(LEVELS))
    ]
    if shapes != due:
        raise GraphError(
            "three maps are due, each of 4 scores, 8 deltas and 20 numbers of points in a cell; there are "
            f"{[list(shape) for shape in shapes]}",
            where="caffe.RetinaFaceDetection",
        )
    levels = [maps[at : at + 3] for at in (6, 3, 0)]
    found = []
    for image in range(len(maps[0])):
        faces = np.concatenate(
            [
                _of_level(op, [m[image] for m in level], *sizes)
                for level, sizes in zip(levels, LEVELS, strict=True)
            ]
        )
        faces = faces[np.argsort(-faces[:, 4], kind="stable")]
        found.append(fixed_rows(faces[chosen(faces[:, :4], np.float32(op.nms_threshold))], op.keep_top_k))
    return [np.stack(found)[:, None]]


def _of_level(
    op: caffe_ops.RetinaFaceDetection, maps: Sequence[NDArray], stride: int, scales: Sequence[int]
) -> NDArray:
    """Return the faces (count, 15) of one level; its three maps are (channels, rows, columns)."""
    scores, deltas, points = maps
    own = scores[len(scales) :]
    anchor, row, column = np.nonzero(own >= np.float32(op.score_threshold))
    size = (np.array(scales, np.float32) * UNIT + 1)[anchor, None]
    middle = np.stack([column, row], 1).astype(np.float32) * stride + np.float32(MIDDLE)
    told = deltas.reshape(len(scales), 4, *own.shape[1:])[anchor, :, row, column]
    at = told[:, :2] * size + middle
    half = (np.exp(told[:, 2:]) * size - 1) / 2
    moved = points.reshape(len(scales), POINTS, 2, *own.shape[1:])[anchor, :, :, row, column]
    marks = moved * size[:, None] + middle[:, None]
    score = own[anchor, row, column, None]
    return np.concatenate([at - half, at + half, score, marks.reshape(-1, 2 * POINTS)], 1)


def chosen(boxes: NDArray, threshold: np.float32) -> NDArray:
    """Return the indices of the boxes that stay; the best of them come first.

    What goes is told by the box behind the chosen one: the others, and it as well, go by what they have in
    common with *it*, as a part of the chosen one's area and their own.

    Args:
        boxes: (count, 4): left, top, right, bottom, the last pixel of which counts.
        threshold: a part of both areas.
    """
    left, top, right, bottom = boxes.T
    areas = (right - left + 1) * (bottom - top + 1)
    there = np.ones(len(boxes), bool)
    kept = []
    for at in range(len(boxes)):
        if not there[at]:
            continue
        kept.append(at)
        behind = at + 1
        rest = behind + np.flatnonzero(there[behind:])
        if not rest.size:
            break
        wide = np.minimum(right[behind], right[rest]) - np.maximum(left[behind], left[rest]) + 1
        high = np.minimum(bottom[behind], bottom[rest]) - np.maximum(top[behind], top[rest]) + 1
        common = wide * high
        part = common / (areas[at] + areas[rest] - common)
        there[rest[(wide > 0) & (high > 0) & (part > threshold)]] = False
    return np.array(kept, np.int64)
