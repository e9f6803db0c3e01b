"""PointNet++'s choices among points: those far from each other, those in a ball, the nearest three."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.reference import reference

THREADS = 512  # of equally far points that one is taken whose index, modulo this, is least
_ROWS = 1024  # centers whose distances to all points are held at a time


@reference(caffe_ops.FarthestPoints)
def farthest_points(op: caffe_ops.FarthestPoints, operands: Sequence[NDArray | None]) -> Sequence[NDArray]:
    """Return float32 (sets, count): indices; each is farthest from all before it."""
    (points,) = operands
    assert points is not None
    result = np.zeros((len(points), op.count), np.float32)
    ranks = np.argsort(np.arange(points.shape[1]) % THREADS, kind="stable")
    for found, own in zip(result, points[..., :3], strict=True):
        nearest = np.full(len(own), np.inf, np.float32)
        last = 0
        for number in range(1, op.count):
            np.minimum(nearest, np.sqrt(((own - own[last]) ** 2).sum(1)), out=nearest)
            last = int(ranks[np.argmax(nearest[ranks])])
            found[number] = last
    return [result]


@reference(caffe_ops.BallQuery)
def ball_query(op: caffe_ops.BallQuery, operands: Sequence[NDArray | None]) -> Sequence[NDArray]:
    """Return float32 (sets, centers, count): indices of points, 0 where a ball holds none."""
    points, centers = operands
    assert points is not None and centers is not None
    result = np.zeros((*centers.shape[:2], op.count), np.float32)
    most = np.float32(op.radius) * np.float32(op.radius)
    for own, of, found in zip(points, centers, result, strict=True):
        for begin in range(0, len(of), _ROWS):
            for row, distances in zip(found[begin:], squares(of[begin : begin + _ROWS], own), strict=False):
                inside = np.flatnonzero(distances <= most)[: op.count]
                if inside.size:
                    row[:] = inside[0]
                    row[: inside.size] = inside
    return [result]


@reference(caffe_ops.NearestThree)
def nearest_three(op: caffe_ops.NearestThree, operands: Sequence[NDArray | None]) -> Sequence[NDArray]:
    """Return float32 (sets, centers, 3): squares of distances, the least first, and the points' indices.

    Where there are fewer points, an infinite distance and index 0.
    """
    centers, points = operands
    assert centers is not None and points is not None
    distances = np.full((*centers.shape[:2], 3), np.inf, np.float32)
    indices = np.zeros_like(distances)
    for number, (of, own) in enumerate(zip(centers, points, strict=True)):
        for begin in range(0, len(of), _ROWS):
            rows = squares(of[begin : begin + _ROWS], own)
            order = np.argsort(rows, 1, kind="stable")[:, :3]
            at = slice(begin, begin + _ROWS), slice(order.shape[1])
            distances[number][at] = np.take_along_axis(rows, order, 1)
            indices[number][at] = order
    return [distances, indices]


def squares(centers: NDArray, points: NDArray) -> NDArray:
    """Return the squares (centers, points) of all distances."""
    apart = centers[:, None, :3] - points[None, :, :3]
    found: NDArray = (apart * apart).sum(2)
    return found
