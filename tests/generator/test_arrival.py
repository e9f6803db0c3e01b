"""What gen-backend says of a schema that has more than its base, and the mapping that --init writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from caffeforge.generator.cli import main
from caffeforge.generator.generate import generate
from tests.generator.inputs import ids
from tests.generator.known import entry, proto

NEW = """
message FocusParameter { optional uint32 block = 1 [default = 2]; }
message SpinParameter { }
message Extra { optional int32 level = 1; }
"""


def source(folder: Path) -> Path:
    """Return a folder with a schema alone: Reorg, two layers that nobody knows, and new fields of a layer."""
    schema = proto([entry("reorg.darknet"), entry("permute")]) + NEW
    fields = "optional FocusParameter focus_param = 700; optional SpinParameter spin_param = 701;"
    schema = schema.replace("message LayerParameter {", f"message LayerParameter {{ {fields}")
    more = "optional float gain = 90 [default = 1]; optional bool quick = 91; repeated float biases = 92;"
    schema = schema.replace("message ConvolutionParameter {", f"message ConvolutionParameter {{ {more}")
    target = folder / "vendorx"
    target.mkdir()
    (target / "caffe.proto").write_text(schema, encoding="utf-8")
    return target


def test_what_is_beyond_the_base_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(source(tmp_path)), "--out", str(tmp_path / "out")]) == 0
    first, several, unknown, assumed = capsys.readouterr().out.splitlines()
    assert "files changed" in first
    meanings = "reorg.darknet or reorg.pass_through or reorg.space_to_depth"
    assert several == f"  Reorg may mean several things: {meanings}; say which by use:"
    assert unknown.startswith("  not known: focus_param, spin_param;") or "spin_param, focus_param" in unknown
    assert assumed == "  assumed neutral: ConvolutionParameter.gain = 1.0"


def test_the_same_stands_in_the_coverage(tmp_path: Path) -> None:
    text = generate(source(tmp_path)).files["coverage.py"]
    assert '("ConvolutionParameter.gain", "1.0")' in text
    assert '("Permute", "permute")' in text
    assert re.search(r'UNKNOWN: .*"focus_param"', text)


def test_init_writes_a_mapping_that_says_nothing_yet(tmp_path: Path) -> None:
    folder = source(tmp_path)
    before = generate(folder).files["read.py"].split('"""', 1)[1]
    assert main([str(folder), "--init"]) == 0
    assert generate(folder).files["read.py"].split('"""', 1)[1] == before
    assert main([str(folder), "--init"]) == 1  # what is there is left alone


def test_its_lines_uncommented_ask_for_what_is_to_be_said(tmp_path: Path) -> None:
    folder = source(tmp_path)
    assert main([str(folder), "--init"]) == 0
    mapping = folder / "mapping.yaml"
    lines = mapping.read_text(encoding="utf-8").splitlines()
    told = [re.sub("^#(?=use:|types:|layers:|  )", "", line) for line in lines]
    mapping.write_text("\n".join(told), encoding="utf-8")
    assert sorted(ids(folder)) == ["unknown-meaning", "unknown-op", "unknown-op"]
    text = (
        "\n".join(told)
        .replace("reorg.darknet or reorg.pass_through or ", "")
        .replace("WhatItComputes", "Relu")
    )
    text = text.replace("Focus:      #", "Focus:\n    ignore: [block]      #")
    mapping.write_text(text, encoding="utf-8")
    read = generate(folder).files["read.py"]
    assert all(f'"{kind}": Reader(' in read for kind in ("Reorg", "Focus", "Spin"))
