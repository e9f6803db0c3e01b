"""Faster R-CNN as OpenCV's dnn module wants it, its boxes by DetectionOutput: OpenCV finds what we find."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import onnxruntime
import pytest

from caffeforge.generated import opencv
from caffeforge.runtime.backends import find_any
from caffeforge.runtime.loaded import load
from caffeforge.runtime.onnx_out.backend import OnnxBackend
from caffeforge.runtime.onnx_out.from_net import export_net
from tests.e2e import test_regions as regions
from tests.e2e import vendor
from tests.e2e.layer_cases import Random
from tests.e2e.test_ssd import net
from tests.e2e.vendor import Floats

POST = """
layer { name: "pooled" type: "ROIPooling" bottom: "c2" bottom: "rois" top: "pooled"
  roi_pooling_param { pooled_h: 3 pooled_w: 4 spatial_scale: 0.125 } }
layer { name: "fc" type: "InnerProduct" bottom: "pooled" top: "fc" inner_product_param { num_output: 10 } }
layer { name: "rf" type: "ReLU" bottom: "fc" top: "fc" }
layer { name: "cls" type: "InnerProduct" bottom: "fc" top: "cls" inner_product_param { num_output: 5 } }
layer { name: "pred" type: "InnerProduct" bottom: "fc" top: "pred" inner_product_param { num_output: 20 } }
layer { name: "cls_prob" type: "Softmax" bottom: "cls" top: "cls_prob" }
layer { name: "s" type: "Reshape" bottom: "cls_prob" top: "s" reshape_param { shape { dim: 1 dim: -1 } } }
layer { name: "b" type: "Reshape" bottom: "pred" top: "b"
  reshape_param { shape { dim: 1 dim: -1 dim: 4 dim: 1 } } }
layer { name: "r" type: "Reshape" bottom: "rois" top: "r"
  reshape_param { shape { dim: 1 dim: -1 dim: 5 dim: 1 } } }
layer { name: "boxes" type: "Crop" bottom: "r" bottom: "b" top: "boxes"
  crop_param { axis: 2 offset: 1 offset: 0 } }
layer { name: "p" type: "Reshape" bottom: "boxes" top: "p"
  reshape_param { shape { dim: 1 dim: 1 dim: -1 dim: 1 } } }
layer { name: "found" type: "DetectionOutput" bottom: "b" bottom: "s" bottom: "p" top: "found"
  detection_output_param { num_classes: 5 share_location: false background_label_id: 0
    nms_param { nms_threshold: 0.3 } code_type: CENTER_SIZE keep_top_k: 200
    variance_encoded_in_target: true normalized_bbox: false } }
"""


def files(folder: Path) -> tuple[Path, Path]:
    """Return the whole net; it gives regions and boxes."""
    rpn = regions.RPN.replace("SMALL", "2").replace("LARGE", "4").replace(' top: "own"', "")
    random, blobs = Random(9), regions.weights()
    blobs["pred"] = [random.normal(20, 10, scale=0.05), random.normal(20, scale=0.1)]
    del blobs["maps"]
    text = f"name: 'detector'\n{regions.INPUTS}{rpn}{POST}"
    prototxt, caffemodel = vendor.write(folder, text, blobs, "opencv")
    return prototxt, caffemodel


def in_order(rows: Floats) -> Floats:
    """Return rows of boxes by image, class and falling score; OpenCV's stand otherwise, and zeros behind."""
    rows = rows.reshape(-1, 7)
    rows = rows[rows[:, 2] > 0]
    return rows[np.lexsort((rows[:, 3], -rows[:, 2].round(5), rows[:, 1], rows[:, 0]))]


def by_opencv(
    prototxt: Path, caffemodel: Path | None, inputs: dict[str, Floats], *names: str
) -> list[Floats]:
    found = cv2.dnn.readNetFromCaffe(*(str(file) for file in (prototxt, caffemodel) if file))
    for name, array in inputs.items():
        found.setInput(array, name)
    return [np.asarray(each, np.float32) for each in found.forward(list(names))]


