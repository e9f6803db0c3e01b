"""Reading caffemodels that others wrote: packed or not, old shapes, other types, torn files."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caffeforge.runtime.array import (
    Dense,
    Full,
    NDArray,
)
from caffeforge.runtime.caffemodel import write
from caffeforge.runtime.caffemodel_reader import SavedLayer, read
from caffeforge.runtime.errors import FileError
from tests.runtime.fake_dialect import dialect
from tests.runtime.test_caffemodel import normal, written
from tests.runtime.test_prototxt import small_net


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
