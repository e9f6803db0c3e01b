"""Nets written by hand: what `load` computes for every top of every layer is what real Caffe computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from caffeforge.runtime import load
from tests import checkout
from tests.e2e import vendor
from tests.e2e.prototxt_cases import CASES, Case, layer, normal
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


INPUTS = {  # how a net can name its inputs, and their shapes
    "input_dim": (
        'input: "a" input_dim: [2, 3, 4, 5] input: "b" input_dim: [1, 2, 3, 4]',
        {"a": (2, 3, 4, 5), "b": (1, 2, 3, 4)},
    ),
    "input_shape": (
        'input: "a" input: "b" input_shape { dim: 2 dim: 3 } input_shape { dim: 4 }',
        {"a": (2, 3), "b": (4,)},
    ),
    "one layer, one shape": (
        'layer { name: "i" type: "Input" top: "a" top: "b" input_param { shape { dim: 2 dim: 3 } } }',
        {"a": (2, 3), "b": (2, 3)},
    ),
    "one layer, two shapes": (
        'layer { name: "i" type: "Input" top: "a" top: "b" '
        "input_param { shape { dim: 2 dim: 3 } shape { dim: 5 } } }",
        {"a": (2, 3), "b": (5,)},
    ),
}


@pytest.mark.parametrize("name", INPUTS)
def test_inputs(name: str, caffe: Witness, tmp_path: Path) -> None:
    text, shapes = INPUTS[name]
    text += "".join(
        f'layer {{ name: "{top}" type: "ReLU" bottom: "{bottom}" top: "{top}" '
        f"relu_param {{ negative_slope: {slope} }} }}"
        for bottom, top, slope in (("a", "y", 0.5), ("b", "z", 2))
    )
    prototxt, _ = vendor.write(tmp_path, text, {})
    net = load(prototxt)
    assert net.inputs == shapes
    inputs = {name: normal(name, *shape) for name, shape in shapes.items()}
    assert_equal(net.run(inputs), caffe.run(prototxt, None, inputs))


def test_sizes_other_than_the_declared_ones(caffe: Witness, tmp_path: Path) -> None:
    text = layer("Pooling", "pooling_param { kernel_size: 3 stride: 2 pad: 1 pool: AVE }")
    text += layer("Reshape", "reshape_param { shape { dim: 0 dim: -1 } }", "y", "z", "flat")
    text += layer("Softmax", "", "z", "p", "softmax")
    case = Case("resized", text, {"x": (1, 2, 7, 7)})
    prototxt, _ = vendor.write(tmp_path, case.text, {})
    net = load(prototxt)
    for shape in ((3, 2, 7, 7), (1, 2, 8, 10), (1, 2, 7, 7)):
        inputs = {"resized/x": normal("resized", *shape)}
        assert_equal(net.run(inputs), caffe.run(prototxt, None, inputs))


GOLDENS = checkout.ROOT.parent / "shared" / "goldens"


@pytest.mark.skipif(not GOLDENS.exists(), reason="the goldens lie beside some checkouts only")
@pytest.mark.parametrize(
    "name", ["batch_norm", "concat", "convolution", "inner_product", "lrn_channels", "pooling_max", "softmax"]
)
def test_published_result(name: str) -> None:
    stem = GOLDENS / f"layer_{name}"
    caffemodel = stem.with_suffix(".caffemodel")
    net = load(stem.with_suffix(".prototxt"), caffemodel if caffemodel.exists() else None)
    found = net.run({"input": np.load(GOLDENS / "blob.npy")})
    assert_equal(found, {"output": np.load(stem.with_suffix(".npy"))})
