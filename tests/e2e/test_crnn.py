"""A CRNN, as text recognizers are: convolutions to one row, then LSTMs along it; by us and by real Caffe."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from caffeforge.generated import ssd
from tests.e2e import vendor
from tests.e2e.layer_cases import Random, difference
from tests.e2e.vendor import Floats
from tests.real_caffe.witness import Witness

TEXT = """name: "crnn"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 1 dim: 16 dim: 40 } } }
layer { name: "cont" type: "Input" top: "cont" input_param { shape { dim: 10 dim: 2 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 8 kernel_size: 3 pad: 1 } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2"
  convolution_param { num_output: 12 kernel_size: 3 pad: 1 } }
layer { name: "bn2" type: "BatchNorm" bottom: "conv2" top: "conv2" }
layer { name: "scale2" type: "Scale" bottom: "conv2" top: "conv2" scale_param { bias_term: true } }
layer { name: "relu2" type: "ReLU" bottom: "conv2" top: "conv2" }
layer { name: "pool2" type: "Pooling" bottom: "conv2" top: "pool2"
  pooling_param { pool: MAX kernel_h: 8 kernel_w: 2 stride_h: 8 stride_w: 2 } }
layer { name: "steps" type: "Permute" bottom: "pool2" top: "steps"
  permute_param { order: 3 order: 0 order: 1 order: 2 } }
layer { name: "rows" type: "Reshape" bottom: "steps" top: "rows"
  reshape_param { shape { dim: 0 dim: 0 dim: -1 } } }
layer { name: "lstm1" type: "LSTM" bottom: "rows" bottom: "cont" top: "lstm1"
  recurrent_param { num_output: 16 } }
layer { name: "lstm2" type: "LSTM" bottom: "lstm1" bottom: "cont" top: "lstm2"
  recurrent_param { num_output: 9 } }
layer { name: "fc" type: "InnerProduct" bottom: "lstm2" top: "fc"
  inner_product_param { num_output: 11 axis: 2 } }
layer { name: "prob" type: "Softmax" bottom: "fc" top: "prob" softmax_param { axis: 2 } }
layer { name: "best" type: "ArgMax" bottom: "fc" top: "best" argmax_param { axis: 2 } }
"""


def weights() -> dict[str, list[Floats]]:
    random = Random(0)

    def lstm(count: int, inputs: int) -> list[Floats]:
        four = 4 * count
        return [random.normal(four, inputs), random.normal(four, scale=0.1), random.normal(four, count)]

    return {
        "conv1": [random.normal(8, 1, 3, 3), random.normal(8)],
        "conv2": [random.normal(12, 8, 3, 3, scale=0.2), random.normal(12, scale=0.1)],
        "bn2": [random.normal(12, scale=0.1), random.positive(12), np.array([1.0], np.float32)],
        "scale2": [random.normal(12, scale=0.05), random.normal(12, scale=0.1)],
        "lstm1": lstm(16, 12),
        "lstm2": lstm(9, 16),
        "fc": [random.normal(11, 9, scale=2.0), random.normal(11, scale=0.1)],
    }


def test_a_crnn_reads_lines_as_caffe_does(caffe: Witness, tmp_path: Path) -> None:
    files = vendor.write(tmp_path, TEXT, weights(), "ssd")
    cont = np.ones((10, 2), np.float32)
    cont[0] = 0
    cont[6, 1] = 0  # the second line is two words, one after the other
    inputs = {"data": Random(1).normal(2, 1, 16, 40), "cont": cont}
    names = ["rows", "lstm1", "lstm2", "fc", "prob", "best"]
    expected, found = caffe.run(*files, inputs, names), ssd.load(*files).run(inputs, names)
    for name in names:
        assert expected[name].std() > 0, name
        assert difference(found[name], expected[name]) < 1e-5, name
    whole = ssd.load(*files).run({**inputs, "cont": np.repeat(cont[:, :1], 2, 1)}, ["fc"])["fc"]
    assert difference(whole[:6], expected["fc"][:6]) < 1e-5  # up to the second word
    assert difference(whole[6:, 1], expected["fc"][6:, 1]) > 1e-3  # which is not read as the first goes on
