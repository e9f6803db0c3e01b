"""``caffe.PriorBox``: SSD's default boxes of a feature map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.lib import prior_ratios
from caffeforge.runtime.reference import reference


@reference(caffe_ops.PriorBox)
def prior_box(op: caffe_ops.PriorBox, operands: Sequence[NDArray | None]) -> Sequence[NDArray]:
    """Return float32 (1, 2, rows * columns * sizes * 4): boxes as parts of the image, and their variances."""
    data, image = operands
    assert data is not None and image is not None
    rows, columns = data.shape[2:]
    height, width = op.image_size or image.shape[2:]
    down, right = op.steps or (height / rows, width / columns)
    across = (np.arange(columns) + op.offset) * right
    along = (np.arange(rows) + op.offset) * down
    sizes = np.array(list(_sizes(op)))
    middles = np.stack(np.meshgrid(across, along), -1)[:, :, None]  # (rows, columns, 1, x and y)
    corners = np.concatenate([middles - sizes / 2, middles + sizes / 2], -1)
    boxes = (corners / [width, height, width, height]).astype(np.float32).reshape(-1)
    if op.clip:
        boxes = boxes.clip(0, 1)
    variances = np.resize(np.array(op.variances, np.float32), boxes.shape)
    return [np.stack([boxes, variances])[None]]


def _sizes(op: caffe_ops.PriorBox) -> Iterator[tuple[float, float]]:
    """Yield width and height of each box at one place, in pixels."""
    for index, least in enumerate(op.min_sizes):
        yield least, least
        if op.max_sizes:
            side = (least * op.max_sizes[index]) ** 0.5
            yield side, side
        for ratio in prior_ratios(op.ratios, op.flip)[1:]:
            yield least * ratio**0.5, least / ratio**0.5
