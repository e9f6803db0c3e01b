"""``caffe.Correlation``: how alike places of two maps are, FlowNet's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.reference import reference


@reference(caffe_ops.Correlation)
def correlation(op: caffe_ops.Correlation, operands: Sequence[NDArray | None]) -> Sequence[NDArray]:
    """Return float32 (images, displacements, rows, columns)."""
    sides = ((0, 0), (0, 0), (op.pad, op.pad), (op.pad, op.pad))
    a, b = (np.pad(each, sides) for each in operands if each is not None)
    most, reach = op.displacement, op.displacement // op.step
    height, width = (size - 2 * most for size in a.shape[2:])
    still = a[:, :, most : most + height, most : most + width]
    found = []
    for down in range(-reach, reach + 1):
        for right in range(-reach, reach + 1):
            top, left = most + down * op.step, most + right * op.step
            other = b[:, :, top : top + height, left : left + width]
            alike = np.abs(still - other).sum(1) if op.subtract else np.einsum("nchw,nchw->nhw", still, other)
            windows = np.lib.stride_tricks.sliding_window_view(alike, (op.kernel, op.kernel), (1, 2))
            found.append(windows[:, :: op.stride, :: op.stride].sum((3, 4)))
    count = op.kernel * op.kernel * a.shape[1]
    return [(np.stack(found, 1) / np.float32(count)).astype(np.float32)]
