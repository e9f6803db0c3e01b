"""Reading a net from its two files: what is joined by name, what is compared, what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caffeforge.runtime.array import Dense, NDArray
from caffeforge.runtime.caffe_files import read_files
from caffeforge.runtime.errors import FileError
from caffeforge.runtime.net import Net
from tests.runtime.fake_dialect import Dialect, dialect
from tests.runtime.test_prototxt import small_net

WEIGHT = np.arange(12, dtype=np.float32).reshape(4, 3, 1, 1)
BIAS = np.array([1, 2, 3, 4], np.float32)


def net_with_weights(scale: float = 1) -> Net:
    net = small_net()
    net.layers[1].blobs = (Dense(WEIGHT * np.float32(scale)), Dense(BIAS))
    return net


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder, and the folders as empty names."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
    }


# --- reading


def files(tmp_path: Path, text: str, layers: list[dict[str, Any]], written_by: Dialect) -> tuple[Path, Path]:
    """Write a prototxt, and a caffemodel by protobuf in the dialect `written_by`."""
    prototxt, caffemodel = tmp_path / "n.prototxt", tmp_path / "n.caffemodel"
    prototxt.write_text(text, encoding="utf-8")
    proto = written_by.proto("NetParameter")(name="n", layer=layers)
    caffemodel.write_bytes(proto.SerializeToString())
    return prototxt, caffemodel


def blob(array: NDArray) -> dict[str, Any]:
    return {"shape": {"dim": array.shape}, "data": array.ravel().tolist()}


def saved_convolution(**fields: Any) -> dict[str, Any]:
    given = {"name": "c", "type": "Convolution", "bottom": ["a"], "top": ["c"], "blobs": [blob(BIAS)]}
    return {**given, **fields}


CONVOLUTION = 'layer { name: "c" type: "Convolution" bottom: "a" top: "c" convolution_param { %s } }\n'


def read(
    tmp_path: Path, text: str, layers: list[dict[str, Any]], by: Dialect | None = None, **more: Any
) -> Net:
    return read_files(*files(tmp_path, text, layers, by or dialect()), dialect().backend, **more)


def test_a_text_alone_is_read_without_weights(tmp_path: Path) -> None:
    prototxt, _ = files(tmp_path, CONVOLUTION % "num_output: 4", [], dialect())
    (layer,) = read_files(prototxt, None, dialect().backend).layers
    assert (layer.param, layer.blobs) == (dialect().Convolution(num_output=4), ())


def test_parameters_come_from_the_text_and_weights_from_the_binary(tmp_path: Path) -> None:
    layers = [saved_convolution(convolution_param={"num_output": 4, "engine": -1, "pad": [1]})]
    net = read(tmp_path, CONVOLUTION % "num_output: 4 pad: 1 engine: FAST", layers)
    assert net.layers[0].param == dialect().Convolution(num_output=4, pad=(1,), engine="FAST")
    assert np.array_equal(net.layers[0].blobs[0].numpy(), BIAS)


def test_layers_are_joined_by_name_whatever_their_order(tmp_path: Path) -> None:
    text = "".join(f'layer {{ name: "{name}" type: "ReLU" bottom: "a" }}' for name in "pqr")
    layers = [
        {"name": name, "type": "ReLU", "bottom": ["a"], "blobs": [blob(np.array([index], np.float32))]}
        for index, name in enumerate("rxp")
    ]
    net = read(tmp_path, text, layers)
    assert [[float(b.numpy()[0]) for b in layer.blobs] for layer in net.layers] == [[2.0], [], [0.0]]
    assert net.notes == ["layer x of the caffemodel has weights and is not in the prototxt"]


def test_layers_of_another_phase_are_left_out_in_silence(tmp_path: Path) -> None:
    text = 'layer { name: "t" type: "ReLU" include { phase: TRAIN } }' + CONVOLUTION % ""
    net = read(tmp_path, text, [saved_convolution(name="t", type="ReLU"), saved_convolution()])
    assert [layer.name for layer in net.layers] == ["c"]
    assert net.notes == []


def refusal(tmp_path: Path, text: str, layers: list[dict[str, Any]], by: Dialect | None = None) -> FileError:
    with pytest.raises(FileError) as error:
        read(tmp_path, text, layers, by)
    return error.value


MOVED_MESSAGE = dialect(
    ("convolution_param = 100", "convolution_param = 103"), ("data_param = 103", "data_param = 100")
)
NEW_NUMBER = dialect(("convolution_param = 100", "convolution_param = 110"))
SWAPPED = dialect(("repeated uint32 pad = 3", "repeated uint32 pad = 5"), ("stride = 5", "stride = 3"))
NEW_ENUM = dialect(("SLOW = -1", "SLOW = 9"))


@pytest.mark.parametrize(
    ("by", "fields", "message"),
    [
        (NEW_NUMBER, {"num_output": 4}, "layer c has in the caffemodel field 110, unknown to fake"),
        (MOVED_MESSAGE, {"num_output": 4}, "caffemodel data_param, no field of its type Convolution"),
        (
            SWAPPED,
            {"num_output": 4, "pad": [], "stride": 3},
            r"layer c: convolution_param.pad is \[1\] in the prototxt and \[3\] in the caffemodel",
        ),
        (NEW_ENUM, {"num_output": 4, "engine": 9}, "convolution_param.engine with an unknown value"),
        (dialect(), {"num_output": 5}, "num_output is 4 in the prototxt and 5 in the caffemodel"),
        (dialect(), {}, "num_output is 4 in the prototxt and 0 in the caffemodel"),
        (dialect(), {"num_output": 4, "stride": 2}, "stride is 1 in the prototxt and 2 in the caffemodel"),
        (
            dialect(),
            {"num_output": 4, "bias_term": False},
            "bias_term is True .* and False in the caffemodel",
        ),
        (dialect(), {"num_output": 4, "slope": 0.2}, "slope is 0.1 .* and 0.2 in the caffemodel"),
        (
            dialect(),
            {"num_output": 4, "filler": [{"value": 1}, {"value": 2}]},
            "convolution_param.filler is .* in the prototxt and .* in the caffemodel",
        ),
    ],
)
def test_a_caffemodel_that_says_something_else_is_refused(
    by: Dialect, fields: dict[str, Any], message: str, tmp_path: Path
) -> None:
    text = "\n" + CONVOLUTION % "num_output: 4 pad: 1"
    layers = [saved_convolution(convolution_param={"pad": [1], **fields})]
    error = refusal(tmp_path, text, layers, by)
    assert error.where == f"{tmp_path}/n.prototxt:2:1"
    assert re.search(message, error.what), error.what
    assert error.hint == "the caffemodel was written in another dialect than fake, or for another net"
    # The same as notes, if the user wants to go on.
    net = read(tmp_path, text, layers, by, compare=False)
    assert list(net.notes) == [error.what]
    assert net.layers[0].param == dialect().Convolution(num_output=4, pad=(1,))


def test_what_is_absent_on_one_side_counts_as_its_default(tmp_path: Path) -> None:
    layers = [saved_convolution(convolution_param={"bias_term": True, "slope": 0.1, "filler": [{}]})]
    text = CONVOLUTION % 'num_output: 0 stride: 1 filler { type: "constant" value: 0 }'
    assert read(tmp_path, text, layers).notes == []


def test_fields_that_the_rule_ignores_are_not_compared(tmp_path: Path) -> None:
    saved = {"num_output": 4, "engine": 0, "weight_filler": {"type": "xavier"}}
    assert (
        read(tmp_path, CONVOLUTION % "num_output: 4", [saved_convolution(convolution_param=saved)]).notes
        == []
    )


def test_all_differences_are_listed(tmp_path: Path) -> None:
    text = CONVOLUTION % "num_output: 4" + 'layer { name: "r" type: "ReLU" bottom: "c" }'
    layers = [
        saved_convolution(convolution_param={"num_output": 5, "stride": 3}),
        {"name": "r", "type": "Tanh", "bottom": ["c"]},
    ]
    error = refusal(tmp_path, text, layers)
    assert "3 faults" in error.what
    assert f"{tmp_path}/n.prototxt:1:1: layer c: convolution_param.num_output is 4" in error.what
    assert f"{tmp_path}/n.prototxt:2:1: layer r has type ReLU in the prototxt and Tanh" in error.what


def test_a_caffemodel_stripped_of_parameters_is_read(tmp_path: Path) -> None:
    net = read(tmp_path, CONVOLUTION % "num_output: 4", [saved_convolution(param=[{"lr_mult": 1}], phase=0)])
    assert np.array_equal(net.layers[0].blobs[0].numpy(), BIAS)


def test_types_are_compared_even_if_parameters_are_stripped(tmp_path: Path) -> None:
    error = refusal(tmp_path, CONVOLUTION % "num_output: 4", [saved_convolution(type="ReLU")])
    assert error.what == "layer c has type Convolution in the prototxt and ReLU in the caffemodel"


def test_what_feeds_the_net_may_differ_from_training(tmp_path: Path) -> None:
    text = 'layer { name: "data" type: "Input" top: "a" input_param { shape { dim: 1 } } }' + CONVOLUTION % ""
    for source in (
        {"name": "data", "type": "Data", "top": ["a"], "data_param": {"source": "lmdb"}},
        {"name": "data", "type": "Input", "top": ["a"], "input_param": {"shape": [{"dim": [64]}]}},
    ):
        net = read(tmp_path, text, [source, saved_convolution()])
        assert net.layers[0].type == "Input"
        assert net.notes == []


def test_a_caffemodel_of_another_net_is_refused(tmp_path: Path) -> None:
    error = refusal(tmp_path, CONVOLUTION % "", [saved_convolution(name="x"), saved_convolution(name="y")])
    assert "none of the 2 layers that have weights in the caffemodel is in the prototxt" in error.what


@pytest.mark.parametrize("double", ["text", "binary"])
def test_two_layers_of_one_name_with_weights_are_refused(double: str, tmp_path: Path) -> None:
    text, layers = CONVOLUTION % "", [saved_convolution()]
    if double == "text":
        text = text * 2
    else:
        layers = layers * 2
    assert "several layers are named c" in refusal(tmp_path, text, layers).what


def test_two_layers_of_one_name_without_weights_are_read(tmp_path: Path) -> None:
    text = 'layer { name: "r" type: "ReLU" bottom: "a" }' * 2 + CONVOLUTION % ""
    relu = {"name": "r", "type": "ReLU", "bottom": ["a"]}
    assert len(read(tmp_path, text, [relu, relu, saved_convolution()]).layers) == 3


# --- sharing


def sharing(name: str, *params: str) -> str:
    specs = " ".join(f"param {{ {param} }}" for param in params)
    return f'layer {{ name: "{name}" type: "ReLU" bottom: "a" {specs} }}\n'


def relu(name: str, *arrays: NDArray) -> dict[str, Any]:
    return {"name": name, "type": "ReLU", "bottom": ["a"], "blobs": [blob(array) for array in arrays]}


ONE, TWO, THREE = (np.full((2, 3), n, np.float32) for n in (1, 2, 3))


def test_layers_that_share_a_parameter_get_the_same_weights(tmp_path: Path) -> None:
    text = sharing("p", 'name: "w"', "lr_mult: 1") + sharing("q", 'name: "w"') + sharing("r", "", 'name: "w"')
    net = read(tmp_path, text, [relu("p", ONE, TWO), relu("r", THREE, ONE)])
    p, q, r = (layer.blobs for layer in net.layers)
    assert [float(b.numpy()[0, 0]) for b in (*p, *q, *r)] == [1, 2, 1, 3, 1]
    assert q[0].shape == (2, 3)


def test_sharing_that_a_text_alone_cannot_keep_is_noted(tmp_path: Path) -> None:
    text = sharing("p", 'name: "w"', 'name: "b"') + sharing("q", "", 'name: "w"') + CONVOLUTION % ""
    prototxt, _ = files(tmp_path, text, [], dialect())
    assert read_files(prototxt, None, dialect().backend).notes == [
        "layers p, q share the weights w, which is lost without a caffemodel"
    ]


def test_of_shared_weights_that_differ_the_last_counts_as_in_caffe(tmp_path: Path) -> None:
    text = sharing("p", 'name: "w"') + sharing("q", 'name: "w"')
    net = read(tmp_path, text, [relu("q", TWO), relu("p", THREE)])
    assert [float(layer.blobs[0].numpy()[0, 0]) for layer in net.layers] == [3, 3]


def test_permissive_sharing_keeps_each_layers_shape(tmp_path: Path) -> None:
    text = sharing("p", 'name: "w"') + sharing("q", 'name: "w" share_mode: PERMISSIVE')
    net = read(tmp_path, text, [relu("q", TWO.T), relu("p", ONE)])
    assert [layer.blobs[0].shape for layer in net.layers] == [(2, 3), (3, 2)]
    assert np.array_equal(net.layers[1].blobs[0].numpy(), ONE.reshape(3, 2))


@pytest.mark.parametrize(
    ("params", "layers", "message"),
    [
        (['name: "w"'], [relu("p", ONE), relu("q", ONE.T)], r"blob 0 of layer p has shape \[2, 3\]"),
        (["", 'name: "w"'], [relu("p", ONE)], "lacks blob 0 of layer q"),
        (['name: "w" share_mode: PERMISSIVE'], [relu("p", ONE)], "lacks blob 0 of layer q"),
    ],
)
def test_shared_weights_that_do_not_fit_are_refused(
    params: list[str], layers: list[dict[str, Any]], message: str, tmp_path: Path
) -> None:
    error = refusal(tmp_path, sharing("p", 'name: "w"') + sharing("q", *params), layers)
    assert re.search(message, error.what), error.what


# --- files that are something else

OTHER_FILES = {
    "an empty file": b"",
    "an HTML page": b"\n<!DOCTYPE html>\n<html><body>404</body></html>",
    "a Git LFS pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n",
    "a zip archive": b"PK\x03\x04\x14\0",
    "an HDF5 file": b"\x89HDF\r\n\x1a\n\0",
    "a gzip archive": b"\x1f\x8b\x08\0",
    "text in UTF-16": 'layer { type: "ReLU" }'.encode("utf-16"),
}


@pytest.mark.parametrize("seems", OTHER_FILES)
def test_a_file_that_is_something_else_says_what_it_seems_to_be(seems: str, tmp_path: Path) -> None:
    prototxt, caffemodel = files(tmp_path, CONVOLUTION % "", [saved_convolution()], dialect())
    other = tmp_path / "other"
    other.write_bytes(OTHER_FILES[seems])
    with pytest.raises(FileError, match=f"other: this is no prototxt: it seems to be {seems}"):
        read_files(other, caffemodel, dialect().backend)
    with pytest.raises(FileError, match=f"other: this is no caffemodel: it seems to be {seems}"):
        read_files(prototxt, other, dialect().backend)


def test_the_two_files_given_in_the_wrong_order_are_noticed(tmp_path: Path) -> None:
    prototxt, caffemodel = files(tmp_path, CONVOLUTION % "", [saved_convolution()], dialect())
    with pytest.raises(FileError, match="no prototxt: it seems to be a binary file, such as a caffemodel"):
        read_files(caffemodel, prototxt, dialect().backend)
    with pytest.raises(FileError, match="no caffemodel: it seems to be a prototxt"):
        read_files(prototxt, prototxt, dialect().backend)


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot read the file: No such file or directory"):
        read_files(tmp_path / "none.prototxt", None, dialect().backend)
