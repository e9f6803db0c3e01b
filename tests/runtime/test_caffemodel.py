"""Writing weights in wire format, against what protobuf reads, and reading what protobuf wrote."""

from __future__ import annotations

import math
import random
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
from caffeforge.runtime.caffemodel_reader import SavedLayer, read
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


# --- reading what others wrote


def saved(tmp_path: Path, raw: bytes) -> tuple[SavedLayer, ...]:
    path = tmp_path / "other.caffemodel"
    path.write_bytes(raw)
    return read(path, dialect().backend).layers


def one_blob(tmp_path: Path, raw_blob: bytes) -> NDArray:
    """Read a blob of which `raw_blob` is the BlobProto."""
    layer = dialect().proto("LayerParameter")(name="l", type="ReLU")
    # Field 40 is `blobs`: 40 << 3 | 2 is the two bytes c2 02.
    raw_layer = layer.SerializeToString() + b"\xc2\x02" + _length(len(raw_blob)) + raw_blob
    (result,) = saved(tmp_path, b"\xea\x04" + _length(len(raw_layer)) + raw_layer)
    (blob,) = result.blobs
    assert isinstance(blob, Dense)
    return blob.numpy()


def _length(size: int) -> bytes:
    return bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14])


def blob_proto(**fields: Any) -> bytes:
    return bytes(dialect().proto("BlobProto")(**fields).SerializeToString())


def unpacked(values: NDArray) -> bytes:
    """Return `values` as field 21, one tag (ad 01) for each: as a schema without [packed = true] has it."""
    fake = dialect(("repeated float data = 21 [packed = true]", "repeated float data = 21"))
    return bytes(fake.proto("BlobProto")(data=values.tolist()).SerializeToString())


VALUES = normal(6)
SHAPE = blob_proto(shape={"dim": [2, 3]})


def test_a_net_that_protobuf_wrote_is_read(tmp_path: Path) -> None:
    proto = dialect().proto("NetParameter")(
        name="n",
        layer=[
            {
                "name": "c",
                "type": "Convolution",
                "bottom": ["a", "b"],
                "top": ["t"],
                "phase": 0,
                "blobs": [{"shape": {"dim": [2, 3]}, "data": VALUES}, {"shape": {"dim": []}, "data": [7]}],
                "convolution_param": {"num_output": 2},
            },
            {"name": "r", "type": "ReLU"},
        ],
    )
    path = tmp_path / "other.caffemodel"
    path.write_bytes(proto.SerializeToString())
    model = read(path, dialect().backend)
    first, second = model.layers
    assert model.name == "n"
    assert (first.name, first.type, first.bottoms, first.tops) == ("c", "Convolution", ("a", "b"), ("t",))
    assert np.array_equal(first.blobs[0].numpy(), VALUES.reshape(2, 3))
    assert np.array_equal(first.blobs[1].numpy(), np.array(7, np.float32))
    rest = dialect().proto("LayerParameter")(phase=0, convolution_param={"num_output": 2})
    assert first.rest == rest.SerializeToString()
    assert (second.name, second.type, second.blobs, second.rest) == ("r", "ReLU", (), b"")


def test_what_was_read_is_written_again_byte_for_byte(tmp_path: Path) -> None:
    net = small_net()
    net.layers[1].blobs = (Dense(normal(4, 3, 1, 1)), Dense(normal(5)))
    raw = written(net, tmp_path)
    blobs = read(tmp_path / "n.caffemodel", dialect().backend).layers[1].blobs
    assert any(not blob.numpy().flags.aligned for blob in blobs)  # where names and heads happen to end
    net.layers[1].blobs = blobs
    write(net, dialect().backend, tmp_path / "again.caffemodel")
    assert (tmp_path / "again.caffemodel").read_bytes() == raw


def test_packed_and_unpacked_and_split_runs_are_read(tmp_path: Path) -> None:
    start, end = VALUES[:2], VALUES[2:]
    for raw in (
        blob_proto(data=VALUES) + SHAPE,
        SHAPE + unpacked(VALUES),
        unpacked(VALUES) + SHAPE,
        unpacked(start) + SHAPE + unpacked(end),
        blob_proto(data=start) + blob_proto(data=end) + SHAPE,
        blob_proto(data=start) + unpacked(end) + SHAPE,
        unpacked(start) + blob_proto(data=end) + SHAPE,
    ):
        read_back = one_blob(tmp_path, raw)
        assert read_back.dtype == np.float32
        assert read_back.tobytes() == VALUES.tobytes()
        assert read_back.shape == (2, 3)


