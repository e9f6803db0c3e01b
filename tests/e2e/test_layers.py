"""Nets written by hand: what `load` computes for every top of every layer is what real Caffe computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from caffeforge.runtime import load
from tests.e2e import vendor
from tests.e2e.prototxt_cases import CASES, Case
from tests.e2e.vendor import Floats
from tests.real_caffe.witness import Witness

TOLERANCE = 1e-5  # of the scale


def run_in_caffe(witness: Witness, folder: Path) -> dict[str, Floats]:
    """Return every top of all cases, which are one net."""
    text = "".join(case.text for case in CASES)
    weights = {name: arrays for case in CASES for name, arrays in case.weights().items()}
    prototxt, caffemodel = vendor.write(folder, text, weights)
    inputs = {name: array for case in CASES for name, array in case.feed().items()}
    return witness.run(prototxt, caffemodel, inputs, [top for case in CASES for top in tops(case)])


@pytest.fixture(scope="module")
def by_caffe(caffe: Witness, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Floats]:
    return run_in_caffe(caffe, tmp_path_factory.mktemp("caffe"))


@pytest.fixture(scope="module")
def by_kendryte(kendryte: Witness, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Floats]:
    return run_in_caffe(kendryte, tmp_path_factory.mktemp("kendryte"))


def tops(case: Case) -> list[str]:
    proto = vendor.parse(case.text)
    return list(dict.fromkeys(top for layer in proto.layer if layer.type != "Input" for top in layer.top))


def run(case: Case, folder: Path) -> dict[str, Floats]:
    """Return every top of a case as `load` computes it."""
    prototxt, caffemodel = vendor.write(folder, case.text, case.weights())
    return load(prototxt, caffemodel).run(case.feed(), tops(case))


def assert_equal(found: dict[str, Floats], expected: dict[str, Floats]) -> None:
    assert found
    for name, array in found.items():
        due = expected[name]
        assert array.shape == due.shape, name
        assert due.std() > 0, f"{name} is the same everywhere"
        np.testing.assert_allclose(array, due, rtol=0, atol=TOLERANCE * np.abs(due).max(), err_msg=name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_layer(case: Case, by_caffe: dict[str, Floats], tmp_path: Path) -> None:
    assert_equal(run(case, tmp_path), by_caffe)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_layer_in_second_witness(case: Case, by_kendryte: dict[str, Floats], tmp_path: Path) -> None:
    assert_equal(run(case, tmp_path), by_kendryte)
