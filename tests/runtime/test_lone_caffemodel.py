"""A caffemodel without its prototxt: what a real Caffe saved is read back as that Caffe computes it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from caffeforge.runtime.backends import find
from caffeforge.runtime.caffe_files import read_files
from caffeforge.runtime.errors import FileError
from caffeforge.runtime.loaded import LoadedNet
from tests.real_caffe.witness import Witness

NET = """
name: "saved"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 dim: 9 dim: 8 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 4 kernel_size: 3 pad: 1 bias_filler { type: "gaussian" std: 1 }
    weight_filler { type: "gaussian" std: 0.5 } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" relu_param { negative_slope: 0.25 } }
layer { name: "left" type: "Pooling" bottom: "conv" top: "left"
  pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 } }
layer { name: "right" type: "Pooling" bottom: "conv" top: "right"
  pooling_param { pool: MAX kernel_size: 3 stride: 2 pad: 1 } }
layer { name: "sum" type: "Eltwise" bottom: "left" bottom: "right" top: "sum"
  eltwise_param { coeff: 2 coeff: -1 } }
layer { name: "fc" type: "InnerProduct" bottom: "sum" top: "fc"
  inner_product_param { num_output: 5 weight_filler { type: "gaussian" std: 0.1 } } }
"""
SAVE = """
import sys, numpy as np, caffe
net = caffe.Net(sys.argv[1], caffe.TRAIN)
net.save(sys.argv[2])
net.blobs["data"].data[...] = np.load(sys.argv[3])
net.forward()
np.save(sys.argv[4], net.blobs["fc"].data)
"""


def test_what_caffe_saved_is_read_without_its_text(caffe: Witness, tmp_path: Path) -> None:
    """Caffe saves phases, and Split layers where a blob has two readers; both must not disturb."""
    image = np.random.default_rng(0).standard_normal((2, 3, 9, 8), np.float32)
    names = ("net.prototxt", "net.caffemodel", "in.npy", "out.npy")
    text, weights, given, result = (tmp_path / name for name in names)
    text.write_text(NET)
    np.save(given, image)
    command: list[str | Path] = [caffe.python, "-I", "-c", SAVE, text, weights, given, result]
    subprocess.run(command, check=True, capture_output=True)
    backend = find("bvlc")
    found = LoadedNet(read_files(weights, None, backend), backend).run({"data": image})
    expected = np.load(result)
    assert np.ptp(expected) > 1
    np.testing.assert_allclose(found["fc"], expected, rtol=1e-4, atol=1e-5)


def test_a_broken_caffemodel_is_refused_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "net.caffemodel"
    file.write_bytes(b"\xa2\x06\x05\x0a\x01a\x12\x09\x00")
    with pytest.raises(FileError, match=r"net\.caffemodel: .*runs past its message at byte"):
        read_files(file, None, find("bvlc"))
