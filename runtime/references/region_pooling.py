"""``caffe.PSROIPooling`` and its like: R-FCN's means over bins of regions, each of a channel of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.reference import reference

_LEAST = np.float32(0.1)  # pixels: regions are at least so large


@reference(caffe_ops.PSROIPooling)
def psroi_pooling(op: caffe_ops.PSROIPooling, operands: Sequence[NDArray | None]) -> Sequence[NDArray]:
    """Return float32 (regions, output_dim, group_size, group_size); a bin outside the map is 0.

    Raises:
        GraphError: the channels are not those of the bins, or a region is in an image that is not there.
    """
    return [_means(op, operands, 1.0)]


@reference(caffe_ops.PSROIMaskPooling)
def psroi_mask_pooling(
    op: caffe_ops.PSROIMaskPooling, operands: Sequence[NDArray | None]
) -> Sequence[NDArray]:
    """Return what `psroi_pooling` does, for bins that are `bin_scale` times as large about their middles."""
    return [_means(op, operands, op.bin_scale)]


def _means(
    op: caffe_ops.PSROIPooling | caffe_ops.PSROIMaskPooling, operands: Sequence[NDArray | None], scale: float
) -> NDArray:
    data, rois = operands
    assert data is not None and rois is not None
    bins, (images, channels, height, width) = op.group_size, data.shape
    if channels != op.output_dim * bins * bins:
        raise GraphError(
            f"{op.output_dim} results of {bins} x {bins} bins need as many channels, there are {channels}",
            where=f"caffe.{op.op_type}",
        )
    if rois.shape[1:] != (5,) or ((rois[:, 0] <= -1) | (rois[:, 0] >= images)).any():
        raise GraphError(
            f"each region is the index of one of {images} images and four numbers",
            where=f"caffe.{op.op_type}",
        )
    by_bin = data.reshape(images, op.output_dim, bins, bins, height, width)
    result = np.zeros((len(rois), op.output_dim, bins, bins), np.float32)
    # In float32 throughout, as Caffe computes: where a bin's edge falls on a pixel, its rounding decides.
    corners = np.sign(rois[:, 1:]) * np.floor(np.abs(rois[:, 1:]) + 0.5)  # rounded as C does
    starts = corners[:, :2] * np.float32(op.spatial_scale)
    size = ((corners[:, 2:] + 1) * np.float32(op.spatial_scale) - starts).clip(_LEAST)
    bin_size = (size / np.float32(bins))[:, None]
    more = (bin_size * np.float32(scale) - bin_size) * np.float32(0.5)  # on each side of a bin
    steps = np.arange(bins + 1, dtype=np.float32)[None, :, None] * bin_size
    steps += starts[:, None]
    limits = [width, height]
    begins = np.floor(steps[:, :-1] - more).clip(0, limits).astype(np.int64)
    ends = np.ceil(steps[:, 1:] + more).clip(0, limits).astype(np.int64)
    for index, image in enumerate(rois[:, 0].astype(np.int64)):
        for row in range(bins):
            top, bottom = begins[index, row, 1], ends[index, row, 1]
            for column in range(bins):
                left, right = begins[index, column, 0], ends[index, column, 0]
                if top < bottom and left < right:
                    part = by_bin[image, :, row, column, top:bottom, left:right]
                    result[index, :, row, column] = part.mean((1, 2), dtype=np.float64)
    return result