def test_a_whole_faster_rcnn_finds_what_opencv_does(tmp_path: Path) -> None:
    prototxt, caffemodel = files(tmp_path)
    rois, boxes = by_opencv(prototxt, caffemodel, regions.inputs(), "rois", "found")
    found = load(prototxt, caffemodel, opencv.BACKEND).run(regions.inputs(), ["rois", "found"])
    np.testing.assert_allclose(found["rois"], rois, rtol=1e-4, atol=1e-4)
    expected = in_order(boxes)
    assert len(expected) > 40
    np.testing.assert_allclose(in_order(found["found"]), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("opset", [10, 17])
def test_onnxruntime_runs_it(tmp_path: Path, opset: int) -> None:
    prototxt, caffemodel = files(tmp_path)
    target = find_any(f"onnx_opset{opset}")
    assert isinstance(target, OnnxBackend)
    made = export_net(prototxt, caffemodel, tmp_path / "net", source="opencv", target=target, verify=False)
    (found,) = onnxruntime.InferenceSession(made.onnx).run(["found"], regions.inputs())
    expected = load(prototxt, caffemodel, opencv.BACKEND).run(regions.inputs(), ["found"])["found"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "settings",
    [
        "ratio: 0.5 ratio: 1 ratio: 2 scale: 2 scale: 4 post_nms_topn: 20 pre_nms_topn: 150",
        "ratio: 0.5 ratio: 1 ratio: 2 scale: 8 scale: 16 scale: 32 min_size: 16",  # zeros behind
        "ratio: 1 ratio: 3 scale: 1 pre_nms_topn: 0 post_nms_topn: 30 nms_thresh: 0.3 base_size: 24",
        "ratio: 0.7 scale: 3 feat_stride: 8 post_nms_topn: 100",
    ],
)
def test_regions_are_those_of_opencv(tmp_path: Path, settings: str) -> None:
    count = settings.count("ratio:") * settings.count("scale:")
    random = np.random.default_rng(3)
    inputs = {
        "scores": random.uniform(0, 1, (1, 2 * count, 7, 9)).astype(np.float32),
        "deltas": random.normal(0, 0.4, (1, 4 * count, 7, 9)).astype(np.float32),
        "info": np.array([[110, 141, 1.3]], np.float32),
    }
    layer = f'bottom: "scores" bottom: "deltas" bottom: "info" top: "y" proposal_param {{ {settings} }}'
    path = tmp_path / "net.prototxt"
    path.write_text(net(f'name: "y" type: "Proposal" {layer}', **{n: a.shape for n, a in inputs.items()}))
    (expected,) = by_opencv(path, None, inputs, "y")
    found = load(path, None, opencv.BACKEND).run(inputs)["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("pixels", "shared"), [(True, True), (True, False), (False, False)])
def test_boxes_in_pixels_are_those_of_opencv(tmp_path: Path, pixels: bool, shared: bool) -> None:
    """Default boxes have no variances here, and sizes count the last pixel."""
    random = np.random.default_rng(4)
    corners = random.uniform(0, 0.5, (30, 2))
    boxes = np.concatenate([corners, corners + random.uniform(0.1, 0.5, (30, 2))], 1) * (50 if pixels else 1)
    inputs = {
        "loc": random.normal(0, 0.3, (1, 120 * (1 if shared else 4))).astype(np.float32),
        "conf": random.uniform(0, 1, (1, 120)).astype(np.float32),
        "priors": boxes.reshape(1, 1, 120).astype(np.float32),
    }
    layer = (
        'bottom: "loc" bottom: "conf" bottom: "priors" top: "y" detection_output_param { num_classes: 4 '
        f"share_location: {str(shared).lower()} background_label_id: 0 code_type: CENTER_SIZE "
        f"keep_top_k: 200 variance_encoded_in_target: true normalized_bbox: {str(not pixels).lower()} "
        "confidence_threshold: 0.3 nms_param { nms_threshold: 0.4 } }"
    )
    path = tmp_path / "net.prototxt"
    path.write_text(
        net(f'name: "y" type: "DetectionOutput" {layer}', **{n: a.shape for n, a in inputs.items()})
    )
    (expected,) = by_opencv(path, None, inputs, "y")
    loaded = load(path, None, opencv.BACKEND)
    np.testing.assert_allclose(in_order(loaded.run(inputs)["y"]), in_order(expected), rtol=1e-4, atol=1e-4)
