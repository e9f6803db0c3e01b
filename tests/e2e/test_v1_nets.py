"""Nets of the format before 2015, text and weights: read as real Caffe upgrades them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from caffeforge.generated.bvlc import BACKEND
from caffeforge.runtime import CaffeforgeError, load
from caffeforge.runtime.legacy.v1_net import layer_type
from tests.e2e import vendor
from tests.e2e.prototxt_cases import normal
from tests.real_caffe.witness import Witness

TEXT = """
input: 'data' input_dim: 2 input_dim: 3 input_dim: 9 input_dim: 8
layers { name: "conv" type: CONVOLUTION bottom: "data" top: "conv" blobs_lr: 1 blobs_lr: 2 weight_decay: 1
  convolution_param { num_output: 4 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layers { name: "relu" type: RELU bottom: "conv" top: "conv" relu_param { negative_slope: 0.1 } }
layers { name: "lrn" type: 15 bottom: "conv" top: "lrn" lrn_param { local_size: 3 alpha: 0.5 } }
layers { name: "pool" type: POOLING bottom: "lrn" top: "pool"
  pooling_param { pool: AVE kernel_size: 3 stride: 2 } }
layers { name: "a" type: INNER_PRODUCT bottom: "pool" top: "a" param: "w" param: "b"
  inner_product_param { num_output: 64 } }
layers { name: "b" type: INNER_PRODUCT bottom: "a" top: "b" param: "w" param: "b"
  inner_product_param { num_output: 64 } }
layers { name: "tanh" type: TANH bottom: "b" top: "tanh" exclude { phase: TRAIN } }
layers { name: "loss" type: SOFTMAX_LOSS bottom: "b" bottom: "data" include { phase: TRAIN } }
"""
BLOBS: Mapping[str, Sequence[vendor.Floats]] = {
    "conv": [normal("w", 1, 1, 1, 108).reshape(4, 3, 3, 3), normal("b", 4)],
    "a": [normal("fc", 64, 64), normal("fcb", 64)],
    "b": [normal("fc", 64, 64), normal("fcb", 64)],
}


def write(folder: Path) -> tuple[Path, Path]:
    """Write the net with weights in the old blob shapes (num, channels, height, width)."""
    prototxt, caffemodel = folder / "net.prototxt", folder / "net.caffemodel"
    prototxt.write_text(TEXT)
    proto = vendor.parse(TEXT)
    for layer in proto.layers:
        for array in BLOBS.get(layer.name, ()):
            blob = layer.blobs.add()
            four = (1,) * (4 - array.ndim) + array.shape
            blob.num, blob.channels, blob.height, blob.width = four
            blob.data.extend(array.ravel().tolist())
    caffemodel.write_bytes(proto.SerializeToString())
    return prototxt, caffemodel


def test_text_and_weights_compute_what_caffe_does(caffe: Witness, tmp_path: Path) -> None:
    files = write(tmp_path)
    inputs = {"data": normal("data", 2, 3, 9, 8)}
    names = ["conv", "lrn", "pool", "a", "tanh"]
    expected, found = caffe.run(*files, inputs, names), load(*files).run(inputs, names)
    for name in names:
        assert expected[name].std() > 0
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-4, atol=1e-5, err_msg=name)


def test_every_type_of_v1_has_a_name_of_today() -> None:
    kinds = vendor.net_parameter().DESCRIPTOR.fields_by_name["layers"].message_type.enum_types_by_name
    words = [value.name for value in kinds["LayerType"].values]
    assert words[0] == "NONE" and layer_type("NONE") == ""
    assert {layer_type(word) for word in words[1:]} <= set(BACKEND.layer_types)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ('layers { layer { name: "c" type: "crop" } bottom: "d" top: "c" }', 2, "which the oldest format"),
        ('layers { name: "c" type: CROP bottom: "d" top: "c" }', 2, "no value named CROP"),
        ('layers { type: RELU }\nlayer { type: "ReLU" }', 2, "both `layer` and `layers`"),
    ],
)
def test_what_is_not_read_is_refused_with_its_place(text: str, line: int, says: str, tmp_path: Path) -> None:
    prototxt = tmp_path / "net.prototxt"
    prototxt.write_text(f'name: "old"\n{text}\n')
    with pytest.raises(CaffeforgeError, match=rf"net\.prototxt:{line}:\d+: .*{says}"):
        load(prototxt)