def test_unpacked_numbers_that_look_like_tags_are_read(tmp_path: Path) -> None:
    tags = np.frombuffer(b"\xad\x01\xad\x01" * 6, np.float32)
    assert one_blob(tmp_path, unpacked(tags) + SHAPE).tobytes() == tags.tobytes()


def test_a_million_unpacked_numbers_are_a_view_of_the_file(tmp_path: Path) -> None:
    values = normal(300_000)
    array = one_blob(tmp_path, unpacked(values) + blob_proto(shape={"dim": [300_000]}))
    assert np.array_equal(array, values)
    assert array.strides == (6,)  # two bytes of tag, four of number


def test_doubles_are_read_and_count_more_than_floats_as_in_caffe(tmp_path: Path) -> None:
    doubles = VALUES.astype(np.float64) / 3
    for raw in (blob_proto(double_data=doubles), blob_proto(double_data=doubles, data=[1.0])):
        array = one_blob(tmp_path, raw + SHAPE)
        assert array.dtype == np.float64
        assert array.tobytes() == doubles.tobytes()


@pytest.mark.parametrize("dims", [{}, {"shape": {"dim": [6]}}])
def test_blobs_from_before_shapes_have_four_dimensions(dims: dict[str, Any], tmp_path: Path) -> None:
    raw = blob_proto(num=1, channels=1, height=2, width=3, data=VALUES, **dims)
    assert one_blob(tmp_path, raw).shape == ((6,) if dims else (1, 1, 2, 3))


def test_gradients_beside_weights_are_ignored(tmp_path: Path) -> None:
    raw = blob_proto(shape={"dim": [2, 3]}, data=VALUES, diff=-VALUES)
    assert one_blob(tmp_path, raw).tobytes() == VALUES.tobytes()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (blob_proto(shape={"dim": [2, 3]}, diff=VALUES), "blob 0 of layer l holds gradients"),
        (blob_proto(shape={"dim": [2, 3]}, double_diff=VALUES), "blob 0 of layer l holds gradients"),
        (blob_proto(shape={"dim": [2, 3]}), r"blob 0 of layer l has shape \[2, 3\] and 0 elements"),
        (blob_proto(shape={"dim": [2, 2]}, data=VALUES), r"has shape \[2, 2\] and 6 elements"),
        (blob_proto(shape={"dim": [-2, -3]}, data=VALUES), r"has shape \[-2, -3\]"),
        (blob_proto(data=VALUES), r"has shape \[\] and 6 elements"),
        (blob_proto(num=6, data=VALUES), r"has shape \[6, 0, 0, 0\] and 6 elements"),
        (
            blob_proto(num=1, channels=1, height=2, width=2, shape={"dim": [6]}, data=VALUES),
            r"has shape \[6\], and \[1, 1, 2, 2\] in the older form",
        ),
        (blob_proto(half_data=b"abc"), "blob 0 of layer l has field 30, which is not known of blobs"),
        (b"\xaa\x01\x05abcde", "packed numbers of 4 bytes do not fill their field at byte"),
        (b"\xa8\x01\x05", "field 21 has wire type 0 at byte"),
    ],
)
def test_blobs_that_are_not_understood_are_refused(raw: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=message) as error:
        one_blob(tmp_path, raw)
    assert error.value.where == str(tmp_path / "other.caffemodel")


def test_a_net_before_2015_is_refused(tmp_path: Path) -> None:
    proto = dialect().proto("NetParameter")(layers=[{"name": "x"}])
    with pytest.raises(FileError, match="format before 2015"):
        saved(tmp_path, proto.SerializeToString())


def test_a_file_without_layers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="holds no layers"):
        saved(tmp_path, dialect().proto("NetParameter")(name="n").SerializeToString())
    with pytest.raises(FileError, match="empty"):
        saved(tmp_path, b"")
    with pytest.raises(FileError, match="cannot read the file"):
        read(tmp_path / "none.caffemodel", dialect().backend)


def test_a_torn_file_is_refused_or_read_and_nothing_else(tmp_path: Path) -> None:
    net = small_net()
    net.layers[1].blobs = (Dense(normal(4, 3, 1, 1)), Full((), 0.5))
    raw = written(net, tmp_path)
    chance = random.Random(5)
    refused = 0
    for _ in range(600):
        torn = bytearray(raw[: chance.randrange(1, len(raw))] if chance.random() < 0.5 else raw)
        torn[chance.randrange(len(torn))] ^= 1 << chance.randrange(8)
        try:
            for layer in saved(tmp_path, bytes(torn)):
                for blob in layer.blobs:
                    assert blob.numpy().size == math.prod(blob.shape)
        except FileError as error:
            refused += 1
            assert error.where.startswith(str(tmp_path))
    assert refused > 300
