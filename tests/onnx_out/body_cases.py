"""Random settings of the ops that find objects; what each maker gives is one op and operands of two runs.

Some scores are equal, and some thresholds leave nothing or more than is kept. Whole boxes are alike where
scores are computed from them: two programs that round differently would not see two equal sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.op import Op

Case = tuple[Op, list[list[NDArray]]]
Maker = Callable[["Draw"], "Case"]
T = TypeVar("T")
THRESHOLDS = (0.05, 0.3, 0.7, 0.95)
OVERLAPS = (0.0, 0.1, 0.45, 0.7)
KEPT = (1, 3, 10, 50, 200)
RUNS = 2


class Draw:
    """Random numbers of one case."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def size(self, low: int, high: int) -> int:
        """Return a whole number, both ends included."""
        return int(self.generator.integers(low, high + 1))

    def of(self, choices: Sequence[T]) -> T:
        return choices[self.size(0, len(choices) - 1)]

    def uniform(self, *shape: int) -> NDArray:
        return self.generator.uniform(0, 1, shape).astype(np.float32)

    def normal(self, *shape: int, scale: float = 1.0) -> NDArray:
        return self.generator.normal(0, scale, shape).astype(np.float32)

    def runs(self, make: Callable[[], list[NDArray]]) -> list[list[NDArray]]:
        return [make() for _ in range(RUNS)]


def steps(numbers: NDArray, of_one: int) -> NDArray:
    """Return numbers rounded to so many steps of one."""
    return (np.round(numbers * of_one) / of_one).astype(np.float32)


def regions_above(d: Draw) -> Case:
    op = caffe_ops.RegionsAbove(
        stride=d.of((4, 8, 16)),
        base_size=d.of((4, 7, 13, 16)),
        image_size=(d.size(20, 300), d.size(20, 300)),
        score_threshold=d.of(THRESHOLDS),
        nms_threshold=d.of(OVERLAPS),
        keep_top_k=d.of(KEPT),
    )
    images, rows, columns, alike = d.size(1, 3), d.size(1, 6), d.size(1, 6), d.of((False, True))

    def make() -> list[NDArray]:
        scores, deltas = d.uniform(images, 18, rows, columns), d.normal(images, 36, rows, columns, scale=0.4)
        return [steps(scores, 10), steps(deltas, 8)] if alike else [scores, deltas]

    return op, d.runs(make)


def frcn_detection(d: Draw) -> Case:
    classes = d.of((2, 3, 21))
    op = caffe_ops.FrcnDetection(
        num_classes=classes,
        score_threshold=d.of(THRESHOLDS),
        nms_threshold=d.of(OVERLAPS),
        keep_top_k=d.of(KEPT),
    )
    images, count, alike = d.size(1, 2), d.size(1, 40), d.of((False, True))

    def make() -> list[NDArray]:
        corners, sides = 200 * d.uniform(images, 1, count, 2), 155 * d.uniform(images, 1, count, 2) - 5
        rois = np.concatenate([np.zeros_like(corners[..., :1]), corners, corners + sides], -1)
        powers = np.exp(d.normal(images * count, classes, scale=2))
        scores = powers / powers.sum(1, keepdims=True)
        deltas = d.normal(images * count, 4 * classes, scale=0.3)
        return [steps(deltas, 8), steps(scores, 20), np.round(rois)] if alike else [deltas, scores, rois]

    return op, d.runs(make)


def yolo_detection(d: Draw) -> Case:
    classes, maps, images, scale = d.of((1, 2, 20)), d.size(2, 3), d.size(1, 2), d.of((0.5, 2.0, 60.0))
    op = caffe_ops.YoloDetection(
        num_classes=classes,
        anchors=tuple(float(d.size(1, 300)) for _ in range(6 * maps)),
        image_size=(d.size(32, 640), d.size(32, 640)),
        score_threshold=d.of(THRESHOLDS),
        nms_threshold=d.of(OVERLAPS),
        keep_top_k=d.of(KEPT),
    )
    sizes, alike = [(d.size(1, 5), d.size(1, 5)) for _ in range(maps)], d.of((False, True))

    def make() -> list[NDArray]:
        cells = [d.normal(images, 3, 5 + classes, *size, scale=scale) for size in sizes]
        for each in cells:
            each[:, :, 2:4] = each[:, :, 2:4].clip(-3, 3)
            if alike:
                each[:, 1] = each[:, 0]
        return [each.reshape(images, -1, *each.shape[3:]) for each in cells]

    return op, d.runs(make)


def yolo_detection_output(d: Draw) -> Case:
    classes, maps, boxes = d.of((1, 3, 20)), d.size(1, 3), d.size(1, 3)
    op = caffe_ops.YoloDetectionOutput(
        num_classes=classes,
        anchors=tuple(float(side) for side in 3 * d.uniform(2 * boxes * maps) + 0.3),
        masks=tuple(d.size(0, boxes * maps - 1) for _ in range(boxes * maps)),
        strides=tuple(float(d.of((1, 2))) for _ in range(maps)),
        exclusive=d.of((False, True)),
        score_threshold=d.of((0.01, *THRESHOLDS)),
        nms_threshold=d.of((0.01, 0.1, 0.45, 0.9)),
    )
    sides, alike = [d.size(1, 6) for _ in range(maps)], d.of((False, True))
    sure = d.of((False, True))

    def make() -> list[NDArray]:
        cells = [d.normal(1, boxes * (5 + classes), side, side) for side in sides]
        for side, each in zip(sides, cells, strict=True):
            if sure:  # so that sigmoids are 1
                each.reshape(1, boxes, 5 + classes, side, side)[:, :, 4:] += 19
            if alike:
                each[..., 1::2, :] = each[..., :1, :]
        return cells

    return op, d.runs(make)
