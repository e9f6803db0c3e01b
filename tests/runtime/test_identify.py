"""Which dialect wrote a file: those that cannot are told why, those that could are compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from caffeforge.generator.generate import generate, write
from caffeforge.generator.schema_folder import SCHEMAS
from caffeforge.runtime.backends import find
from caffeforge.runtime.caffe_files import read_files
from caffeforge.runtime.cli import main
from caffeforge.runtime.errors import UsageError
from caffeforge.runtime.identify import identify
from caffeforge.runtime.private_pool import PrivatePool

NET = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 7 dim: 7 } } }
layer { name: "pool" type: "Pooling" bottom: "data" top: "pool"
  pooling_param { kernel_size: 2 stride: 2 %s } }
"""
CONVOLUTION = """
input: "data" input_dim: 1 input_dim: 3 input_dim: 7 input_dim: 7
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 4 kernel_size: 3 } }
"""
MAPPING = """
backend: ceiling
extends: bvlc
layers:
  Pooling:
    amend: true
    prepend:
      - when: ceil_mode and pool == "MAX" and len(tops) == 1
        rewrite: tops[0] = MaxPool(bottom, kernel_shape=k, strides=s, pads=p + add(p, over))
"""


@pytest.fixture(scope="module")
def ceiling(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dialect with ``ceil_mode`` where Caffe's last version has ``round_mode``, as in OpenVINO's."""
    folder = tmp_path_factory.mktemp("ceiling")
    text = (SCHEMAS / "bvlc" / "caffe.proto").read_text()
    pooling = "message PoolingParameter {"
    assert pooling in text
    (folder / "ceiling").mkdir()
    schema = folder / "ceiling" / "caffe.proto"
    schema.write_text(text.replace(pooling, f"{pooling}\n  optional bool ceil_mode = 13 [default = false];"))
    (folder / "ceiling" / "mapping.yaml").write_text(MAPPING)
    write(generate(folder / "ceiling"), folder / "out")
    return folder / "out" / "ceiling"


def saved(folder: Path, mode: str) -> Path:
    """Return a caffemodel without weights that protobuf wrote in Caffe's last version."""
    net = PrivatePool(find("bvlc_master")).message("NetParameter")()
    text_format.Parse(NET % mode, net)
    file = folder / "net.caffemodel"
    file.write_bytes(net.SerializeToString())
    return file


def test_the_same_bytes_that_mean_two_things_are_told(ceiling: Path, tmp_path: Path) -> None:
    """KEY_FACTS 6: ``round_mode: FLOOR`` reads as ``ceil_mode: true``, the opposite."""
    file = saved(tmp_path, "round_mode: FLOOR")
    found = identify([file], [find(ceiling), find("bvlc_master"), find("bvlc")])
    assert [(verdict.backend.name, verdict.explains) for verdict in found] == [
        ("ceiling", True),
        ("bvlc_master", True),
        ("bvlc", False),
    ]
    (difference,) = found[1].differs_from["ceiling"]
    assert difference == "layer pool: ceiling reads ceil_mode: True; bvlc_master reads round_mode: FLOOR"
    assert found[2].faults == (f"{file}: layer pool has pooling_param.field 13, unknown to bvlc",)


def test_dialects_that_read_the_same_are_told_so(tmp_path: Path) -> None:
    found = identify([saved(tmp_path, "")], [find("bvlc_master"), find("bvlc")])
    assert all(verdict.explains for verdict in found)
    assert found[1].differs_from == {"bvlc_master": ()}


def test_reading_a_caffemodel_alone_notes_what_others_would_read(ceiling: Path, tmp_path: Path) -> None:
    net = read_files(saved(tmp_path, "round_mode: FLOOR"), None, find(ceiling))
    assert (
        "the same bytes mean something else elsewhere: "
        "layer pool: ceiling reads ceil_mode: True; bvlc_master reads round_mode: FLOOR"
    ) in net.notes


def test_a_text_tells_its_dialect_by_the_names_of_fields(ceiling: Path, tmp_path: Path) -> None:
    file = tmp_path / "net.prototxt"
    file.write_text(NET % "ceil_mode: true")
    found = identify([file], [find("bvlc"), find("bvlc_master"), find(ceiling)])
    assert [verdict.backend.name for verdict in found if verdict.explains] == ["ceiling"]
    assert f'{file}:4:44: PoolingParameter has no field named "ceil_mode"' in found[1].faults[0]


def test_the_command_prints_verdicts_and_fails_where_no_dialect_fits(
    ceiling: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "net.prototxt"
    file.write_text(NET % "ceil_mode: true")
    assert main(["identify", str(file), "--backend", str(ceiling)]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "ceiling explains the files"
    file.write_text(NET % "rounding: true")
    assert main(["identify", str(file), "--json"]) == 1
    said = capsys.readouterr()
    assert {verdict["backend"]: verdict["explains"] for verdict in json.loads(said.out)}["bvlc"] is False
    assert "no dialect that is installed explains net.prototxt" in said.err


def test_files_of_two_nets_are_refused(tmp_path: Path) -> None:
    for name in ("a.prototxt", "b.prototxt"):
        (tmp_path / name).write_text(NET % "")
    with pytest.raises(UsageError, match="one prototxt, one caffemodel, or one of each"):
        identify([tmp_path / "a.prototxt", tmp_path / "b.prototxt"], [find("bvlc")])


def test_a_field_that_is_one_number_or_a_list_of_one_is_no_difference(tmp_path: Path) -> None:
    """Of a plain convolution segnet, nart and inisis have other fields and defaults."""
    net: Any = PrivatePool(find("bvlc")).message("NetParameter")()
    text_format.Parse(CONVOLUTION, net)
    for shape in ((4, 3, 3, 3), (4,)):
        blob = net.layer[0].blobs.add()
        blob.shape.dim.extend(shape)
        blob.data.extend([0.5] * int(np.prod(shape)))
    weights, text = tmp_path / "net.caffemodel", tmp_path / "net.prototxt"
    weights.write_bytes(net.SerializeToString())
    text.write_text(CONVOLUTION)
    dialects = [find(name) for name in ("bvlc", "inisis", "nart", "segnet")]
    for file in (weights, text):
        *before, last = identify([file], dialects)
        assert len(before) == 3 and last.explains and set(last.differs_from.values()) == {()}
    assert not [note for note in read_files(weights, None, find("bvlc")).notes if "something else" in note]
