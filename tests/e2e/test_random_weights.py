"""Nets without weights get random ones of the shapes that Caffe asks for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from caffeforge.generated.bvlc import BACKEND
from caffeforge.runtime import cli, load
from caffeforge.runtime.caffe_files import write_files
from caffeforge.runtime.errors import CaffeforgeError
from tests.e2e.layer_cases import Random, difference
from tests.real_caffe.witness import Witness

TEXT = """name: "bare"
input: "d" input_shape { dim: 2 dim: 3 dim: 12 dim: 12 }
input: "cont" input_shape { dim: 12 dim: 2 }
layer { name: "c" type: "Convolution" bottom: "d" top: "c"
  convolution_param { num_output: 4 kernel_size: 3 pad: 1 } }
layer { name: "bn" type: "BatchNorm" bottom: "c" top: "c" }
layer { name: "sc" type: "Scale" bottom: "c" top: "c" scale_param { bias_term: true } }
layer { name: "pr" type: "PReLU" bottom: "c" top: "c" }
layer { name: "bi" type: "Bias" bottom: "c" top: "c" bias_param { axis: 1 num_axes: 2 } }
layer { name: "dc" type: "Deconvolution" bottom: "c" top: "dc"
  convolution_param { num_output: 4 kernel_size: 2 stride: 2 group: 4 bias_term: false } }
layer { name: "r" type: "Reshape" bottom: "c" top: "r"
  reshape_param { shape { dim: 12 dim: 2 dim: -1 } } }
layer { name: "l" type: "LSTM" bottom: "r" bottom: "cont" top: "l"
  recurrent_param { num_output: 5 } }
layer { name: "rn" type: "RNN" bottom: "l" bottom: "cont" top: "rn"
  recurrent_param { num_output: 3 } }
layer { name: "f" type: "InnerProduct" bottom: "dc" top: "f" inner_product_param { num_output: 6 } }
layer { name: "p" type: "Softmax" bottom: "f" top: "p" }
"""


def test_random_weights_have_the_shapes_that_caffe_takes(caffe: Witness, tmp_path: Path) -> None:
    path = tmp_path / "bare.prototxt"
    path.write_text(TEXT)
    net = load(path, weights="random")
    prototxt, caffemodel, _ = write_files(net.net, BACKEND, tmp_path / "filled", "{}\n")
    cont = np.ones((12, 2), np.float32)
    cont[0] = 0
    inputs = {"d": Random(0).normal(2, 3, 12, 12), "cont": cont}
    names = ["c", "dc", "l", "rn", "f", "p"]
    expected, found = caffe.run(prototxt, caffemodel, inputs, names), net.run(inputs, names)
    for name in names:
        assert expected[name].std() > 1e-3, name
        assert difference(found[name], expected[name]) < 1e-5, name
    again = load(path, weights="random").run(inputs, ["p"])["p"]
    np.testing.assert_allclose(again, found["p"], rtol=1e-5)


def test_what_is_wrong_besides_is_still_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bare.prototxt"
    path.write_text(TEXT.replace("kernel_size: 3 pad: 1", "kernel_size: 3 group: 5"))
    with pytest.raises(CaffeforgeError, match=r"layer c \(Convolution\): group must divide the channels"):
        load(path, weights="random")
    path.write_text(TEXT)
    assert cli.main(["run", str(path), "--backend", "bvlc", "--random"]) == 1
    assert "give its caffemodel, or ask for random ones" in capsys.readouterr().err
    for options in ([], ["--random-weights"]):  # which only counts them
        assert cli.main(["layers", str(path), "--backend", "bvlc", *options]) == 0
        assert "15,146" in capsys.readouterr().out
    assert cli.main(["run", str(path), "--backend", "bvlc", "--random", "--random-weights"]) == 0
    assert "p: 2x6" in capsys.readouterr().out
