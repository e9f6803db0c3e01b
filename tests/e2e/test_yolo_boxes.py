"""MobileNet-YOLO's detection layers, held to loops from their definition, and what is left out of nets.

The loops follow the published steps: each box of each cell is decoded, the confident ones are sorted, and of
two that share too much the better one stays, whatever their classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from caffeforge.runtime.backends import find
from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.loaded import load
from tests.e2e.dialect_cases import Single, written
from tests.e2e.known_formulas import Floats
from tests.e2e.layer_cases import Random

BACKEND = find("mobilenet_yolo")
CLASSES = 3
Row = tuple[float, ...]  # class + 1, score, x, y, width, height


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def cells(data: Floats, anchors: Sequence[tuple[float, float]], unit: float) -> list[tuple[Row, list[float]]]:
    """Return (x, y, width, height, objectness) and the classes' values of each box in cells of `unit`."""
    side = data.shape[2]
    found: list[tuple[Row, list[float]]] = []
    for j, i, n in np.ndindex(side, side, len(anchors)):
        values = [float(v) for v in data[0, n * (5 + CLASSES) : (n + 1) * (5 + CLASSES), j, i]]
        x, y = (i + sigmoid(values[0])) / side, (j + sigmoid(values[1])) / side
        wide, high = (
            math.exp(v) * size / (side * unit) for v, size in zip(values[2:4], anchors[n], strict=True)
        )
        found.append(((x, y, wide, high, sigmoid(values[4])), values[5:]))
    return found


def shared(a: Row, b: Row) -> float:
    """Return the area of two boxes' overlap by that of both."""
    over = [min(a[k] + a[k + 2] / 2, b[k] + b[k + 2] / 2) - max(a[k] - a[k + 2] / 2, b[k] - b[k + 2] / 2)
            for k in (2, 3)]  # fmt: skip
    common = over[0] * over[1] if min(over) > 0 else 0.0
    return common / (a[4] * a[5] + b[4] * b[5] - common)


def listed(rows: Sequence[Row], threshold: float) -> Floats:
    """Return what a layer gives for these rows of one image."""
    kept: list[Row] = []
    for row in sorted(rows, key=lambda row: -row[1]):
        if all(shared(row, better) < threshold for better in kept):
            kept.append(row)
    table = [[0, c, s, x - w / 2, y - h / 2, x + w / 2, y + h / 2] for c, s, x, y, w, h in kept]
    return np.array([[table or [[0.0] + [-1.0] * 6]]], np.float32)


def exclusive(maps: Sequence[Floats], pairs: Sequence[tuple[float, float]], least: float) -> list[Row]:
    rows: list[Row] = []
    for data in maps:
        for (*box, sure), values in cells(data, pairs, 1):
            powers = [math.exp(v) for v in values]
            best = max(range(CLASSES), key=lambda c: powers[c])
            score = sure * powers[best] / sum(powers)
            if score >= least:
                rows.append((best + 1, score, *box))
    return rows


def independent(
    maps: Sequence[Floats],
    anchors: Sequence[Sequence[tuple[float, float]]],
    units: Sequence[int],
    least: float,
) -> list[Row]:
    rows: list[Row] = []
    for data, pairs, unit in zip(maps, anchors, units, strict=True):
        for (*box, sure), values in cells(data, pairs, unit):
            scores = [sure * sigmoid(v) for v in values]
            rows += [(c + 1, s, *box) for c, s in enumerate(scores) if s > least]
    return rows


def found(case: Single, folder: Path) -> Floats:
    prototxt, caffemodel, inputs = written([case], "mobilenet_yolo", folder)
    (result,) = load(prototxt, caffemodel, BACKEND).run(inputs).values()
    return result


