"""Synopsys' Caffe: padding of a convolution given for each side, as its nets from TensorFlow have it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from caffeforge.runtime import CaffeforgeError, load
from tests.e2e import vendor
from tests.e2e.layer_cases import Random

TEXT = """
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 dim: 6 dim: 7 } } }
layer { name: "y" type: "Convolution" bottom: "x" top: "y"
  convolution_param { num_output: 4 kernel_size: 3 stride: 2 %s } }
"""


def computed(folder: Path, padding: str) -> tuple[vendor.Floats, vendor.Floats, list[vendor.Floats]]:
    """Return what the layer gives, its input and its weights."""
    random = Random(0)
    blobs = [random.normal(4, 3, 3, 3), random.normal(4)]
    files = vendor.write(folder, TEXT % padding, {"y": blobs}, "synopsys")
    x = random.normal(2, 3, 6, 7)
    return load(*files, dialect="synopsys").run({"x": x})["y"], x, blobs


def test_each_side_has_a_padding_of_its_own(tmp_path: Path) -> None:
    found, x, (weights, bias) = computed(tmp_path, "pad_l: 2 pad_b: 1 pad_r: 0")
    padded = functional.pad(torch.from_numpy(x), (2, 0, 0, 1))
    expected = functional.conv2d(padded, torch.from_numpy(weights), torch.from_numpy(bias), stride=2)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("padding", ["pad: 1 pad_l: 1", "pad_h: 1 pad_t: 2"])
def test_two_kinds_of_padding_are_refused(padding: str, tmp_path: Path) -> None:
    with pytest.raises(CaffeforgeError, match="either pad_l"):
        computed(tmp_path, padding)
