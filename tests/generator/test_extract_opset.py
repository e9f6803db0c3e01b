"""The committed description of the hub's opset: a released opset does not change, nor does its file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from caffeforge.generator.extract_opset import extract, main

onnx = pytest.importorskip("onnx")

OPSET = 24
COMMITTED = Path(__file__).resolve().parents[2] / "schemas" / "hub" / "opset.json"

# onnx 1.19, the first that knows opset 24 and the only one whose newest it is, lists integer types for Erf of
# opset 13; 1.20 took them back. 1.20 to 1.23 agree on every byte.
needs_opset = pytest.mark.skipif(
    onnx.defs.onnx_opset_version() <= OPSET,
    reason=f"the installed onnx is too old for opset {OPSET} as it is",
)


@needs_opset
def test_extracting_again_gives_the_committed_bytes() -> None:
    assert extract(OPSET).encode() == COMMITTED.read_bytes()


def test_of_each_operator_the_version_of_the_opset_is_taken() -> None:
    ops = {version: json.loads(extract(version))["ops"] for version in (6, 11)}
    assert (ops[6]["Clip"]["since"], ops[11]["Clip"]["since"]) == (6, 11)
    assert set(ops[6]["Clip"]["attributes"]) == {"min", "max"}
    assert [i["option"] for i in ops[11]["Clip"]["inputs"]] == ["Single", "Optional", "Optional"]
    assert len(ops[11]) == 156
    assert list(ops[11]) == sorted(ops[11])


def test_an_operator_is_described_without_prose() -> None:
    assert json.loads(extract(11))["ops"]["LeakyRelu"] == {
        "since": 6,
        "inputs": [{"name": "X", "type": "T", "option": "Single"}],
        "outputs": [{"name": "Y", "type": "T", "option": "Single"}],
        "types": {"T": ["tensor(double)", "tensor(float)", "tensor(float16)"]},
        "attributes": {"alpha": {"type": "FLOAT", "default": 0.01}},  # as float32 0.009999999776482582
        "deprecated": False,
        "function": False,
    }


def test_required_attributes_variadic_inputs_and_deprecated_operators_are_marked() -> None:
    ops = json.loads(extract(11))["ops"]
    assert ops["Concat"]["attributes"] == {"axis": {"type": "INT", "required": True}}
    assert ops["Concat"]["inputs"] == [
        {"name": "inputs", "type": "T", "option": "Variadic", "min": 1, "homogeneous": True}
    ]
    assert ops["Upsample"]["deprecated"]


def test_the_command_writes_the_text(tmp_path: Path) -> None:
    out = tmp_path / "opset.json"
    assert main(["--opset", "11", "--out", str(out)]) == 0
    assert out.read_bytes() == extract(11).encode()


def test_an_unknown_opset_is_a_usage_error_that_names_the_known_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "opset.json"
    with pytest.raises(SystemExit) as stopped:
        main(["--opset", "999", "--out", str(out)])
    assert stopped.value.code == 2
    assert "knows the opsets 1 to " in capsys.readouterr().err
    assert not out.exists()
