"""Random settings of detectors whose results have one size, and of Cambricon's; see ``body_cases``."""

from __future__ import annotations

import numpy as np

from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import NDArray
from tests.onnx_out.body_cases import KEPT, OVERLAPS, THRESHOLDS, Case, Draw, steps


def retina_face_detection(d: Draw) -> Case:
    op = caffe_ops.RetinaFaceDetection(
        score_threshold=d.of(THRESHOLDS), nms_threshold=d.of(OVERLAPS), keep_top_k=d.of(KEPT)
    )
    images, sizes = d.size(1, 2), [(d.size(1, 6), d.size(1, 6)) for _ in range(3)]
    alike = d.of((False, True))

    def make() -> list[NDArray]:
        maps = []
        for size in sizes:
            scores = d.uniform(images, 4, *size)
            maps += [steps(scores, 10) if alike else scores, d.normal(images, 8, *size, scale=0.3)]
            maps.append(d.normal(images, 20, *size))
        return maps

    return op, d.runs(make)


def detection_out(d: Draw) -> Case:
    classes, boxes, rows, columns = d.of((1, 3, 20)), d.size(1, 4), d.size(1, 7), d.size(1, 7)
    op = caffe_ops.DetectionOut(
        num_classes=classes,
        anchors=tuple(float(side) for side in 5 * d.uniform(2 * boxes) + 0.3),
        score_threshold=d.of((0.01, 0.05, 0.3)),
        nms_threshold=d.of((0.1, 0.45, 0.9)),
    )
    return op, d.runs(lambda: [d.normal(1, boxes * (5 + classes), rows, columns)])


def yolov3_detection(d: Draw) -> Case:
    classes, maps, wide = d.of((1, 3, 20)), d.size(1, 3), d.of((32, 96))
    op = caffe_ops.Yolov3Detection(
        num_classes=classes,
        anchors=tuple(float(d.size(1, 90)) for _ in range(6 * maps)),
        image_size=(d.of((64, 96)), wide),
        most=5000,
        score_threshold=d.of((0.01, *THRESHOLDS)),
        nms_threshold=d.of(OVERLAPS),
    )
    sides, alike = [d.size(1, 6) for _ in range(maps)], d.of((False, True))

    def make() -> list[NDArray]:
        cells = [d.normal(1, 3, 5 + classes, side, side) for side in sides]
        for each in cells:
            if alike:
                each[:, 1] = each[:, 0]
        return [each.reshape(1, -1, *each.shape[3:]) for each in cells]

    return op, d.runs(make)


def image_detect(d: Draw) -> Case:
    classes, count, alike = d.of((1, 2, 8)), d.size(1, 40), d.of((False, True))
    op = caffe_ops.ImageDetect(
        num_classes=classes,
        image_size=(d.size(60, 150), d.size(60, 150)),
        scale=d.of((1.0, 2.0)),
        score_threshold=d.of(THRESHOLDS),
        nms_threshold=d.of((0.1, 0.3, 0.7)),
    )

    def make() -> list[NDArray]:
        corners = 90 * d.uniform(count, 2)
        rois = np.concatenate([np.zeros((count, 1)), corners, corners + 5 + 60 * d.uniform(count, 2)], 1)
        scores, deltas = d.uniform(count, classes), d.normal(count, 4 * classes, scale=0.2)
        whole = [deltas, steps(scores, 10) if alike else scores, rois.astype(np.float32)]
        return [each[..., None, None] for each in whole[:2]] + whole[2:]

    return op, d.runs(make)


def padded_proposal(d: Draw) -> Case:
    given, rows, columns, alike = d.of((False, True)), d.size(1, 6), d.size(1, 6), d.of((False, True))
    op = caffe_ops.PaddedProposal(
        stride=16.0,
        base_size=16.0,
        ratios=(0.5, 1.0, 2.0) if given else (),
        scales=(2.0, 4.0) if given else (),
        rounded=d.of((False, True)),
        least=d.of(((16.0, 16.0), (4.0, 30.0), (400.0, 1.0))),
        image=(130.0, 190.0, 2.0),
        pre_nms_top_n=d.of((12, 60, 500)),
        count=d.of((1, 5, 40)),
        nms_threshold=d.of(OVERLAPS),
    )
    anchors = 6 if given else 9

    def make() -> list[NDArray]:
        scores = d.uniform(1, 2 * anchors, rows, columns)
        info = d.of((np.zeros((1, 3)), np.array([[100, 90, 1.5]]))).astype(np.float32)
        deltas = d.normal(1, 4 * anchors, rows, columns, scale=0.3)
        return [steps(scores, 10) if alike else scores, deltas, info]

    return op, d.runs(make)
