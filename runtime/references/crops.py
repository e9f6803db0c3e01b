"""``caffe.CropAndResize`` and ``caffe.PyramidCrop``: boxes sampled as in TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.reference import reference

_WHOLE = np.float32(224)  # side of the box, in an image as large, that the fourth level is for
_LEVELS = (2, 5)


@reference(caffe_ops.CropAndResize)
def crop_and_resize(op: caffe_ops.CropAndResize, operands: Sequence[NDArray | None]) -> Sequence[NDArray]:
    """Return float32 (boxes, channels, *size).

    Raises:
        GraphError: a box is in an image that is not there.
    """
    data, index, boxes = operands
    assert data is not None and index is not None and boxes is not None
    images = index.reshape(-1).astype(np.int64)
    if len(images) != len(boxes) or ((images < 0) | (images >= len(data))).any():
        raise GraphError(
            f"each of {len(boxes)} boxes needs the index of one of {len(data)} images",
            where="caffe.CropAndResize",
        )
    result = np.empty((len(boxes), data.shape[1], *op.size), np.float32)
    for number, (image, box) in enumerate(zip(images, boxes, strict=True)):
        result[number] = sampled(data[image], box, op.size, op.outside)
    return [result]


@reference(caffe_ops.PyramidCrop)
def pyramid_crop(op: caffe_ops.PyramidCrop, operands: Sequence[NDArray | None]) -> Sequence[NDArray]:
    """Return float32 (images, boxes, channels, *size)."""
    boxes, info, *maps = operands
    assert boxes is not None and info is not None
    levels = [level for level in maps if level is not None]
    result = np.empty((*boxes.shape[:2], levels[0].shape[1], *op.size), np.float32)
    for image, (own, meta) in enumerate(zip(boxes, info, strict=True)):
        of = levels_of(own, int(meta[4]) * int(meta[5]))
        for number, (box, level) in enumerate(zip(own, of, strict=True)):
            result[image, number] = sampled(levels[level - _LEVELS[0]][image], box, op.size, op.outside)
    return [result]


def levels_of(boxes: NDArray, area: int) -> NDArray:
    """Return the level of each box (count, 4), given in parts of an image of `area` pixels."""
    with np.errstate(divide="ignore", invalid="ignore"):
        side = np.sqrt((boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]))
        level = np.rint(np.log2(side / (_WHOLE / np.sqrt(np.float32(area)))))
    of: NDArray = np.nan_to_num(level + 4, nan=_LEVELS[0]).clip(*_LEVELS).astype(np.int64)
    return of


def sampled(data: NDArray, box: NDArray, size: Sequence[int], outside: float) -> NDArray:
    """Return a map (channels, height, width) sampled over a box, (channels, *size), bilinearly."""
    places, inside = [], []
    for axis, (side, count) in enumerate(zip(data.shape[1:], size, strict=True)):
        begin, end, last = box[axis], box[axis + 2], np.float32(side - 1)
        if count > 1:
            at = begin * last + np.arange(count, dtype=np.float32) * (
                (end - begin) * last / np.float32(count - 1)
            )
        else:
            at = np.float32(0.5) * (begin + end) * np.ones(1, np.float32) * last
        within = (at >= 0) & (at <= last)
        places.append(np.where(within, at, 0))
        inside.append(within)
    low = [np.floor(at).astype(np.int64) for at in places]
    high = [np.ceil(at).astype(np.int64) for at in places]
    down, right = (at - begin for at, begin in zip(places, low, strict=True))
    rows = [data[:, each] for each in (low[0], high[0])]
    left = [row[:, :, low[1]] for row in rows]
    far = [row[:, :, high[1]] for row in rows]
    top, bottom = (a + (b - a) * right for a, b in zip(left, far, strict=True))
    found = top + (bottom - top) * down[:, None]
    return np.where(inside[0][:, None] & inside[1], found, np.float32(outside)).astype(np.float32)
