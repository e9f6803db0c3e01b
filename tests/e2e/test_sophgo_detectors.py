"""The layers of Sophgo's Caffe that find objects: row by row what that Caffe finds, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

from caffeforge.generated.sophgo import export
from caffeforge.runtime.assemble import assemble
from caffeforge.runtime.backends import find, find_any
from caffeforge.runtime.caffe_files import write_files
from caffeforge.runtime.errors import ReadError
from caffeforge.runtime.legalize import legalize
from caffeforge.runtime.loaded import load
from caffeforge.runtime.onnx_out.backend import OnnxBackend
from caffeforge.runtime.onnx_out.from_net import export_net
from tests.e2e import vendor
from tests.e2e.dialect_cases import Single, drawn, errors, written
from tests.e2e.layer_cases import TOLERANCE, Floats, Random
from tests.e2e.sophgo_detectors import DETECTORS, KEPT, frcn_detection, retina_face_detection
from tests.e2e.test_ssd import BOXES, CLASSES, DETECTIONS, priors
from tests.real_caffe.witness import Witness

BACKEND = find("sophgo")
EACH = 60


def test_detectors_find_what_this_caffe_finds_in_the_same_order(sophgo: Witness, tmp_path: Path) -> None:
    cases = drawn(DETECTORS, each=EACH)
    prototxt, caffemodel, inputs = written(cases, "sophgo", tmp_path)
    due = sophgo.run(prototxt, caffemodel, inputs, once=True)
    found = load(prototxt, caffemodel, BACKEND).run(inputs)
    counts: dict[str, set[int]] = {}
    for index, case in enumerate(cases):
        name = f"y{index}_0"
        np.testing.assert_allclose(found[name], due[name], rtol=1e-4, atol=1e-4, err_msg=str(case))
        rows = due[name].any(axis=-1).sum(axis=(1, 2))
        full = rows.min() == due[name].shape[2] >= KEPT[1]
        counts.setdefault(case.type, set()).update({0} if rows.min() == 0 else {2} if full else {1})
    assert counts.pop("Proposal") == {1, 2}  # of one without any region this Caffe ends
    assert list(counts.values()) == [{0, 1, 2}] * 3  # nothing, some, and more than is kept


def test_detectors_that_we_write_find_the_same_in_this_caffe(sophgo: Witness, tmp_path: Path) -> None:
    cases = drawn(DETECTORS, series=1, each=15)
    prototxt, caffemodel, inputs = written(cases, "sophgo", tmp_path)
    read = load(prototxt, caffemodel, BACKEND)
    graph = read.hub.graph
    net = assemble(graph, legalize(graph, BACKEND), BACKEND)
    ours, weights, _ = write_files(net, BACKEND, tmp_path / "ours", "{}")
    due, found = sophgo.run(ours, weights, inputs, once=True), read.run(inputs)
    assert due.keys() == found.keys()
    for name, array in due.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("shared", [True, False])
def test_boxes_of_ssd_are_those_of_this_caffe(sophgo: Witness, tmp_path: Path, shared: bool) -> None:
    """Where enough boxes are above the threshold; else this Caffe adds the first of all boxes."""
    r = Random(2)
    classes = 1 if shared else CLASSES
    bottoms = r.normal(2, BOXES * 4 * classes, scale=0.3), r.positive(2, BOXES * CLASSES), priors(r)
    head = f"num_classes: {CLASSES} share_location: {str(shared).lower()}"
    cases = [
        Single("DetectionOutput", f"detection_output_param {{ {head} {text} }}", bottoms)
        for name, text in DETECTIONS.items()
        if name in ("corner", "center", "size", "adaptive", "background")
    ]
    assert errors(cases, "sophgo", sophgo, tmp_path)["DetectionOutput"] < TOLERANCE


FASTER_R_CNN = """
name: "faster_r_cnn"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 4 dim: 8 dim: 10 } } }
layer {
  name: "rpn" type: "Convolution" bottom: "data" top: "rpn"
  convolution_param { num_output: 18 kernel_size: 1 }
}
layer { name: "probable" type: "Sigmoid" bottom: "rpn" top: "probable" }
layer {
  name: "moves" type: "Convolution" bottom: "data" top: "moves"
  convolution_param { num_output: 36 kernel_size: 1 }
}
layer {
  name: "proposal" type: "Proposal" bottom: "probable" bottom: "moves" top: "rois"
  proposal_param {
    net_input_h: 128 net_input_w: 160 anchor_base_size: 4
    rpn_obj_threshold: 0.9 rpn_nms_threshold: 0.5 rpn_nms_post_top_n: 40
  }
}
layer {
  name: "pool" type: "ROIPooling" bottom: "data" bottom: "rois" top: "pool"
  roi_pooling_param { pooled_h: 3 pooled_w: 3 spatial_scale: 0.0625 }
}
layer {
  name: "score" type: "InnerProduct" bottom: "pool" top: "score"
  inner_product_param { num_output: 5 }
}
layer { name: "prob" type: "Softmax" bottom: "score" top: "prob" }
layer {
  name: "bbox" type: "InnerProduct" bottom: "pool" top: "bbox"
  inner_product_param { num_output: 20 }
}
layer {
  name: "found" type: "FrcnDetection" bottom: "bbox" bottom: "prob" bottom: "rois" top: "found"
  frcn_detection_param { class_num: 5 obj_threshold: 0.5 nms_threshold: 0.3 keep_topk: 20 }
}
"""


def faster_r_cnn(folder: Path) -> tuple[tuple[Path, Path], dict[str, Floats]]:
    """Return its files and its inputs."""
    r = Random(4)
    blobs: dict[str, list[Floats]] = {
        "rpn": [r.normal(18, 4, 1, 1), r.normal(18)],
        "moves": [r.normal(36, 4, 1, 1, scale=0.1), r.normal(36, scale=0.1)],
        "score": [r.normal(5, 36, scale=0.5), r.normal(5)],
        "bbox": [r.normal(20, 36, scale=0.02), r.normal(20, scale=0.1)],
    }
    return vendor.write(folder, FASTER_R_CNN, blobs, "sophgo"), {"data": r.normal(1, 4, 8, 10)}


def test_a_faster_r_cnn_finds_what_it_finds_in_this_caffe(sophgo: Witness, tmp_path: Path) -> None:
    files, inputs = faster_r_cnn(tmp_path)
    due = sophgo.run(*files, inputs, ["rois", "found"], once=True)
    found = load(*files, BACKEND).run(inputs, ["rois", "found"])
    assert due["rois"].any(-1).sum() > 10 and 3 < due["found"].any(-1).sum() < 20
    for name, array in due.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-3, err_msg=name)


def test_a_faster_r_cnn_goes_to_onnx_and_back(sophgo: Witness, tmp_path: Path) -> None:
    files, inputs = faster_r_cnn(tmp_path)
    opset = find_any("onnx_opset17")
    assert isinstance(opset, OnnxBackend)
    written = export_net(*files, tmp_path / "there", source="sophgo", target=opset)
    back = export(written.onnx, None, tmp_path / "back")
    kinds = [layer.type for layer in vendor.parse(back.prototxt.read_text(), "sophgo").layer]
    assert kinds.count("Proposal") == kinds.count("FrcnDetection") == 1
    due = sophgo.run(*files, inputs, once=True)["found"]
    (found,) = sophgo.run(back.prototxt, back.caffemodel, inputs, once=True).values()
    np.testing.assert_allclose(found, due, rtol=1e-4, atol=1e-3)


def test_a_proposal_without_any_region_gives_zeros(tmp_path: Path) -> None:
    text = "proposal_param { net_input_h: 64 net_input_w: 64 rpn_nms_post_top_n: 4 }"
    case = Single("Proposal", text, (np.zeros((2, 18, 2, 3), np.float32), np.ones((2, 36, 2, 3), np.float32)))
    prototxt, caffemodel, inputs = written([case], "sophgo", tmp_path)
    assert not load(prototxt, caffemodel, BACKEND).run(inputs)["y0_0"].any()


def changed(case: Single, old: str, new: str) -> Single:
    assert old in case.text
    return Single(case.type, case.text.replace(old, new), case.bottoms)


def twice(case: Single) -> Single:
    return Single(case.type, case.text, [np.concatenate([bottom, bottom]) for bottom in case.bottoms])


YOLO = Single(
    "YoloDetection",
    "yolo_detection_param { net_input_h: 64 net_input_w: 64 keep_topk: 9 obj_threshold: 0.5 class_num: 2 }",
    [np.zeros((1, 21, 2, 2), np.float32)] * 3,
)
PAIR = Single(YOLO.type, YOLO.text, YOLO.bottoms[:2])
FACES, REGIONS = retina_face_detection(Random(0)), frcn_detection(Random(0))


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        (twice(YOLO), "one image is due - its Caffe lets an image keep no more"),
        (twice(FACES), "one image is due - its Caffe lets an image keep no more"),
        (twice(REGIONS), "one image is due - its Caffe lets an image keep no more"),
        (changed(YOLO, "class_num: 2", "class_num: 81"), "writes beyond its memory"),
        (changed(YOLO, "class_num: 2", "class_num: 3"), "class_num and five channels"),
        (changed(YOLO, "class_num: 2", 'class_num: 2 anchors: "1,2,3,4,5,6"'), "three anchors are due"),
        (changed(YOLO, "class_num: 2", 'class_num: 2 anchors: "1,2,three"'), "numbers between commas"),
        (changed(YOLO, "class_num: 2", 'class_num: 2 anchors: "1,,3"'), "numbers between commas"),
        (changed(YOLO, "class_num: 2", "class_num: 2 tiny: true"), "three anchors are due"),
        (
            changed(PAIR, "class_num: 2", "class_num: 2 tiny: true yolo_v4: true"),
            "its compiler of the other",
        ),
        (changed(YOLO, "keep_topk: 9", ""), "keep_topk, net_input_h and net_input_w are due"),
        (Single(FACES.type, FACES.text, FACES.bottoms[3:]), "strides 8, 16 and 32 are due"),
        (Single(REGIONS.type, REGIONS.text, REGIONS.bottoms[:2]), "deltas, scores and regions are due"),
        (changed(REGIONS, "class_num: ", "class_num: 1"), "class_num classes"),
        (changed(REGIONS, "obj_threshold: ", "obj_threshold: -"), "must not be negative"),
    ],
)  # fmt: skip
def test_what_this_caffe_does_not_compute_is_refused(case: Single, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=sentence):
        load(*written([case], "sophgo", tmp_path)[:2], BACKEND)
