"""The committed versions of ONNX's operators: a released version does not change, nor does its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from caffeforge.generated import onnx as versions
from caffeforge.generated.onnx.element_types import TYPES, types_of
from caffeforge.generator.diagnostics import GenerationError
from caffeforge.generator.extract_versions import LAST, extract, extract_opset
from caffeforge.generator.generate import generate

onnx = pytest.importorskip("onnx")

COMMITTED = Path(__file__).resolve().parents[2] / "schemas" / "onnx" / "opset.json"


@pytest.mark.skipif(onnx.defs.onnx_opset_version() < LAST, reason="the installed onnx is too old")
def test_extracting_again_gives_the_committed_bytes() -> None:
    assert extract().encode() == COMMITTED.read_bytes()


@pytest.mark.parametrize("opset", range(7, LAST + 1))
def test_extracting_an_opset_again_gives_the_committed_bytes(opset: int) -> None:
    if opset > onnx.defs.onnx_opset_version():
        pytest.skip("the installed onnx is too old")
    committed = COMMITTED.parents[1] / f"onnx_opset{opset}" / "opset.json"
    assert extract_opset(opset).encode() == committed.read_bytes()


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


def test_each_version_takes_the_types_that_onnx_says() -> None:
    for schema in onnx.defs.get_all_schemas_with_history():
        found = TYPES.get(schema.name, {}).get(schema.since_version)
        if schema.domain or found is None:
            continue
        for formal, name in zip(schema.inputs, found.inputs, strict=True):
            tensors = {str(t)[7:-1] for t in formal.types if t.startswith("tensor(")}
            given = types_of(name.removesuffix("**"), found)
            assert tensors == given or not tensors, (schema.name, schema.since_version, formal.name)


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
    (tmp_path / "rules.yaml").write_text("rules: {}\n", encoding="utf-8")
    with pytest.raises(GenerationError, match=sentence):
        generate(tmp_path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "not valid JSON"),
        ("[]", "not the form of an opset"),
        ('{"opset": 7, "ops": {"Abs": 13}}', "schemas/onnx has no Abs of opset 13 in force here"),
    ],
)
def test_a_broken_opset_is_one_diagnostic(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "opset.json").write_text(text, encoding="utf-8")
    with pytest.raises(GenerationError, match=sentence):
        generate(tmp_path)


def test_the_file_says_little_and_says_it_once() -> None:
    described = json.loads(COMMITTED.read_text(encoding="utf-8"))
    assert sum(map(len, described["versions"].values())) == 629
    assert len(COMMITTED.read_bytes()) < 160_000
