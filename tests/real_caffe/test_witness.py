"""The witnesses themselves: nets written by hand, whose results numpy knows."""

from pathlib import Path

import numpy as np
import pytest

from tests.real_caffe.witness import Witness, WitnessError

pytestmark = pytest.mark.real_caffe


@pytest.fixture(scope="module", params=["caffe", "kendryte", "sophgo"])
def witness(request: pytest.FixtureRequest) -> Witness:
    witness = request.getfixturevalue(request.param)
    assert isinstance(witness, Witness)
    return witness


def write_net(folder: Path, *layers: str, shape: str = "dim: 1 dim: 2 dim: 3 dim: 3") -> Path:
    """Write a net of one input ``x`` and the given layers."""
    path = folder / "net.prototxt"
    data = f'layer {{ name: "x" type: "Input" top: "x" input_param {{ shape {{ {shape} }} }} }}'
    path.write_text("\n".join(['name: "net"', data, *(f"layer {{ {layer} }}" for layer in layers)]))
    return path


def ramp(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Return -n/2, ..., n/2 - 1: distinct values of both signs."""
    size = int(np.prod(shape))
    return (np.arange(size, dtype=np.float32) - size // 2).reshape(shape)


def test_relu(witness: Witness, tmp_path: Path) -> None:
    net = write_net(
        tmp_path, 'name: "y" type: "ReLU" bottom: "x" top: "y" relu_param { negative_slope: 0.5 }'
    )
    x = ramp(1, 2, 3, 3)
    y = witness.run(net, None, {"x": x})
    assert list(y) == ["y"]
    np.testing.assert_array_equal(y["y"], np.where(x > 0, x, x / 2))


def test_eltwise_of_one_input_used_twice(witness: Witness, tmp_path: Path) -> None:
    net = write_net(
        tmp_path,
        'name: "square" type: "Power" bottom: "x" top: "square" power_param { power: 2 }',
        'name: "y" type: "Eltwise" bottom: "x" bottom: "square" top: "y" '
        "eltwise_param { coeff: 2 coeff: -1 }",
    )
    x = ramp(1, 2, 3, 3)
    blobs = witness.run(net, None, {"x": x}, all_blobs=True)
    assert list(blobs) == ["x", "square", "y"]  # without the copies that Caffe inserts
    np.testing.assert_allclose(blobs["y"], 2 * x - x * x, rtol=1e-6)


def test_pooling_rounds_up(witness: Witness, tmp_path: Path) -> None:
    net = write_net(
        tmp_path,
        'name: "y" type: "Pooling" bottom: "x" top: "y" pooling_param { pool: MAX kernel_size: 2 stride: 2 }',
    )
    x = -np.arange(25, dtype=np.float32).reshape(1, 1, 5, 5)
    y = witness.run(net, None, {"x": x})["y"]
    np.testing.assert_array_equal(
        y[0, 0], x[0, 0, ::2, ::2]
    )  # 3 x 3: the last windows hold one row or column


def test_inputs_take_their_own_shape(witness: Witness, tmp_path: Path) -> None:
    net = write_net(tmp_path, 'name: "y" type: "AbsVal" bottom: "x" top: "y"')
    x = ramp(4, 1, 2, 7)
    np.testing.assert_array_equal(witness.run(net, None, {"x": x})["y"], abs(x))


def test_names_that_are_no_file_names(witness: Witness, tmp_path: Path) -> None:
    net = write_net(
        tmp_path,
        'name: "a/b" type: "AbsVal" bottom: "x" top: "a/b:0"',
        'name: "c" type: "AbsVal" bottom: "a/b:0" top: "../c.0, d"',
        'name: "file" type: "AbsVal" bottom: "a/b:0" top: "file"',
    )
    x = ramp(1, 2, 3, 3)
    names = ["../c.0, d", "a/b:0", "file"]
    blobs = witness.run(net, None, {"x": x}, names)
    assert list(blobs) == names
    for name in names:
        np.testing.assert_array_equal(blobs[name], abs(x))


def test_weights_come_from_the_fillers_without_a_model(witness: Witness, tmp_path: Path) -> None:
    net = write_net(
        tmp_path,
        'name: "y" type: "InnerProduct" bottom: "x" top: "y" inner_product_param '
        '{ num_output: 1 bias_term: false weight_filler { type: "constant" value: 0.25 } }',
    )
    x = ramp(2, 2, 3, 3)
    y = witness.run(net, None, {"x": x})["y"]
    np.testing.assert_allclose(y, x.reshape(2, 18).sum(axis=1, keepdims=True) / 4, rtol=1e-6)


def test_abort_is_an_error_with_the_reason(witness: Witness, tmp_path: Path) -> None:
    net = write_net(tmp_path, 'name: "y" type: "Flutten" bottom: "x" top: "y"')
    with pytest.raises(
        WitnessError, match=r"(?s)exit status -6 on net\.prototxt.*Unknown layer type: Flutten"
    ):
        witness.run(net, None, {"x": ramp(1, 2, 3, 3)})


def test_unreadable_text_is_an_error_with_its_position(witness: Witness, tmp_path: Path) -> None:
    net = write_net(tmp_path, 'name: "y" type: "ReLU" bottom: "x" top: "y" no_such_field: 1')
    with pytest.raises(WitnessError, match=r'(?s)3:\d+: .*no field named "no_such_field"'):
        witness.run(net, None, {"x": ramp(1, 2, 3, 3)})


def test_inputs_and_blobs_must_exist(witness: Witness, tmp_path: Path) -> None:
    net = write_net(tmp_path, 'name: "y" type: "ReLU" bottom: "x" top: "y"')
    with pytest.raises(WitnessError, match=r"the net's inputs are \['x'\], given are \['data'\]"):
        witness.run(net, None, {"data": ramp(1, 2, 3, 3)})
    with pytest.raises(WitnessError, match=r"the net has no blob \['z'\]; it has \['x', 'y'\]"):
        witness.run(net, None, {"x": ramp(1, 2, 3, 3)}, ["z"])
