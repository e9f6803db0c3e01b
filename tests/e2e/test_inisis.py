"""The Caffe of inisis: its layers by our rules, and what our rules make of ops in that Caffe."""

from pathlib import Path

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


def test_a_layer_that_the_program_lost_is_refused(tmp_path: Path) -> None:
    case = Single("Inception", "", (Random(1).normal(1, 4, 8, 8),))
    with pytest.raises(ReadError, match=r"Inception.*: the program has its parameters, and no such layer"):
        load(*written([case], "inisis", tmp_path)[:2], BACKEND)
