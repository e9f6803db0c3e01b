"""Detectors of vendors' Caffes as ONNX files: onnxruntime finds in them what these Caffes do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from caffeforge.runtime.onnx_out.from_net import export_net
from tests.e2e.dialect_cases import Single, drawn, written
from tests.e2e.layer_cases import Random
from tests.e2e.sophgo_detectors import DETECTORS
from tests.e2e.test_detections_in_onnx import backend, kinds, run
from tests.e2e.test_sophgo_detectors import faster_r_cnn
from tests.e2e.test_yolo_boxes import CLASSES, exclusive, independent, listed
from tests.real_caffe.witness import Witness

EACH = 4


@pytest.mark.parametrize("opset", [9, 17])
def test_onnxruntime_finds_what_sophgos_caffe_does(opset: int, sophgo: Witness, tmp_path: Path) -> None:
    cases = drawn(DETECTORS, series=2, each=EACH)
    prototxt, caffemodel, inputs = written(cases, "sophgo", tmp_path)
    due = sophgo.run(prototxt, caffemodel, inputs, once=True)
    path = export_net(prototxt, caffemodel, tmp_path / "net", source="sophgo", target=backend(opset)).onnx
    own = {"FrcnDetection", "RegionsAbove", "RetinaFaceDetection", "YoloDetection"}
    assert kinds(path) == ((own, own) if opset >= 15 else (set(), set()))
    found = run(path, inputs)
    assert due.keys() == found.keys() and any(array.any() for array in due.values())
    for name, array in due.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-4, err_msg=name)


def test_onnxruntime_runs_a_faster_r_cnn_of_sophgo(sophgo: Witness, tmp_path: Path) -> None:
    files, inputs = faster_r_cnn(tmp_path)
    due = sophgo.run(*files, inputs, once=True)["found"]
    for opset in (9, 18):
        path = export_net(*files, tmp_path / f"net{opset}", source="sophgo", target=backend(opset)).onnx
        found = run(path, inputs)["found"]
        np.testing.assert_allclose(found, due, rtol=1e-4, atol=1e-3, err_msg=f"opset {opset}")


@pytest.mark.parametrize("opset", [9, 17])
def test_onnxruntime_finds_the_boxes_of_mobilenet_yolo(opset: int, tmp_path: Path) -> None:
    r, pairs = Random(1), [(1.08, 1.19), (3.4, 4.4), (6.6, 2.5)]
    maps = [r.normal(1, 3 * (5 + CLASSES), side, side) for side in (6, 3)]
    head = f"num_classes: {CLASSES} num_box: 3 confidence_threshold: 0.3 nms_threshold: 0.4"
    biases = " ".join(f"biases: {v}" for pair in pairs for v in pair)
    more = "mask_group_num: 2 mask: [0, 1, 2, 2, 1, 0] anchors_scale: [4, 8]"
    cases = [
        Single("YoloDetectionOutput", f"yolo_detection_output_param {{ {head} {biases} }}", maps),
        Single("Yolov3DetectionOutput", f"yolov3_detection_output_param {{ {head} {biases} {more} }}", maps),
    ]
    prototxt, caffemodel, inputs = written(cases, "mobilenet_yolo", tmp_path)
    own = export_net(
        prototxt, caffemodel, tmp_path / "net", source="mobilenet_yolo", target=backend(opset)
    ).onnx
    found = run(own, inputs)
    assert kinds(own) == (({"YoloDetectionOutput"},) * 2 if opset >= 15 else (set(), set()))
    due = [
        listed(exclusive(maps, pairs, 0.3), 0.4),
        listed(independent(maps, [pairs, pairs[::-1]], [4, 8], 0.3), 0.4),
    ]
    for name, array in zip(("y0_0", "y1_0"), due, strict=True):
        assert array.shape[2] > 10
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-5, err_msg=name)