@pytest.mark.parametrize(
    ("count", "least", "most"), [(1, 0.01, 0.45), (2, 0.3, 0.3), (1, 0.5, 0.9), (2, 2, 0.4)]
)
def test_boxes_of_exclusive_classes(count: int, least: float, most: float, tmp_path: Path) -> None:
    r, pairs = Random(count), [(1.08, 1.19), (3.4, 4.4), (6.6, 2.5)]
    maps = [r.normal(1, 3 * (5 + CLASSES), side, side) for side in (6, 3)[:count]]
    biases = " ".join(f"biases: {v}" for pair in pairs for v in pair)
    text = (
        f"yolo_detection_output_param {{ num_classes: {CLASSES} num_box: 3 confidence_threshold: {least} "
        f"nms_threshold: {most} side: 13 label_map_file: 'none' {biases} }}"
    )
    expected = listed(exclusive(maps, pairs, least), most)
    result = found(Single("YoloDetectionOutput", text, maps), tmp_path)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
    assert (result[0, 0, 0, 1] == -1) == (least == 2) and (len(result[0, 0]) > 3 or least >= 0.5)


@pytest.mark.parametrize(
    ("count", "least", "most"), [(1, 0.3, 0.45), (2, 0.1, 0.3), (3, 0.4, 0.9), (2, 1, 0.4)]
)
def test_boxes_of_classes_of_their_own(count: int, least: float, most: float, tmp_path: Path) -> None:
    r = Random(count)
    sizes = [(10, 14), (23, 27), (37, 58), (81, 82), (135, 169), (344, 319)]
    mask, units = [3, 5, 0, 4, 2, 1][: 2 * count], [32, 16, 8][:count]
    maps = [r.normal(1, 2 * (5 + CLASSES), side, side) for side in (3, 6, 8)[:count]]
    repeated = {"biases": [v for pair in sizes for v in pair], "mask": mask, "anchors_scale": units}
    lists = " ".join(f"{name}: {v}" for name, values in repeated.items() for v in values)
    text = (
        f"yolov3_detection_output_param {{ num_classes: {CLASSES} num_box: 2 confidence_threshold: {least} "
        f"nms_threshold: {most} mask_group_num: {count} {lists} }}"
    )
    anchors = [[sizes[m] for m in mask[2 * t : 2 * t + 2]] for t in range(count)]
    expected = listed(independent(maps, anchors, units, least), most)
    result = found(Single("Yolov3DetectionOutput", text, maps), tmp_path)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
    assert (result[0, 0, 0, 1] == -1) == (least == 1) and (len(result[0, 0]) > 3 or least == 1)


TRAINED = """
layer { name: "in" type: "Input" top: "map" top: "label"
  input_param { shape { dim: 1 dim: 16 dim: 3 dim: 3 } shape { dim: 1 dim: 1 dim: 300 dim: 5 } } }
layer { name: "act" type: "ReLU" bottom: "map" top: "act" }
layer { name: "hush" type: "Silence" bottom: "label" }
layer { name: "v2" type: "RegionLoss" bottom: "act" bottom: "label" top: "v2" }
layer { name: "v3" type: "Yolov3" bottom: "act" bottom: "label" top: "v3" yolov3_param { num_class: 3 } }
layer { name: "seg" type: "YoloSeg" bottom: "act" bottom: "label" top: "seg" }
layer { name: "eval" type: "SegmentationEvaluate" bottom: "act" bottom: "label" top: "eval" }
"""


def test_losses_and_evaluations_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "net.prototxt").write_text(TRAINED)
    net = load(tmp_path / "net.prototxt", None, BACKEND)
    assert net.outputs == ["act"]
    assert [layer.name for layer in net.net.layers] == ["in", "act", "hush"]


MARKED = (
    'layer { name: "ae" type: "AssistedExcitation" bottom: "act" bottom: "label" bottom: "act" top: "ae" }\n'
)


def test_a_layer_that_reads_labels_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "net.prototxt").write_text(TRAINED + MARKED)
    with pytest.raises(
        CaffeforgeError, match=r"layer ae \(AssistedExcitation\): .*: it adds marks of labels"
    ):
        load(tmp_path / "net.prototxt", None, BACKEND)
