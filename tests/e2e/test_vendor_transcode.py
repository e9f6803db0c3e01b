"""Nets that go from one vendor's dialect to another's: renumbered, renamed, or by way of the hub."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from caffeforge.generator.schema_folder import SCHEMAS
from caffeforge.runtime.backends import find
from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.loaded import load
from caffeforge.runtime.transcode.transcoder import transcode
from tests.e2e import vendor
from tests.generator.judge import Judge

DILATED = """
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 4 dim: 9 dim: 8 } } }
layer { name: "conv" type: "%s" bottom: "x" top: "conv"
  convolution_param { num_output: 6 bias_term: false kernel_size: 3 pad: 2 %s } }
layer { name: "scale" type: "Scale" bottom: "conv" top: "scale" }
layer { name: "slopes" type: "PReLU" bottom: "scale" top: "slopes" }
"""
WEIGHTS = {
    "conv": [np.random.default_rng(0).normal(size=(6, 4, 3, 3)).astype(np.float32)],
    "scale": [np.arange(1, 7, dtype=np.float32)],
    "slopes": [np.linspace(0.1, 0.6, 6, dtype=np.float32)],
}
DETECTOR = """
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 8 dim: 6 dim: 5 } } }
layer { name: "norm" type: "Normalize" bottom: "x" top: "norm"
  norm_param { across_spatial: false channel_shared: true } }
layer { name: "perm" type: "Permute" bottom: "norm" top: "perm" permute_param { %s } }
layer { name: "flat" type: "Flatten" bottom: "perm" top: "flat" }
"""
ORDER = "order: 0 order: 2 order: 3 order: 1"


@pytest.mark.parametrize(
    ("source", "kind", "dilation", "target", "written", "told"),
    [
        ("bvlc", "Convolution", "dilation: 2", "nart", "HoleConvolution", "hole_h: 2"),
        ("nart", "HoleConvolution", "hole: 2", "bvlc", "Convolution", "dilation: 2"),
        ("nart", "HoleConvolution", "hole_h: 2 hole_w: 2", "ppq", "HoleConvolution", "hole_h: 2"),
        ("ppq", "HoleConvolution", "hole: 2", "ascend", "Convolution", "dilation: 2"),
    ],
)
def test_numbers_and_names_of_a_dilation_change(
    source: str, kind: str, dilation: str, target: str, written: str, told: str, tmp_path: Path
) -> None:
    text = DILATED % (kind, dilation)
    if source == "ppq":
        head = 'input: "x" input_shape { dim: 1 dim: 4 dim: 9 dim: 8 }'
        text = "\n".join([head, *text.splitlines()[2:]])
    files = vendor.write(tmp_path, text, WEIGHTS, source)
    transcode(files[0], files[1], tmp_path / "out", source=source, target=target)
    net = Judge((SCHEMAS / target / "caffe.proto").read_text()).net(tmp_path / "out")
    conv = next(layer for layer in net.layer if layer.name == "conv")
    assert conv.type == written and told in str(conv.convolution_param)
    new = load(tmp_path / "out.prototxt", tmp_path / "out.caffemodel", find(target))
    old = load(*files, find(source))
    x = {"x": np.random.default_rng(1).normal(size=(1, 4, 9, 8)).astype(np.float32)}
    np.testing.assert_allclose(new.run(x)["slopes"], old.run(x)["slopes"], rtol=1e-5, atol=1e-6)


def test_layers_of_ssd_go_to_nnie_as_far_as_it_takes_them(tmp_path: Path) -> None:
    weights = {"norm": [np.float32(2.0) * np.ones(1, np.float32)]}
    files = vendor.write(tmp_path, DETECTOR % ORDER, weights, "ssd")
    transcode(files[0], files[1], tmp_path / "out", source="ssd", target="nnie")
    net = Judge((SCHEMAS / "nnie" / "caffe.proto").read_text()).net(tmp_path / "out")
    assert [layer.type for layer in net.layer] == ["Input", "Normalize", "Permute", "Flatten"]
    x = {"x": np.random.default_rng(1).normal(size=(1, 8, 6, 5)).astype(np.float32)}
    new = load(tmp_path / "out.prototxt", tmp_path / "out.caffemodel", find("nnie")).run(x)
    np.testing.assert_allclose(new["flat"], load(*files, find("ssd")).run(x)["flat"], rtol=1e-5)


@pytest.mark.parametrize("source", ["ssd", "nnie"])
def test_another_order_of_permute_is_written_by_the_one_that_nnie_has(source: str, tmp_path: Path) -> None:
    weights = {"norm": [np.float32(2.0) * np.ones(1, np.float32)]}
    other = "order: 0 order: 3 order: 1 order: 2"
    files = vendor.write(tmp_path, DETECTOR % other, weights, source)
    transcode(files[0], files[1], tmp_path / "out", source=source, target="nnie")
    net = Judge((SCHEMAS / "nnie" / "caffe.proto").read_text()).net(tmp_path / "out")
    orders = [list(layer.permute_param.order) for layer in net.layer if layer.type == "Permute"]
    assert orders == [[0, 2, 3, 1], [0, 2, 3, 1]]
    x = {"x": np.random.default_rng(1).normal(size=(1, 8, 6, 5)).astype(np.float32)}
    new = load(tmp_path / "out.prototxt", tmp_path / "out.caffemodel", find("nnie")).run(x)
    np.testing.assert_allclose(new["flat"], load(*files, find(source)).run(x)["flat"], rtol=1e-5)


def test_what_nart_cannot_say_is_refused(tmp_path: Path) -> None:
    text = 'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 3 } } }\n'
    text += 'layer { name: "e" type: "ELU" bottom: "x" top: "e" }'
    files = vendor.write(tmp_path, text, {})
    with pytest.raises(CaffeforgeError, match="nart has no rule for Elu"):
        transcode(files[0], files[1], tmp_path / "out", source="bvlc", target="nart")
    assert not (tmp_path / "out.prototxt").exists()
