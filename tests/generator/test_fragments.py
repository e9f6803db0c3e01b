"""Protos to be pasted into Caffe's own: the same backend as the pasted whole, or both places named."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

import pytest

from caffeforge.generator.generate import generate
from caffeforge.generator.schema_diff import compare
from caffeforge.generator.schema_folder import SCHEMAS
from tests.generator.inputs import result
from tests.generator.test_input_forms import essence

BVLC = (SCHEMAS / "bvlc" / "caffe.proto").read_text(encoding="utf-8")
FIELDS = """  optional FocusParameter focus_param = 300;
  optional ReLU6Parameter relu6_param = 301;
"""
MESSAGES = """message FocusParameter {
  enum Order { ROWS = 0; COLUMNS = 1; }
  optional uint32 block = 1 [default = 2];
  optional Order order = 2;
  optional FillerParameter filler = 3;
  optional PoolingParameter.PoolMethod pool = 4;
  optional Turn turn = 5 [default = RIGHT];
}
message ReLU6Parameter { optional float negative_slope = 1 [default = 0]; }
"""
ENUM = "enum Turn { LEFT = 0; RIGHT = 1; }\n"
FRAGMENT = f"message LayerParameter {{\n{FIELDS}}}\n{MESSAGES}{ENUM}"


def written(folder: Path, data: str | bytes, mapping: str = "") -> Path:
    """Write a schema alone into a folder ``vendorx``, or beside a mapping, and return the folder."""
    source = folder / "vendorx"
    source.mkdir(exist_ok=True)
    (source / "caffe.proto").write_bytes(data.encode() if isinstance(data, str) else data)
    if mapping:
        (source / "mapping.yaml").write_text(mapping, encoding="utf-8")
    return source


@pytest.fixture(scope="module")
def pasted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the package of bvlc's whole proto into which the fragment was pasted."""
    head, opening, rest = BVLC.partition("message LayerParameter {\n")
    body, closing, tail = rest.partition("\n}\n")
    whole = f"{head}{opening}{body}\n{FIELDS}{closing.lstrip()}{tail}{MESSAGES}{ENUM}"
    return essence(generate(written(tmp_path_factory.mktemp("pasted"), whole)))


SAVED = {
    "plain": FRAGMENT.encode(),
    "with a syntax line and a package": f'syntax = "proto2";\npackage caffe;\n{FRAGMENT}'.encode(),
    "CRLF and BOM": codecs.BOM_UTF8 + FRAGMENT.replace("\n", "\r\n").encode(),
    "Latin-1": "// message NetParameter { sera collé après }\n".encode("latin-1") + FRAGMENT.encode(),
    "with fields that stand there": FRAGMENT.replace(
        FIELDS, f"  optional string name = 1;\n  optional PReLUParameter prelu_param = 131;\n{FIELDS}"
    ).encode(),
}


@pytest.mark.parametrize("data", SAVED.values(), ids=SAVED.keys())
def test_a_fragment_gives_the_backend_of_the_pasted_whole(
    data: bytes, pasted: dict[str, str], tmp_path: Path
) -> None:
    package = generate(written(tmp_path, data))
    assert essence(package) == pasted
    assert [field.name for field in package.arrival.unknown] == ["focus_param"]
    assert ("ReLU6", "relu6") in package.arrival.known


CLASHES = {
    "number": (
        "message LayerParameter {\n  optional int32 focus = 131;\n}",
        r"caffe.proto:2:3: .*number 131, which is that of prelu_param at {}",
    ),
    "type": (
        "message PReLUParameter {}\nmessage LayerParameter { optional int32 prelu_param = 131; }",
        r"caffe.proto:2:26: .*is optional int32 131 here and optional PReLUParameter 131 at {}",
    ),
    "default": (
        "message ReLUParameter {\n  optional float negative_slope = 1 [default = 0.1];\n}",
        r"caffe.proto:2:3: .*by default 0.1 here and optional float 1, by default 0.0 at {}",
    ),
    "enum": (
        "message LayerParameter {}\nenum Phase { TRAIN = 0; TEST = 1; TUNE = 2; }",
        r"caffe.proto:2:1: .*the enum Phase has other values than that of {}",
    ),
}


@pytest.mark.parametrize("name", CLASHES)
def test_a_clash_with_the_base_is_reported_with_both_places(name: str, tmp_path: Path) -> None:
    data, expected = CLASHES[name]
    package, found = result(written(tmp_path, data))
    assert package is None and [error.id for error in found] == ["fragment-clash"]
    assert re.search(expected.format(r"bvlc/caffe.proto:\d+"), str(found[0]))


REFUSED = {
    "a bracket is missing": ("message LayerParameter {\n  optional float gamma = 300 [default = 2;\n}", 2),
    "a number twice": (
        "message ConvolutionParameter {\n  optional int32 blur = 40;\n  optional int32 b = 40;\n}",
        3,
    ),
    "an unknown type": ("// focal\nmessage LayerParameter {\n\n  optional FocalParameter focal = 300;\n}", 4),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_protoc_refuses_in_a_fragment_has_its_own_place(name: str, tmp_path: Path) -> None:
    data, line = REFUSED[name]
    package, found = result(written(tmp_path, data))
    assert package is None
    assert {(error.id, error.position.line) for error in found} == {("proto", line)}


def test_a_fragment_is_laid_over_the_base_of_its_mapping(tmp_path: Path) -> None:
    mapping = "backend: vendorx\nextends: ssd\n"
    package = generate(written(tmp_path, FRAGMENT, mapping))
    assert '"PriorBox": Reader(' in package.files["read.py"] and "ReLU6" in package.files["layers.py"]
    (error,) = result(written(tmp_path, "message LayerParameter { optional int32 x = 202; }", mapping))[1]
    assert "permute_param at ssd/caffe.proto" in error.sentence


def test_messages_that_no_layer_holds_are_no_schema(tmp_path: Path) -> None:
    found = result(written(tmp_path, 'syntax = "proto2";\nmessage FocusParameter { optional int32 x = 1; }'))[
        1
    ]
    assert {error.id for error in found} == {"schema-skeleton"}


def test_a_fragment_may_be_what_an_update_brings(tmp_path: Path) -> None:
    folder = written(tmp_path, FRAGMENT)
    found = compare(SCHEMAS / "bvlc", folder / "caffe.proto")
    assert not found.is_breaking
    assert {"LayerParameter.focus_param", "LayerParameter.relu6_param"} == {
        e.change.subject for e in found.effects
    }
