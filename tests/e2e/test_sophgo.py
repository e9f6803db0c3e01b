"""Sophgo's Caffe: its layers by our rules, and what our rules make of ops in that Caffe."""

from pathlib import Path

import numpy as np
import pytest

from caffeforge.runtime.backends import find
from caffeforge.runtime.errors import ReadError
from caffeforge.runtime.loaded import load
from tests.e2e.dialect_cases import Single, drawn, errors, of_bvlc, written
from tests.e2e.layer_cases import TOLERANCE, Random
from tests.e2e.sophgo_cases import MAKERS
from tests.e2e.test_bvlc_examples import check_ops
from tests.real_caffe.witness import Witness

BACKEND = find("sophgo")
DETECTORS = ("FrcnDetection", "Proposal", "RetinaFaceDetection", "YoloDetection")
NOT_RUN = {
    **{kind: "test_sophgo_detectors has it" for kind in DETECTORS},
    "ConvolutionDepthwise": "it ends the process on a CPU",
    "DetectionOutput": "test_sophgo_detectors has it",
    "DummyData": "its tops are inputs",
    "ImageData": "it loads files",
    "Input": "every case has some",
    "MemoryData": "it loads data",
    "SpatialDropout": "this Caffe has it in its schema alone",
    "PSROIPooling": "this Caffe has it in its schema alone",
    "Silence": "it has no tops",
}


def test_layers_compute_what_this_caffe_computes(sophgo: Witness, tmp_path: Path) -> None:
    cases = of_bvlc(set(BACKEND.readers) - set(NOT_RUN), most=20) + drawn(MAKERS, each=20)
    found = errors(cases, "sophgo", sophgo, tmp_path)
    assert not {kind: error for kind, error in found.items() if not error <= TOLERANCE}
    assert set(found) == set(BACKEND.readers) - set(NOT_RUN)


def test_ops_are_computed_by_this_caffe_as_their_examples_say(sophgo: Witness, tmp_path: Path) -> None:
    lacks = ("DetectionOutput", *DETECTORS)
    assert check_ops(BACKEND, sophgo, tmp_path, lacks, inherited=True) > 200


@pytest.mark.parametrize(
    ("layer", "sentence"),
    [
        (Single("Pooling", "pooling_param { pool: AVE kernel_size: 3 avg_include_pad: false }"), "no notice"),
        (Single("Pooling", "pooling_param { pool: AVE kernel_size: 2 yolo: true }"), "yolo is read of"),
        (Single("Pooling", "pooling_param { kernel_size: 2 stride: 4 yolo: true }"), "a window lies outside"),
        (Single("MnActivation", "mn_activation_param { num_nodes_in: 2 }"), "machines of a cluster"),
        (Single("Reorg", "reorg_param { stride: 2 reverse: true }"), "reverse is not known"),
        (Single("Lstm", "lstm_param { num_output: 2 }"), "one sequence"),
    ],
)  # fmt: skip
def test_what_its_caffe_does_otherwise_is_refused(layer: Single, sentence: str, tmp_path: Path) -> None:
    shape = (3, 2, 2) if layer.type == "Lstm" else (1, 4, 8, 8)
    case = Single(layer.type, layer.text, (Random(1).normal(*shape),))
    with pytest.raises(ReadError, match=sentence):
        load(*written([case], "sophgo", tmp_path)[:2], BACKEND)


def test_a_depthwise_convolution_is_one_of_as_many_groups(tmp_path: Path) -> None:
    r = Random(2)
    x, weights, bias = r.normal(2, 3, 6, 5), r.normal(3, 1, 3, 2), r.normal(3)
    text = "convolution_param { num_output: 3 kernel_h: 3 kernel_w: 2 pad_h: 1 pad_w: 0 stride: 2 %s }"
    cases = [
        Single("ConvolutionDepthwise", text % "", (x,), (weights, bias)),
        Single("Convolution", text % "group: 3", (x,), (weights, bias)),
    ]
    prototxt, caffemodel, inputs = written(cases, "sophgo", tmp_path)
    found = load(prototxt, caffemodel, BACKEND).run(inputs)
    np.testing.assert_array_equal(found["y0_0"], found["y1_0"])
