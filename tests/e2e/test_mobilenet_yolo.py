"""MobileNet-YOLO's Caffe: its layers in other Caffes that have them, and darknet's Reorg by a loop."""

from pathlib import Path

import numpy as np

from caffeforge.runtime.backends import find
from caffeforge.runtime.loaded import load
from tests.e2e import inisis_cases, sophgo_cases
from tests.e2e.dialect_cases import Single, drawn, errors, written
from tests.e2e.known_formulas import Floats
from tests.e2e.layer_cases import TOLERANCE, Random
from tests.real_caffe.witness import Witness

BACKEND = find("mobilenet_yolo")


def test_layers_of_the_community_compute_what_sophgo_s_caffe_computes(
    sophgo: Witness, tmp_path: Path
) -> None:
    c = sophgo_cases
    makers = {make.__name__: make for make in (c.axpy, c.normalize, c.permute, c.relu6, c.swish)}
    found = errors(drawn(makers, each=10), "mobilenet_yolo", sophgo, tmp_path)
    assert not {kind: error for kind, error in found.items() if not error <= TOLERANCE}
    assert sorted(found) == ["Axpy", "Normalize", "Permute", "ReLU6", "Swish"]


def test_upsample_repeats_as_the_caffe_of_inisis_does(caffe: Witness, tmp_path: Path) -> None:
    cases = drawn({"upsample": inisis_cases.upsample}, each=10)
    assert errors(cases, "mobilenet_yolo", caffe, tmp_path)["Upsample"] == 0


def darknet(x: Floats, stride: int) -> Floats:
    """Return what darknet's reorg gives: its loop over the places of the bottom, flat."""
    n, c, h, w = x.shape
    few = c // stride**2
    out = np.empty(x.size, np.float32)
    flat = x.ravel()
    for at, (b, k, j, i) in enumerate(np.ndindex(n, c, h, w)):
        row, column = j * stride + k // few // stride, i * stride + k // few % stride
        out[at] = flat[column + w * stride * (row + h * stride * (k % few + few * b))]
    return out.reshape(n, c * stride**2, h // stride, w // stride)


def test_reorg_follows_darknet(tmp_path: Path) -> None:
    r = Random(1)
    x = r.normal(2, 8, 4, 6)
    files = written([Single("Reorg", "reorg_param { stride: 2 }", (x,))], "mobilenet_yolo", tmp_path)
    found = load(*files[:2], BACKEND).run({"x0_0": x})["y0_0"]
    np.testing.assert_array_equal(found, darknet(x, 2))


def test_a_depthwise_convolution_is_one_layer(tmp_path: Path) -> None:
    r = Random(2)
    x, weights = r.normal(2, 4, 6, 5), r.normal(4, 1, 3, 3)
    text = "convolution_param { num_output: 4 kernel_size: 3 pad: 1 bias_term: false %s }"
    cases = [
        Single("DepthwiseConvolution", text % "", (x,), (weights,)),
        Single("Convolution", text % "group: 4", (x,), (weights,)),
    ]
    prototxt, caffemodel, inputs = written(cases, "mobilenet_yolo", tmp_path)
    found = load(prototxt, caffemodel, BACKEND).run(inputs)
    np.testing.assert_array_equal(found["y0_0"], found["y1_0"])
