"""schemas/known_layers.yaml: every entry is a working layer, and a schema's fields find the right ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from caffeforge.generator import known_layers, yaml_source
from caffeforge.generator.diagnostics import Diagnostics
from caffeforge.generator.generate import Package, generate
from caffeforge.generator.known_layers import KnownLayer
from caffeforge.generator.schema_folder import KNOWN_LAYERS, SCHEMAS
from tests.generator.inputs import result

PROTO = (SCHEMAS / "bvlc" / "caffe.proto").read_text(encoding="utf-8")


def _entries() -> list[KnownLayer]:
    diagnostics = Diagnostics()
    root = yaml_source.load(KNOWN_LAYERS.read_text(encoding="utf-8"), str(KNOWN_LAYERS), diagnostics)
    assert root is not None
    found = known_layers.read(root, diagnostics)
    assert diagnostics.found == []
    return found


ENTRIES = _entries()


def _proto(known: KnownLayer, *, extra: str = "", without: str = "") -> str:
    """Return bvlc's proto with the parameter message of an entry."""
    lines = [
        f"{form if form.startswith('repeated') else f'optional {form}'} {name.rstrip('?')} = {index + 1};"
        for index, (name, form) in enumerate(known.message)
        if name != without
    ]
    body = re.sub(r"optional enum[\w ]* (\w+) =", r"optional NewEnum \1 =", " ".join(lines))
    body = body.replace("message ", "BlobShape ")
    words = [word for _, form in known.message if form.startswith("enum ") for word in form.split()[1:]]
    values = " ".join(f"{word} = {index};" for index, word in enumerate(words or ["NEW"]))
    field = f"message LayerParameter {{ optional NewParameter {known.field} = 9000;"
    added = f"enum NewEnum {{ {values} }}\nmessage NewParameter {{ {body} {extra} }}\n"
    return (
        PROTO.replace("message LayerParameter {", field if known.field else "message LayerParameter {")
        + added
    )


def _folder(path: Path, proto: str, mapping: str = "") -> Path:
    folder = path / "vendorx"
    folder.mkdir(exist_ok=True)
    (folder / "caffe.proto").write_text(proto, encoding="utf-8")
    (folder / "mapping.yaml").write_text(f"backend: vendorx\nextends: bvlc\n{mapping}", encoding="utf-8")
    return folder


def _dropped(package: Package) -> list[str]:
    return [d.reason for d in package.dropped if "known_layers" in d.rule]


@pytest.mark.parametrize("known", ENTRIES, ids=lambda known: known.id.text)
def test_each_entry_is_taken_by_use_and_its_rules_fit(known: KnownLayer, tmp_path: Path) -> None:
    use = f"use: {{{known.types[0].text}: {known.id.text}}}\n"
    package = generate(_folder(tmp_path, _proto(known), use))
    assert _dropped(package) == []
    kind = known.types[0].text
    assert (f'"{kind}": Reader(' in package.files["read.py"]) == (known.layers is not None)
    assert (f"layers.{kind}(" in package.files["emit.py"]) == bool(known.ops or known.fallback)


def _known(id: str) -> KnownLayer:
    return next(known for known in ENTRIES if known.id.text == id)


def test_the_only_meaning_that_fits_is_taken(tmp_path: Path) -> None:
    package = generate(_folder(tmp_path, _proto(_known("permute"))))
    assert '"Permute": Reader(' in package.files["read.py"]
    assert _dropped(package) == []


def test_of_several_meanings_none_is_taken_until_use_says_which(tmp_path: Path) -> None:
    proto = _proto(_known("reorg.darknet"))
    package = generate(_folder(tmp_path, proto))
    assert "Reorg" not in package.files["read.py"] + package.files["emit.py"]
    (reason,) = _dropped(package)
    assert "reorg.darknet or reorg.space_to_depth" in reason
    darknet = generate(_folder(tmp_path, proto, "use: {Reorg: reorg.darknet}\n"))
    depth = generate(_folder(tmp_path, proto, "use: {Reorg: reorg.space_to_depth}\n"))
    assert "layers.Reorg(" not in darknet.files["emit.py"]
    assert "layers.Reorg(" in depth.files["emit.py"]
    assert darknet.files["read.py"] != depth.files["read.py"]


@pytest.mark.parametrize(
    "proto",
    [
        _proto(_known("permute"), extra="optional bool inverse = 90;"),
        _proto(_known("permute"), without="order"),
        _proto(_known("permute")).replace("repeated uint32 order", "repeated float order"),
        _proto(_known("permute")).replace(
            "optional NewParameter permute_param", "optional int32 permute_param"
        ),
    ],
    ids=["extra field", "missing field", "other type", "no message"],
)
def test_a_message_of_another_form_is_not_taken(proto: str, tmp_path: Path) -> None:
    assert "Permute" not in generate(_folder(tmp_path, proto)).files["read.py"]
    (error,) = result(_folder(tmp_path, proto, "use: {Permute: permute}\n"))[1]
    assert (error.id, error.position.line) == ("use-fit", 3)


def test_the_own_mapping_goes_before_what_is_known(tmp_path: Path) -> None:
    own = "layers:\n  Permute: {ignore: [order], rewrite: 'tops[0] = Relu(bottom)'}\n"
    read = generate(_folder(tmp_path, _proto(_known("permute")), own)).files["read.py"]
    assert "vendorx/mapping.yaml:4" in read and "known_layers" not in read
    claimed = "types: {Turn: permute_param}\n"
    assert "Permute" not in generate(_folder(tmp_path, _proto(_known("permute")), claimed)).files["read.py"]


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
    base = _folder(tmp_path, _proto(_known("reorg.darknet")), "use: {Reorg: reorg.darknet}\n")
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
