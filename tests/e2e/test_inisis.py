"""The Caffe of inisis: its layers by our rules, and what our rules make of ops in that Caffe."""

from pathlib import Path

import numpy as np
import pytest

from caffeforge.runtime.backends import find
from caffeforge.runtime.errors import ReadError
from caffeforge.runtime.loaded import load
from tests.e2e.dialect_cases import Single, drawn, errors, of_bvlc, written
from tests.e2e.inisis_cases import MAKERS
from tests.e2e.layer_cases import TOLERANCE, Random
from tests.e2e.test_bvlc_examples import check_ops
from tests.real_caffe.witness import Witness

BACKEND = find("inisis")
# What is inherited unchanged is compared for ssd and bvlc, in the same Caffe.
OWN = {
    "BatchNormKyle", "BilinearInterpolate", "Convolution", "Deconvolution", "HardSigmoid", "HardSwish",
    "MaxUnPool", "Pad", "PixelShuffle", "Pooling", "ReLU6", "Resize", "Unsqueeze", "Upsample",
}  # fmt: skip


def test_layers_compute_what_this_caffe_computes(caffe: Witness, tmp_path: Path) -> None:
    cases = of_bvlc({"Convolution", "Deconvolution", "Im2col", "Pooling"}, most=20) + drawn(MAKERS, each=20)
    found = errors(cases, "inisis", caffe, tmp_path)
    assert not {kind: error for kind, error in found.items() if not error <= TOLERANCE}
    assert set(found) == OWN | {"Im2col"}


def test_ops_are_computed_by_this_caffe_as_their_examples_say(caffe: Witness, tmp_path: Path) -> None:
    assert check_ops(BACKEND, caffe, tmp_path, lacks=("DetectionOutput",), inherited=True) > 200


def test_sizes_are_products_in_float32(caffe: Witness, tmp_path: Path) -> None:
    """In double precision these were 28, 53 and 57 rows of these."""
    r = Random(3)
    rows = (r.normal(1, 1, 25, 6), r.normal(1, 1, 50, 6))
    pyramid = "resize_param {{ is_pyramid_test: true out_height_scale: {} out_width_scale: 1.5 }}"
    cases = [
        Single("Resize", pyramid.format(1.16), rows[:1]),
        Single("Resize", pyramid.format(1.06), rows[1:]),
        Single("BilinearInterpolate", "bilinear_interpolate_param { scale_factor: 1.16 }", rows[1:]),
    ]
    files = written(cases, "inisis", tmp_path)
    due = caffe.run(*files)
    found = load(*files[:2], BACKEND).run(files[2])
    assert [blob.shape[2] for blob in due.values()] == [29, 52, 58]
    for name, blob in due.items():
        np.testing.assert_allclose(found[name], blob, rtol=1e-4, atol=1e-5)


def test_weights_that_its_parameters_do_not_ask_for_are_refused(tmp_path: Path) -> None:
    r = Random(4)
    blobs = [r.normal(3), np.abs(r.normal(3)), np.ones(1, np.float32), r.normal(3), r.normal(3)]
    case = Single("BatchNormKyle", "", (r.normal(1, 3, 4, 4),), blobs)
    with pytest.raises(ReadError, match=r"BatchNormKyle.*: mean, variance and their scale factor are due"):
        load(*written([case], "inisis", tmp_path)[:2], BACKEND)


def test_a_layer_that_the_program_lost_is_refused(tmp_path: Path) -> None:
    case = Single("Inception", "", (Random(1).normal(1, 4, 8, 8),))
    with pytest.raises(ReadError, match=r"Inception.*: the program has its parameters, and no such layer"):
        load(*written([case], "inisis", tmp_path)[:2], BACKEND)
