"""schemas/known_layers.yaml: every entry is a working layer, and a schema's fields find the right ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from caffeforge.generator.generate import Package, generate
from caffeforge.generator.known_layers import KnownLayer
from tests.generator import known as known_layers
from tests.generator.inputs import result
from tests.generator.known import PROTO, entry, packs, proto


def _folder(path: Path, schema: str, mapping: str = "") -> Path:
    folder = path / "vendorx"
    folder.mkdir(exist_ok=True)
    (folder / "caffe.proto").write_text(schema, encoding="utf-8")
    (folder / "mapping.yaml").write_text(f"backend: vendorx\nextends: bvlc\n{mapping}", encoding="utf-8")
    return folder


def _dropped(package: Package) -> list[str]:
    return [d.reason for d in package.dropped if "known_layers" in d.rule]


@pytest.mark.parametrize("pack", packs(), ids=lambda pack: pack[0].id.text)
def test_entries_are_taken_by_use_and_their_rules_fit(pack: list[KnownLayer], tmp_path: Path) -> None:
    source = tmp_path / "vendorx"
    source.mkdir()
    (source / "caffe.proto").write_text(proto(pack), encoding="utf-8")
    (source / "mapping.yaml").write_text(known_layers.mapping(pack), encoding="utf-8")
    package = generate(source)
    assert _dropped(package) == []
    for known in pack:
        kind = known.types[0].text
        assert (f'"{kind}": Reader(' in package.files["read.py"]) == (known.layers is not None)
        if known.ops or known.fallback:
            assert f"layers.{kind}(" in package.files["emit.py"]


def test_the_only_meaning_that_fits_is_taken(tmp_path: Path) -> None:
    package = generate(_folder(tmp_path, proto([entry("permute")])))
    assert '"Permute": Reader(' in package.files["read.py"]
    assert _dropped(package) == []


def test_of_several_meanings_none_is_taken_until_use_says_which(tmp_path: Path) -> None:
    schema = proto([entry("reorg.darknet")])
    package = generate(_folder(tmp_path, schema))
    assert "Reorg" not in package.files["read.py"] + package.files["emit.py"]
    (reason,) = _dropped(package)
    assert "reorg.darknet or reorg.pass_through or reorg.space_to_depth" in reason
    darknet = generate(_folder(tmp_path, schema, "use: {Reorg: reorg.darknet}\n"))
    depth = generate(_folder(tmp_path, schema, "use: {Reorg: reorg.space_to_depth}\n"))
    assert "layers.Reorg(stride=op.blocksize)" not in darknet.files["emit.py"]
    assert "layers.Reorg(stride=op.blocksize)" in depth.files["emit.py"]
    assert darknet.files["read.py"] != depth.files["read.py"]


@pytest.mark.parametrize(
    "schema",
    [
        proto([entry("permute")], extra="optional bool inverse = 80;"),
        proto([entry("permute")], without="order"),
        proto([entry("permute")]).replace("repeated uint32 order", "repeated float order"),
        proto([entry("permute")]).replace(
            "optional New0Parameter permute_param", "optional int32 permute_param"
        ),
    ],
    ids=["extra field", "missing field", "other type", "no message"],
)
def test_a_message_of_another_form_is_not_taken(schema: str, tmp_path: Path) -> None:
    assert "Permute" not in generate(_folder(tmp_path, schema)).files["read.py"]
    (error,) = result(_folder(tmp_path, schema, "use: {Permute: permute}\n"))[1]
    assert (error.id, error.position.line) == ("use-fit", 3)


def test_the_own_mapping_goes_before_what_is_known(tmp_path: Path) -> None:
    own = "layers:\n  Permute: {ignore: [order], rewrite: 'tops[0] = Relu(bottom)'}\n"
    read = generate(_folder(tmp_path, proto([entry("permute")]), own)).files["read.py"]
    assert "vendorx/mapping.yaml:4" in read and "known_layers" not in read
    claimed = "types: {Turn: permute_param}\n"
    assert "Permute" not in generate(_folder(tmp_path, proto([entry("permute")]), claimed)).files["read.py"]


@pytest.mark.parametrize(
    ("use", "id", "words"),
    [
        ("{Reorg: reorg.darknett}", "unknown-meaning", "did you mean reorg.darknet?"),
        ("{Axpy: [axpy]}", "unknown-meaning", "unknown meaning"),
        ("{Permute: axpy}", "use-fit", "the meaning of Axpy"),
        ("{Permute: permute}", "use-fit", "no field permute_param"),
        ("[Permute]", "yaml-shape", "expected here"),
    ],
)
def test_a_wrong_use_is_reported_where_it_stands(use: str, id: str, words: str, tmp_path: Path) -> None:
    errors = result(_folder(tmp_path, PROTO, f"use: {use}\n"))[1]
    assert [(e.id, e.position.line) for e in errors] == [(id, 3)]
    assert words in str(errors[0])


def test_a_backend_inherits_what_its_base_uses(tmp_path: Path) -> None:
    base = _folder(tmp_path, proto([entry("reorg.darknet")]), "use: {Reorg: reorg.darknet}\n")
    child = tmp_path / "vendory"
    child.mkdir()
    text = "backend: vendory\nextends: vendorx\n"
    (child / "mapping.yaml").write_text(text, encoding="utf-8")
    package = generate(child)
    assert '"Reorg": Reader(' in package.files["read.py"]
    assert generate(base).files["read.py"].count("known_layers") == package.files["read.py"].count(
        "known_layers"
    )
    (child / "mapping.yaml").write_text(f"{text}use: {{Reorg: reorg.space_to_depth}}\n", encoding="utf-8")
    assert "layers.Reorg(" in generate(child).files["emit.py"]
