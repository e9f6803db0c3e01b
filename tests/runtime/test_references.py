"""References of detection layers, held to torchvision and to loops written from their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torchvision

from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.references.proposals import anchors, proposal
from caffeforge.runtime.references.region_pooling import psroi_pooling
from caffeforge.runtime.references.suppression import suppressed


def boxes(random: np.random.Generator, count: int, size: float) -> NDArray:
    corners = random.uniform(0, size * 0.6, (count, 2))
    return np.concatenate([corners, corners + random.uniform(0.2, 0.5, (count, 2)) * size], 1)


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.9])
def test_suppression_keeps_what_torchvision_keeps(threshold: float) -> None:
    found = boxes(np.random.default_rng(0), 200, 1.0)
    scores = torch.arange(len(found), 0, -1, dtype=torch.float64)
    expected = torchvision.ops.nms(torch.from_numpy(found), scores, threshold)
    np.testing.assert_array_equal(suppressed(found, threshold), expected.numpy())


def test_suppression_counts_the_last_pixel_where_it_belongs_to_the_box() -> None:
    found = np.array([[0, 0, 9, 9], [0, 5, 9, 14]], np.float32)  # 50 of 150 pixels
    assert suppressed(found, 0.33, end=1.0).tolist() == [0]
    assert suppressed(found, 0.34, end=1.0).tolist() == [0, 1]


def test_the_threshold_falls_after_each_box_that_stays() -> None:
    found = np.array([[0, 0, 10, 1], [2.5, 0, 12.5, 1], [20, 0, 21, 1]])  # the first two share 0.6
    assert suppressed(found, 0.7).tolist() == [0, 1, 2]
    assert suppressed(found, 0.7, eta=0.8).tolist() == [0, 2]


def test_no_boxes_stay_none() -> None:
    assert suppressed(np.empty((0, 4)), 0.5).tolist() == []


def test_position_sensitive_pooling_is_that_of_torchvision_at_full_scale() -> None:
    """In torchvision a region ends at x2, not x2 + 1, and a bin before the last row."""
    random = np.random.default_rng(1)
    data = random.standard_normal((2, 3 * 4 * 4, 20, 24)).astype(np.float32)
    whole = np.round(boxes(random, 12, 16.0))
    rois = np.concatenate([random.integers(0, 2, (12, 1)), whole], 1).astype(np.float32)
    op = caffe_ops.PSROIPooling(output_dim=3, group_size=4, spatial_scale=1.0)
    theirs = torch.from_numpy(rois + np.array([0, 0, 0, 1, 1], np.float32))
    expected = torchvision.ops.ps_roi_pool(torch.from_numpy(data), theirs, 4)
    np.testing.assert_allclose(psroi_pooling(op, [data, rois])[0], expected.numpy(), rtol=1e-4, atol=1e-6)


def test_position_sensitive_pooling_is_what_r_fcn_says() -> None:
    random = np.random.default_rng(2)
    data = random.standard_normal((1, 2 * 9, 7, 9)).astype(np.float32)
    rois = np.concatenate([np.zeros((8, 1)), boxes(random, 8, 90.0) - 12.5], 1).astype(np.float32)
    op = caffe_ops.PSROIPooling(output_dim=2, group_size=3, spatial_scale=0.125)
    (found,) = psroi_pooling(op, [data, rois])
    for n, (_, left, top, right, bottom) in enumerate(rois):
        first = [math.floor(abs(v) + 0.5) * math.copysign(1, v) for v in (left, top, right, bottom)]
        x, y = np.float32(first[0] / 8), np.float32(first[1] / 8)
        wide, high = (
            max(np.float32((end + 1) / 8) - begin, np.float32(0.1)) / np.float32(3)
            for begin, end in ((x, first[2]), (y, first[3]))
        )
        for c, i, j in np.ndindex(2, 3, 3):
            rows = range(max(math.floor(y + i * high), 0), min(math.ceil(y + (i + 1) * high), 7))
            columns = range(max(math.floor(x + j * wide), 0), min(math.ceil(x + (j + 1) * wide), 9))
            part = [data[0, (c * 3 + i) * 3 + j, r, s] for r in rows for s in columns]
            assert found[n, c, i, j] == pytest.approx(np.mean(part) if part else 0, abs=1e-6)


def test_anchors_are_those_of_faster_r_cnn() -> None:
    """The nine boxes that its authors print."""
    expected = [
        [-84, -40, 99, 55], [-176, -88, 191, 103], [-360, -184, 375, 199],
        [-56, -56, 71, 71], [-120, -120, 135, 135], [-248, -248, 263, 263],
        [-36, -80, 51, 95], [-80, -168, 95, 183], [-168, -344, 183, 359],
    ]  # fmt: skip
    np.testing.assert_array_equal(anchors(16, (0.5, 1.0, 2.0), (8.0, 16.0, 32.0)), expected)


def test_proposals_stay_in_the_image_and_small_ones_go() -> None:
    op = caffe_ops.Proposal(
        stride=16,
        base_size=16,
        ratios=(1.0,),
        scales=(1.0, 2.0),
        min_size=12.0,
        pre_nms_top_n=0,
        post_nms_top_n=3,
        nms_threshold=0.9,
    )
    scores = np.zeros((1, 4, 2, 3), np.float32)
    scores[0, 2:] = np.random.default_rng(3).uniform(0, 1, (2, 2, 3))
    deltas = np.zeros((1, 8, 2, 3), np.float32)
    rois, own = proposal(op, [scores, deltas, np.array([[32, 40, 2]], np.float32)])
    assert rois.shape == (3, 5)
    assert (rois[:, 1:] >= 0).all() and (rois[:, 3] <= 39).all() and (rois[:, 4] <= 31).all()
    assert (rois[:, 3:] - rois[:, 1:3] + 1 >= 24).all()  # only those of scale 2 are so large
    assert np.isin(own, scores[0, 3]).all() and (np.diff(own) < 0).all()


@pytest.mark.parametrize("channels", [3, 5])
def test_operands_that_do_not_fit_are_named(channels: int) -> None:
    op = caffe_ops.PSROIPooling(output_dim=1, group_size=2, spatial_scale=1.0)
    with pytest.raises(GraphError, match=f"there are {channels}"):
        psroi_pooling(op, [np.zeros((1, channels, 4, 4), np.float32), np.zeros((1, 5), np.float32)])
