"""Nets with losses, accuracies and data layers: what is left of them computes what real Caffe computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from caffeforge.generated.bvlc import BACKEND
from caffeforge.runtime import CaffeforgeError, load
from caffeforge.runtime.prototxt_reader import parse
from tests.e2e import vendor
from tests.e2e.prototxt_cases import normal
from tests.real_caffe.witness import Witness

INPUTS = """
layer { name: "in" type: "Input" top: "data" top: "label"
  input_param { shape { dim: 4 dim: 3 } shape { dim: 4 dim: 1 } } }
"""
MEMORY = """
layer { name: "in" type: "MemoryData" top: "data" top: "label" transform_param { scale: 0.5 }
  memory_data_param { batch_size: 4 channels: 3 height: 1 width: 1 } }
"""
IMAGES = """
layer { name: "in" type: "ImageData" top: "data" top: "label" transform_param { mirror: true }
  image_data_param { source: "list.txt" batch_size: 4 new_height: 6 new_width: 5 is_color: false } }
"""
LMDB = """
layer { name: "in" type: "Data" top: "data" top: "label" transform_param { crop_size: 5 }
  data_param { source: "lmdb" batch_size: 4 } }
"""
BODY = """
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 5 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
layer { name: "acc" type: "Accuracy" bottom: "ip" bottom: "label" top: "acc" include { phase: TEST } }
layer { name: "dump" type: "HDF5Output" bottom: "ip" bottom: "label" include { phase: TRAIN }
  hdf5_output_param { file_name: "x.h5" } }
layer { name: "hush" type: "Silence" bottom: "label" bottom: "acc" }
layer { name: "relu" type: "ReLU" bottom: "ip" top: "relu" }
"""
WEIGHTS = {"ip": [normal("w", 5, 3), normal("b", 5)]}


def test_what_is_left_computes_what_the_whole_net_computes_in_caffe(caffe: Witness, tmp_path: Path) -> None:
    files = vendor.write(tmp_path, INPUTS + BODY, WEIGHTS)
    inputs = {"data": normal("data", 4, 3), "label": np.array([[0], [1], [2], [4]], np.float32)}
    expected, net = caffe.run(*files, inputs, ["ip", "relu"]), load(*files)
    assert [layer.name for layer in net.net.layers] == ["in", "ip", "hush", "relu"]
    assert net.outputs == ["relu"]
    assert list(net.net.notes) == [
        "left out, as inference does not need them: loss (SoftmaxWithLoss), acc (Accuracy)"
    ]
    found = net.run(inputs, ["ip", "relu"])
    for name in ("ip", "relu"):
        assert expected[name].std() > 0
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(("text", "shape"), [(MEMORY, (4, 3, 1, 1)), (IMAGES, (4, 1, 6, 5))])
def test_data_layers_become_inputs_without_labels(text: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    prototxt = tmp_path / "net.prototxt"
    relu = 'layer { name: "relu" type: "ReLU" bottom: "data" top: "relu" }'
    loss = 'layer { name: "loss" type: "EuclideanLoss" bottom: "relu" bottom: "label" top: "loss" }'
    hush = 'layer { name: "hush" type: "Silence" bottom: "label" bottom: "loss" }'
    prototxt.write_text(text + relu + loss + hush)
    net = load(prototxt)
    kind = "MemoryData" if text is MEMORY else "ImageData"
    assert net.inputs == {"data": shape}
    assert net.outputs == ["relu"]
    assert [layer.name for layer in net.net.layers] == ["in", "relu"]
    assert net.net.notes[1:] == [f"layer in ({kind}) gives inputs, as they leave it: data"]
    given = normal("data", *shape)
    np.testing.assert_array_equal(net.run({"data": given})["relu"], np.maximum(given, 0))


def test_labels_that_are_read_stay_inputs(tmp_path: Path) -> None:
    prototxt = tmp_path / "net.prototxt"
    prototxt.write_text(MEMORY + 'layer { name: "relu" type: "ReLU" bottom: "label" top: "relu" }')
    assert load(prototxt).inputs == {"data": (4, 3, 1, 1), "label": (4,)}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            LMDB + BODY,
            r"layer in \(Data\): the net does not tell the shape of what it loads\n.*put an Input layer",
        ),
        (MEMORY.replace("channels: 3", "") + BODY, "batch_size, channels, height and width must be given"),
        (IMAGES.replace("new_height: 6", "") + BODY, "told neither by crop_size nor by new_height"),
    ],
)
def test_data_of_unknown_shape_is_refused(text: str, says: str, tmp_path: Path) -> None:
    prototxt = tmp_path / "net.prototxt"
    prototxt.write_text(text)
    with pytest.raises(CaffeforgeError, match=says):
        load(prototxt)


def test_a_data_layer_that_only_a_loss_reads_goes_with_it() -> None:
    target = LMDB.replace('"in"', '"target"').replace('"data" top: "label"', '"label"')
    relu = 'layer { name: "relu" type: "ReLU" bottom: "data" top: "relu" }'
    loss = 'layer { name: "loss" type: "EuclideanLoss" bottom: "relu" bottom: "label" top: "loss" }'
    memory = MEMORY.replace(' top: "label"', "")
    net = parse(memory + target + relu + loss, BACKEND).net
    assert [layer.name for layer in net.layers] == ["in", "relu"]
    assert net.notes[0] == "left out, as inference does not need them: target (Data), loss (EuclideanLoss)"


def test_a_loss_that_another_layer_reads_stays() -> None:
    power = 'layer { name: "twice" type: "Power" bottom: "loss" top: "twice" power_param { scale: 2 } }'
    text = parse(INPUTS + BODY + power, BACKEND)
    assert [layer.name for layer in text.net.layers] == ["in", "ip", "loss", "hush", "relu", "twice"]
    assert text.dropped == {"acc", "dump"}


def test_parameters_of_the_loss_that_a_layer_was_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "net.prototxt").write_text(
        'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 3 } } }\n'
        'layer { name: "p" type: "Softmax" bottom: "x" top: "p" loss_param { ignore_label: -1 } }\n'
    )
    x = np.array([[1, 2, 3]], np.float32)
    found = load(tmp_path / "net.prototxt").run({"x": x})["p"]
    np.testing.assert_allclose(found, np.exp(x) / np.exp(x).sum(), rtol=1e-5)
