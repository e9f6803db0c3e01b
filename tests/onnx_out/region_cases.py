"""Random settings of what samples and compares maps, and of what chooses among points; see ``body_cases``."""

from __future__ import annotations

import numpy as np

from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import NDArray
from tests.onnx_out.body_cases import OVERLAPS, THRESHOLDS, Case, Draw, steps


def psroi_mask_pooling(d: Draw) -> Case:
    outputs, bins, images = d.size(1, 3), d.size(1, 3), d.size(1, 2)
    op = caffe_ops.PSROIMaskPooling(
        output_dim=outputs, group_size=bins, spatial_scale=d.of((1 / 16, 0.11)), bin_scale=d.of((1.0, 1.7))
    )
    size, count = (d.size(1, 9), d.size(1, 9)), d.size(1, 20)

    def make() -> list[NDArray]:
        data, corners = 3 + d.normal(images, outputs * bins * bins, *size), 200 * d.uniform(count, 2) - 30
        index = np.floor(images * d.uniform(count, 1))
        return [data, np.concatenate([index, corners, corners + 140 * d.uniform(count, 2) - 20], 1)]

    return op, d.runs(make)


def crop_and_resize(d: Draw) -> Case:
    op = caffe_ops.CropAndResize(size=(d.size(1, 4), d.size(1, 4)), outside=d.of((0.0, -2.5)))
    shape, count = (d.size(1, 3), d.size(1, 3), d.size(1, 7), d.size(1, 7)), d.size(1, 12)

    def make() -> list[NDArray]:
        index = np.floor(shape[0] * d.uniform(count)).astype(np.float32)
        return [d.normal(*shape), index, 1.4 * d.uniform(count, 4) - 0.2]

    return op, d.runs(make)


def pyramid_crop(d: Draw) -> Case:
    op = caffe_ops.PyramidCrop(size=(d.size(1, 4), d.size(1, 4)), outside=d.of((0.0, -2.5)))
    images, channels, count = d.size(1, 2), d.size(1, 3), d.size(1, 12)
    maps = [(images, channels, d.size(side, side + 3), d.size(side, side + 3)) for side in (12, 6, 3, 1)]

    def make() -> list[NDArray]:
        info = np.zeros((images, 12), np.float32)
        info[:, 4:6] = 100 + np.floor(800 * d.uniform(images, 2))
        boxes = d.uniform(images, count, 4)
        boxes[..., 2:] += boxes[..., :2] - 0.1 * d.uniform(images, count, 2)
        return [boxes, info, *(d.normal(*shape) for shape in maps)]

    return op, d.runs(make)


def mask_proposal(d: Draw) -> Case:
    op = caffe_ops.MaskProposal(
        deviations=(0.1, 0.1, 0.2, 0.2),
        pre_nms_top_n=d.of((3, 12, 100)),
        post_nms_top_n=d.of((1, 5, 40)),
        nms_threshold=d.of(OVERLAPS),
    )
    images, count, alike = d.size(1, 3), d.size(1, 50), d.of((False, True))

    def make() -> list[NDArray]:
        scores, corners = d.uniform(images, count, 2), 0.8 * d.uniform(images, count, 2)
        anchors = np.concatenate([corners, corners + 0.4 * d.uniform(images, count, 2)], -1)
        return [steps(scores, 10) if alike else scores, d.normal(images, count, 4), anchors]

    return op, d.runs(make)


def mask_detection(d: Draw) -> Case:
    op = caffe_ops.MaskDetection(
        deviations=(0.1, 0.1, 0.2, 0.2),
        limit=d.of((1, 5, 40)),
        score_threshold=d.of((0.05, 0.3, 0.9)),
        nms_threshold=d.of(OVERLAPS),
    )
    images, count, classes, alike = d.size(1, 3), d.size(1, 30), d.size(2, 6), d.of((False, True))

    def make() -> list[NDArray]:
        scores, corners = d.uniform(images, count, classes), 0.8 * d.uniform(images, count, 2)
        rois = np.concatenate([corners, corners + 0.4 * d.uniform(images, count, 2)], -1)
        info = np.zeros((images, 14), np.float32)
        info[:, 4:6] = 100 + np.floor(800 * d.uniform(2))
        info[:, 7:9], info[:, 9:11] = 10 * d.uniform(images, 2), info[:, 4:6] - 20 * d.uniform(images, 2)
        scores = steps(scores, 10) if alike else scores
        return [rois, scores, d.normal(images, count, classes, 4), info]

    return op, d.runs(make)


def selected_boxes(d: Draw) -> Case:
    op = caffe_ops.SelectedBoxes(
        centers=d.of((False, True)),
        limit=d.of((1, 4, 40)),
        full=False,
        score_threshold=d.of(THRESHOLDS),
        nms_threshold=d.of((0.0, *OVERLAPS)),
    )
    images, count, classes, alike = d.size(1, 3), d.size(1, 30), d.size(1, 4), d.of((False, True))

    def make() -> list[NDArray]:
        scores = d.uniform(images, classes, count)
        return [d.uniform(images, count, 4), steps(scores, 10) if alike else scores]

    return op, d.runs(make)


def farthest_points(d: Draw) -> Case:
    sets, count, alike = d.size(1, 3), d.of((2, 9, 700)), d.of((False, True))

    def make() -> list[NDArray]:
        points = d.normal(sets, count, d.size(3, 3))
        return [np.round(points) if alike else points]

    return caffe_ops.FarthestPoints(count=d.of((1, 2, 6, 20))), d.runs(make)


def ball_query(d: Draw) -> Case:
    sets, count, centers = d.size(1, 3), d.of((2, 9, 90)), d.size(4, 12)
    op = caffe_ops.BallQuery(count=d.of((2, 4, 20)), radius=d.of((0.6, 1.5, 3.0)))
    return op, d.runs(lambda: [d.normal(sets, count, 3), d.normal(sets, centers, 3)])


def nearest_three(d: Draw) -> Case:
    sets, count, centers, alike = d.size(1, 3), d.of((1, 2, 3, 60)), d.size(1, 12), d.of((False, True))

    def make() -> list[NDArray]:
        points = [d.normal(sets, number, 3) for number in (centers, count)]
        return [np.round(each) for each in points] if alike else points

    return caffe_ops.NearestThree(), d.runs(make)


def matrix_inverse(d: Draw) -> Case:
    size, before = d.size(1, 6), d.of(((), (3,), (2, 2)))

    def make() -> list[NDArray]:
        matrices = d.normal(*before, size, size) + 3 * np.eye(size, dtype=np.float32)
        return [matrices[..., d.generator.permutation(size), :]]  # so that pivots move

    return caffe_ops.MatrixInverse(), d.runs(make)
