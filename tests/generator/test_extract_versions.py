"""The committed versions of ONNX's operators: a released version does not change, nor does its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from caffeforge.generated import onnx as versions
from caffeforge.generator.diagnostics import GenerationError
from caffeforge.generator.extract_versions import LAST, extract
from caffeforge.generator.generate import generate

onnx = pytest.importorskip("onnx")

COMMITTED = Path(__file__).resolve().parents[2] / "schemas" / "onnx" / "opset.json"


@pytest.mark.skipif(onnx.defs.onnx_opset_version() < LAST, reason="the installed onnx is too old")
def test_extracting_again_gives_the_committed_bytes() -> None:
    assert extract().encode() == COMMITTED.read_bytes()


@pytest.mark.parametrize("opset", [1, 7, 9, 13, 18, versions.LAST])
def test_each_opset_finds_the_versions_that_onnx_finds(opset: int) -> None:
    for name in versions.VERSIONS:
        cls = versions.find(name, opset)
        try:
            schema = onnx.defs.get_schema(name, opset, "")
        except Exception:  # onnx raises a class that it does not name
            assert cls is None
            continue
        assert cls is not None
        assert (cls.since, cls.op_type) == (schema.since_version, name)
        assert [formal.name for formal in cls.inputs] == [formal.name.rstrip(".") for formal in schema.inputs]
        assert {attribute.name for attribute in cls.attributes} == set(schema.attributes)


def test_defaults_are_those_of_the_version() -> None:
    old, new = versions.find("Softmax", 12), versions.find("Softmax", 13)
    assert old is not None and new is not None
    assert (old().fields_by_name(), new().fields_by_name()) == ({"axis": 1}, {"axis": -1})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "not valid JSON"),
        ("[]", "not the form of op versions"),
        ('{"first": 7, "last": 8}', "the key 'versions' is missing"),
        ('{"first": 7, "last": 8, "versions": {"a b": []}}', "'a b' is no name"),
    ],
)
def test_a_broken_file_is_one_diagnostic(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "opset.json").write_text(text, encoding="utf-8")
    with pytest.raises(GenerationError, match=sentence):
        generate(tmp_path)


def test_the_file_says_little_and_says_it_once() -> None:
    described = json.loads(COMMITTED.read_text(encoding="utf-8"))
    assert sum(map(len, described["versions"].values())) == 629
    assert len(COMMITTED.read_bytes()) < 110_000
