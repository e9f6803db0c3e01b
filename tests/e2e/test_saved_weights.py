"""Weights as files have them: doubles, old shapes, layers missing; by us and by real Caffe."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caffeforge.generated.bvlc import load
from caffeforge.runtime.errors import ReadError
from tests.e2e import vendor
from tests.e2e.layer_cases import Random, difference
from tests.e2e.vendor import Floats
from tests.real_caffe.witness import Witness

TEXT = """name: "n"
layer { name: "d" type: "Input" top: "d" input_param { shape { dim: 2 dim: 3 dim: 4 dim: 5 } } }
layer { name: "a" type: "Convolution" bottom: "d" top: "a"
  convolution_param { num_output: 4 kernel_size: 3 } }
layer { name: "s" type: "Scale" bottom: "a" top: "s" scale_param { bias_term: true } }
layer { name: "b" type: "Convolution" bottom: "s" top: "b"
  convolution_param { num_output: 2 kernel_size: 1 } }
layer { name: "c" type: "Bias" bottom: "b" top: "c" }
layer { name: "q" type: "PReLU" bottom: "c" top: "q" }
layer { name: "i" type: "InnerProduct" bottom: "q" top: "i" inner_product_param { num_output: 3 } }
"""


def weights() -> dict[str, list[Floats]]:
    random = Random(0)
    return {
        "a": [random.normal(4, 3, 3, 3), random.normal(4)],
        "s": [random.normal(4), random.normal(4)],
        "b": [random.normal(2, 4, 1, 1), random.normal(2)],
        "c": [random.normal(2)],
        "q": [random.normal(2)],
        "i": [random.normal(3, 12), random.normal(3)],
    }


def files(folder: Path, change: Callable[[Any], None]) -> tuple[Path, Path]:
    """Write a net whose caffemodel `change` has worked on, as a NetParameter of protobuf."""
    prototxt, caffemodel = vendor.write(folder, TEXT, weights())
    proto = vendor.net_parameter()()
    proto.ParseFromString(caffemodel.read_bytes())
    change(proto)
    caffemodel.write_bytes(proto.SerializeToString())
    return prototxt, caffemodel


def as_doubles(proto: Any) -> None:
    for layer in proto.layer:
        for blob in layer.blobs:
            blob.double_data.extend(blob.data)
            blob.ClearField("data")


def of_four_axes(proto: Any) -> None:
    for layer in proto.layer:
        for blob in layer.blobs:
            dims = [1] * (4 - len(blob.shape.dim)) + list(blob.shape.dim)
            blob.ClearField("shape")
            blob.num, blob.channels, blob.height, blob.width = dims


@pytest.mark.parametrize("change", [as_doubles, of_four_axes], ids=["doubles", "four axes"])
def test_blobs_of_other_forms_are_those_of_caffe(
    change: Callable[[Any], None], caffe: Witness, tmp_path: Path
) -> None:
    given = files(tmp_path, change)
    x = {"d": Random(1).normal(2, 3, 4, 5)}
    assert difference(load(*given).run(x)["i"], caffe.run(*given, x)["i"]) < 1e-5


def test_layers_without_weights_in_the_caffemodel_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(ReadError) as caught:
        load(*files(tmp_path, lambda proto: proto.layer[1].ClearField("blobs")))
    assert caught.value.where == f"{tmp_path}/net.prototxt:3: layer a (Convolution)"
    assert caught.value.hint == "the caffemodel has no weights for a: other names there?"
    with pytest.raises(ReadError) as caught:
        load(*files(tmp_path, _without_names))
    assert caught.value.hint == "the caffemodel has no weights for a, b: other names there?"


def _without_names(proto: Any) -> None:
    for layer in proto.layer:
        if layer.type == "Convolution":
            layer.name = f"{layer.name}_old"


def test_weights_of_an_lstm_may_have_four_axes(caffe: Witness, tmp_path: Path) -> None:
    text = """name: "n"
    layer { name: "d" type: "Input" top: "d" input_param { shape { dim: 3 dim: 2 dim: 4 } } }
    layer { name: "on" type: "Input" top: "on" input_param { shape { dim: 3 dim: 2 } } }
    layer { name: "l" type: "LSTM" bottom: "d" bottom: "on" top: "l" recurrent_param { num_output: 3 } }"""
    random = Random(2)
    blobs = {"l": [random.normal(12, 4), random.normal(12), random.normal(12, 3)]}
    given = vendor.write(tmp_path, text, blobs)
    proto = vendor.net_parameter()()
    proto.ParseFromString(given[1].read_bytes())
    of_four_axes(proto)
    given[1].write_bytes(proto.SerializeToString())
    x = {"d": random.normal(3, 2, 4), "on": np.array([[0, 0], [1, 1], [1, 0]], np.float32)}
    assert difference(load(*given).run(x)["l"], caffe.run(*given, x)["l"]) < 1e-5


def test_too_few_and_too_many_weights_of_a_layer_are_told_with_their_shapes(tmp_path: Path) -> None:
    def fewer(proto: Any) -> None:
        del proto.layer[1].blobs[1]

    def more(proto: Any) -> None:
        proto.layer[1].blobs.add().CopyFrom(proto.layer[2].blobs[0])

    for change, says in ((fewer, "it 1 blob: 4x3x3x3"), (more, "it 3 blobs: 4x3x3x3, 4, 4")):
        with pytest.raises(ReadError, match=rf"layer a \(Convolution\).*\n.*the caffemodel gives {says}"):
            load(*files(tmp_path, change))
