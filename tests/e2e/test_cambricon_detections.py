"""Cambricon's detection layers, held to loops over the steps of its published CPU program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path

import numpy as np
import pytest

from caffeforge.runtime.backends import find
from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.loaded import load
from tests.e2e.dialect_cases import Single, written
from tests.e2e.known_formulas import Floats
from tests.e2e.layer_cases import Random

BACKEND = find("cambricon")
CLASSES = 3
Row = list[float]


def found(case: Single, folder: Path) -> Floats:
    prototxt, caffemodel, inputs = written([case], "cambricon", folder)
    (result,) = load(prototxt, caffemodel, BACKEND).run(inputs).values()
    return result


def close(result: Floats, rows: Sequence[Row], shape: tuple[int, ...]) -> None:
    """Compare the result with `rows`, which zeros follow."""
    expected = np.zeros(shape, np.float32)
    flat = np.array(rows, np.float32).reshape(-1)
    expected.reshape(-1)[: flat.size] = flat
    assert result.shape == shape
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def common(a: Row, b: Row, end: float) -> float:
    """Return the area of the overlap of two boxes by that of both."""
    wide = min(a[2], b[2]) - max(a[0], b[0]) + end
    high = min(a[3], b[3]) - max(a[1], b[1]) + end
    inner = wide * high if min(wide, high) > 0 else 0.0
    areas = [(box[2] - box[0] + end) * (box[3] - box[1] + end) for box in (a, b)]
    return inner / (sum(areas) - inner)


def clipped(row: Row) -> Row:
    """Return what a row of class, score, x, y, width and height tells of the image."""
    x, y, wide, high = row[3:]
    return [max(x - wide / 2, 0), max(y - high / 2, 0), min(x + wide / 2, 1), min(y + high / 2, 1)]


@pytest.mark.parametrize(("least", "most"), [(0.01, 0.45), (0.2, 0.2), (0.3, 0.8), (1, 0.4)])
def test_boxes_of_yolo_2(least: float, most: float, tmp_path: Path) -> None:
    """In the order of the cells the first box stays, even if a better one meets it."""
    side, pairs = 5, [(1.0, 1.2), (3.4, 4.4), (6.6, 2.5)]
    data = Random(1).normal(1, 3 * (5 + CLASSES), side, side)
    rows: list[Row] = []
    for j, i, n in np.ndindex(side, side, 3):
        v = [float(each) for each in data[0, n * (5 + CLASSES) : (n + 1) * (5 + CLASSES), j, i]]
        powers = [math.exp(each) for each in v[5:]]
        label = powers.index(max(powers))
        score = sigmoid(v[4]) * powers[label] / sum(powers)
        wide, high = math.exp(v[2]) * pairs[n][0] / side, math.exp(v[3]) * pairs[n][1] / side
        row = [0.0, label, score, (i + sigmoid(v[0])) / side, (j + sigmoid(v[1])) / side, wide, high]
        if score >= least and all(common(clipped(row), clipped(other), 0) < most for other in rows):
            rows.append(row)
    biases = " ".join(f"biases: {v}" for pair in pairs for v in pair)
    text = (
        f"detection_out_param {{ side: {side} num_classes: {CLASSES} num_box: 3 {biases} "
        f"confidence_threshold: {least} nms_threshold: {most} }}"
    )
    close(found(Single("DetectionOut", text, (data,)), tmp_path), rows, (1, 1, len(rows), 7))
    assert len(rows) > 5 or (least == 1 and not rows)


def decoded(maps: Sequence[Floats], pairs: Sequence[float], size: tuple[int, int]) -> list[Row]:
    """Return left, top, right, bottom, object and classes of all boxes; in pixels."""
    boxes: list[Row] = []
    for t, data in enumerate(maps):
        side = data.shape[3]
        for j, i, n in np.ndindex(side, side, 3):
            v = [float(each) for each in data[0, n * (5 + CLASSES) : (n + 1) * (5 + CLASSES), j, i]]
            x, y = (size[1] // side * (at + sigmoid(own)) for at, own in zip((i, j), v, strict=False))
            wide, high = (math.exp(v[2 + k]) * pairs[6 * t + 2 * n + k] / 2 for k in (0, 1))
            boxes.append([x - wide, y - high, x + wide, y + high, *map(sigmoid, v[4:])])
    return boxes


def list_of_yolo_3(boxes: list[Row], size: tuple[int, int], least: float, most: float) -> list[Row]:
    live = [[*box[:5], *(box[4] * v if box[4] * v > least else 0 for v in box[5:])] for box in boxes
            if box[4] > least]  # fmt: skip
    for label in range(5, 5 + CLASSES):
        live.sort(key=itemgetter(label), reverse=True)
        for i, box in enumerate(live):
            for other in live[i + 1 :] if box[label] else []:
                if common(box, other, 1) > most:
                    other[label] = 0
    high, wide = size
    return [
        [0, c, box[5 + c], box[0] / wide, box[1] / high, box[2] / wide, box[3] / high]
        for box in live for c in range(CLASSES) if box[5 + c]
    ]  # fmt: skip


def yolo_3(maps: Sequence[Floats], pairs: Sequence[float], room: int, least: float, most: float) -> Single:
    text = (
        f"yolov3_param {{ num_classes: {CLASSES} num_box: {room} confidence_threshold: {least} "
        f"nms_threshold: {most} im_w: 96 im_h: 64 {' '.join(f'biases: {v}' for v in pairs)} }}"
    )
    return Single("Yolov3Detection", text, maps)


@pytest.mark.parametrize(("least", "most"), [(0.3, 0.45), (0.2, 0.2), (0.4, 0.8), (1, 0.4)])
def test_boxes_of_yolo_3(least: float, most: float, tmp_path: Path) -> None:
    r, pairs = Random(2), [40.0, 50, 60, 40, 20, 70, 10, 20, 30, 10, 20, 20]
    maps = [r.normal(1, 3 * (5 + CLASSES), side, side) for side in (3, 6)]
    rows = list_of_yolo_3(decoded(maps, pairs, (64, 96)), (64, 96), least, most)
    result = found(yolo_3(maps, pairs, 200, least, most), tmp_path)
    head = [float(len(rows)), *[-1.0] * 63]
    rest = [-1.0] * (7 * (200 - len(rows)))
    close(result, [[*head, *(v for row in rows for v in row), *rest]], (1, 64 + 7 * 200, 1, 1))
    assert len(rows) > 10 or (least == 1 and not rows)


def test_more_boxes_of_yolo_3_than_there_is_room_for(tmp_path: Path) -> None:
    data = Random(2).normal(1, 3 * (5 + CLASSES), 6, 6)
    with pytest.raises(CaffeforgeError, match=r"boxes, and room for 2.*beyond its result"):
        found(yolo_3([data], [10.0, 20, 30, 10, 20, 20], 2, 0.2, 0.5), tmp_path)


@pytest.mark.parametrize(("least", "most", "scale"), [(0.05, 0.3, 1.0), (1.2, 0.5, 2.0), (4, 0.3, 1.0)])
def test_boxes_by_class_of_regions(least: float, most: float, scale: float, tmp_path: Path) -> None:
    """A region meets those behind it, also dropped ones, and goes itself at the first better one."""
    count, r = 40, Random(3)
    deltas, scores = r.normal(count, 4 * CLASSES, 1, 1, scale=0.2), r.positive(count, CLASSES, 1, 1)
    corners = np.concatenate([r.whole(90, count, 2), r.whole(60, count, 2) + 5], 1)
    corners[:, 2:] += corners[:, :2]
    rois = np.concatenate([np.zeros((count, 1), np.float32), corners], 1) * np.float32(scale)
    rows: list[Row] = []
    for label in range(CLASSES):
        boxes: list[Row] = []
        for i in range(count):
            left, top, right, bottom = (float(v) for v in corners[i])
            dx, dy, dw, dh = (float(v) for v in deltas[i, 4 * label : 4 * label + 4, 0, 0])
            wide, high = right - left + 1, bottom - top + 1
            x, y = left + wide / 2 + dx * wide, top + high / 2 + dy * high
            wide, high = math.exp(dw) * wide / 2, math.exp(dh) * high / 2
            boxes.append([max(x - wide, 0), max(y - high, 0), x + wide if x + wide < 120 else 119,
                          y + high if y + high < 100 else 99])  # fmt: skip
        own, use = [float(v) for v in scores[:, label, 0, 0]], [True] * count
        for i, box in enumerate(boxes):
            for j in range(i + 1, count) if use[i] else []:
                sides = [int(min(box[k + 2], boxes[j][k + 2]) - max(box[k], boxes[j][k])) for k in (0, 1)]
                inner = max(sides[0], 0) * max(sides[1], 0)
                areas = sum((b[2] - b[0]) * (b[3] - b[1]) for b in (box, boxes[j]))
                if inner / (areas - inner) < most:
                    continue
                use[i if own[j] > own[i] else j] = False
                if not use[i]:
                    break
            if use[i] and own[i] > least:
                rows.append([*box, label, own[i]])
    text = (
        f"image_detect_param {{ num_class: {CLASSES} im_h: 100 im_w: 120 scale: {scale} nms_thresh: {most} "
        f"score_thresh: {least} }}"
    )
    result = found(Single("ImageDetect", text, (deltas, scores, rois)), tmp_path)
    close(result, rows, (1, count * CLASSES, 1, 6))
    assert len(rows) > 10 or (least == 4 and not rows)


NINE = [
    (-84, -40, 99, 55), (-176, -88, 191, 103), (-360, -184, 375, 199), (-56, -56, 71, 71),
    (-120, -120, 135, 135), (-248, -248, 263, 263), (-36, -80, 51, 95), (-80, -168, 95, 183),
    (-168, -344, 183, 359),
]  # fmt: skip
# A side of 16 by ratios 0.5, 1 and 2 and scales 2 and 4: in whole pixels 23 by 12, 16 by 16 and 11 by 22.
WHOLE = [
    (7.5 - (w * s - 1) / 2, 7.5 - (h * s - 1) / 2, 7.5 + (w * s - 1) / 2, 7.5 + (h * s - 1) / 2)
    for w, h in ((23, 12), (16, 16), (11, 22)) for s in (2, 4)
]  # fmt: skip
EXACT = [
    (7.5 - 8 / q * s, 7.5 - 8 * q * s, 7.5 + 8 / q * s, 7.5 + 8 * q * s)
    for s in (2, 4) for q in (0.5**0.5, 1, 2**0.5)
]  # fmt: skip
LISTS = "anchor_num: 6 anchor_ratio: 0.5 anchor_ratio: 1 anchor_ratio: 2 anchor_scale: 2 anchor_scale: 4"


@pytest.mark.parametrize(
    ("text", "anchors"), [("", NINE), (LISTS, EXACT), (LISTS + " pvanet_mode: true", WHOLE)]
)
@pytest.mark.parametrize(("told", "first", "count", "most"), [(True, 500, 20, 0.7), (False, 12, 40, 0.4)])
def test_regions_of_faster_r_cnn(
    text: str,
    anchors: Sequence[tuple[float, ...]],
    told: bool,
    first: int,
    count: int,
    most: float,
    tmp_path: Path,
) -> None:
    """The third bottom tells the image, or the parameters do where it begins with 0."""
    rows, columns, n, r = 4, 5, len(anchors), Random(4)
    scores, deltas = r.normal(1, 2 * n, rows, columns), r.normal(1, 4 * n, rows, columns, scale=0.3)
    high, wide, scale = (150, 170, 1.5) if told else (130, 190, 2.0)
    boxes: list[Row] = []
    for k, i, j in np.ndindex(n, rows, columns):
        left, top, right, bottom = (v + 16 * at for v, at in zip(anchors[k], (j, i, j, i), strict=True))
        dx, dy, dw, dh = (float(v) for v in deltas[0, 4 * k : 4 * k + 4, i, j])
        w, h = right - left + 1, bottom - top + 1
        x, y = (left + right + 1) / 2 + dx * w, (top + bottom + 1) / 2 + dy * h
        w, h = math.exp(dw) * w / 2, math.exp(dh) * h / 2
        box = [max(x - w, 0), max(y - h, 0), min(x + w, wide - 1), min(y + h, high - 1)]
        if box[2] - box[0] + 1 >= 12 * scale and box[3] - box[1] + 1 >= 9 * scale:
            boxes.append([*box, float(scores[0, n + k, i, j])])
    kept: list[Row] = []
    for box in sorted(boxes, key=lambda box: -box[4])[:first]:
        if all(common(box, other, 1) <= most for other in kept):
            kept.append(box)
    whole = (
        f"proposal_param {{ im_min_w: 12 im_min_h: 9 top_num: {first} nms_thresh: {most} nms_num: {count} "
        f"im_h: 130 im_w: 190 scale: 2 {text} }}"
    )
    info = np.array([[high, wide, scale]] if told else [[0, 9, 9]], np.float32)
    result = found(Single("Proposal", whole, (scores, deltas, info)), tmp_path)
    close(result, [[0, *box[:4]] for box in kept[:count]], (count, 5))
    assert len(kept) > 2
