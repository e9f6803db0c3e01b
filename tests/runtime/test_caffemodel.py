"""Writing weights in wire format, against what protobuf reads, and reading what protobuf wrote."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from caffeforge.runtime.array import (
    BLOCK_BYTES,
    Array,
    Dense,
    Elementwise,
    Full,
    NDArray,
    Reshaped,
    Transposed,
)
from caffeforge.runtime.caffemodel import LARGEST, casts, write
from caffeforge.runtime.caffemodel_reader import read
from caffeforge.runtime.errors import FileError, GraphError
from caffeforge.runtime.net import Layer, Net
from tests.runtime.fake_dialect import dialect
from tests.runtime.test_prototxt import small_net

RANDOM = np.random.default_rng(7)


def normal(*shape: int) -> NDArray:
    return RANDOM.standard_normal(shape).astype(np.float32)


ODD = {
    "contiguous": normal(4, 3, 2, 2),
    "transposed": normal(4, 3).T,
    "permuted": normal(5, 2, 3, 4).transpose(2, 0, 3, 1),
    "sliced": normal(9, 8)[1::3, ::-2],
    "float64": normal(3, 3).astype(np.float64) / 3,
    "float16": normal(3, 3).astype(np.float16),
    "bfloat16": normal(3, 3).astype(ml_dtypes.bfloat16),
    "int64": np.array([[0, -(2**24), 2**24, 5]]),
    "int8": np.array([-128, 127], np.int8),
    "bool": np.array([True, False]),
    "empty": np.zeros((0, 3), np.float32),
    "scalar": np.array(2.5, np.float32),
    "infinite": np.array([np.inf, -np.inf, np.nan, -0.0], np.float32),
    "over 4 MB": normal(1100, 1000),
    "over 4 MB, permuted": normal(3, 700, 600).transpose(2, 1, 0),
    "3 million in one dimension": normal(3_000_000),
    "3 million doubles in one row": normal(1, 3_000_000).astype(np.float64),
    "60 dimensions of 1": normal(*[1] * 60),
}


def written(net: Net, folder: Path) -> bytes:
    path = folder / "n.caffemodel"
    size = write(net, dialect().backend, path)
    raw = path.read_bytes()
    assert size == len(raw)
    return raw


def parsed(raw: bytes) -> Any:
    return dialect().proto("NetParameter").FromString(raw)


@pytest.mark.parametrize("name", ODD)
def test_protobuf_reads_the_same_weights(name: str, tmp_path: Path) -> None:
    array = ODD[name]
    net = Net("n", [Layer("l", dialect().ReLU(), (), (), (Dense(array), Dense(array.reshape(-1)[:1])))])
    (layer,) = parsed(written(net, tmp_path)).layer
    blob = layer.blobs[0]
    assert blob.HasField("shape")
    assert tuple(blob.shape.dim) == array.shape
    assert np.array(blob.data, np.float32).tobytes() == array.astype(np.float32).tobytes()
    assert not blob.double_data
    assert len(layer.blobs[1].data) == min(1, array.size)


@pytest.mark.parametrize("name", ODD)
def test_written_weights_read_back_as_views_of_the_file(name: str, tmp_path: Path) -> None:
    array = ODD[name]
    net = Net("n", [Layer("l", dialect().ReLU(), (), (), (Dense(array),))])
    written(net, tmp_path)
    (blob,) = read(tmp_path / "n.caffemodel", dialect().backend).layers[0].blobs
    assert isinstance(blob, Dense)
    assert (blob.shape, blob.dtype) == (array.shape, "float32")
    assert blob.numpy().tobytes() == array.astype(np.float32).tobytes()
    assert not blob.numpy().flags.owndata or not array.size


def test_protobuf_reads_the_same_net_message_by_message(tmp_path: Path) -> None:
    net = small_net()
    net.layers[1].blobs = (Dense(normal(4, 3, 1, 1)), Full((4,), 0.5))
    proto = parsed(written(net, tmp_path))
    fake = dialect()
    blobs = [
        {"shape": {"dim": blob.shape}, "data": blob.numpy().ravel().tolist()} for blob in net.layers[1].blobs
    ]
    convolution = {
        "num_output": 4,
        "bias_term": False,
        "pad": [1, 0],
        "slope": 1e-05,
        "engine": -1,
        "weight_filler": {"type": "xavier"},
        "lambda": True,
    }
    assert proto == fake.proto("NetParameter")(
        name="small",
        layer=[
            {
                "name": "data",
                "type": "Input",
                "top": ["data"],
                "input_param": {"shape": [{"dim": [1, 3, 8, 8]}]},
            },
            {
                "name": "conv1",
                "type": "Convolution",
                "bottom": ["data"],
                "top": ["conv1"],
                "blobs": blobs,
                "convolution_param": convolution,
            },
            {"name": "relu1", "type": "ReLU", "bottom": ["conv1"], "top": ["conv1"]},
        ],
    )


def test_a_layers_bytes_are_those_that_protobuf_writes(tmp_path: Path) -> None:
    data, transform = dialect().Data.FIELDS
    param = dialect().Data(data_param=data.type(source="s"), transform_param=transform.type(scale=2.0))
    net = Net("n", [Layer("d", param, ("b", "c"), ("t",)), *small_net().layers])
    raw = written(net, tmp_path)
    assert raw == parsed(raw).SerializeToString(deterministic=True)


def test_names_beyond_ascii_are_utf8(tmp_path: Path) -> None:
    proto = parsed(written(Net("网", [Layer("层/é", dialect().ReLU(), ("ä",), ("ö",))]), tmp_path))
    assert (proto.name, proto.layer[0].name, proto.layer[0].bottom[0]) == ("网", "层/é", "ä")


class Huge(Array):
    """Elements that nobody must ask for."""

    __slots__ = ()

    def rows(self, start: int, stop: int) -> NDArray:
        raise AssertionError("nothing is to be written")


def test_a_file_that_protobuf_cannot_read_is_refused_before_it_is_begun(tmp_path: Path) -> None:
    net = Net("big", [Layer("fc", dialect().ReLU(), (), (), (Huge((2**20, 512), "float32"),))])
    with pytest.raises(FileError, match=r"would take 2,147,483,\d\d\d bytes.* no more than 2,147,483,647"):
        write(net, dialect().backend, tmp_path / "n.caffemodel")
    assert not list(tmp_path.iterdir())
    # A net just below the limit is begun.
    net.layers[0].blobs = (Huge((LARGEST // 4 - 20,), "float32"),)
    with pytest.raises(AssertionError, match="nothing is to be written"):
        write(net, dialect().backend, tmp_path / "n.caffemodel")


def test_casts_names_the_weights_that_are_no_float32() -> None:
    blobs = (Dense(ODD["float16"]), Dense(ODD["scalar"]), Full((3,), 1.0, "bfloat16"))
    assert casts(Net("n", [Layer("c", dialect().ReLU(), (), (), blobs)])) == [
        "blob 0 of layer c is float16 and is written as float32",
        "blob 2 of layer c is bfloat16 and is written as float32",
    ]


@pytest.mark.parametrize("elements", [np.array([2**24 + 1]), np.array([1e39])])
def test_weights_that_float32_cannot_hold_are_refused_by_layer(elements: NDArray, tmp_path: Path) -> None:
    net = Net("n", [Layer("c", dialect().ReLU(), (), (), (Dense(elements),))])
    with pytest.raises(GraphError) as error:
        write(net, dialect().backend, tmp_path / "n.caffemodel")
    assert error.value.where == "layer c"


def test_parameters_that_do_not_fit_are_refused_by_layer(tmp_path: Path) -> None:
    net = Net("n", [Layer("c", dialect().Convolution(num_output=-1))])
    with pytest.raises(GraphError, match="layer c: field num_output"):
        write(net, dialect().backend, tmp_path / "n.caffemodel")
    assert not list(tmp_path.iterdir())


def test_an_array_that_gives_fewer_elements_than_its_shape_says_is_refused(tmp_path: Path) -> None:
    array = Elementwise(Dense(normal(6)), lambda part: part[:-1])
    with pytest.raises(GraphError, match=r"layer c: .*gave 20 bytes"):
        write(Net("n", [Layer("c", dialect().ReLU(), (), (), (array,))]), dialect().backend, tmp_path / "n")


def test_writing_takes_the_memory_of_a_few_blocks(tmp_path: Path) -> None:
    count = 12 * BLOCK_BYTES // 4
    dense = Dense(np.ones((1024, count // 1024), np.float32))
    arrays = (
        dense,
        Transposed(dense, (1, 0)),
        Elementwise(Reshaped(dense, (1, count)), np.negative),
        Dense(np.ones(count, np.float16)),
        Full((count,), 3.0),
    )
    net = Net("n", [Layer("c", dialect().ReLU(), (), (), arrays)])
    tracemalloc.start()
    try:
        size = write(net, dialect().backend, tmp_path / "n.caffemodel")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size > 5 * 12 * BLOCK_BYTES
    assert peak < 4 * BLOCK_BYTES
