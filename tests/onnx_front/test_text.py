"""Text: computed by onnx's evaluator, as onnxruntime takes none by reference; Caffe refuses it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime")

from caffeforge.generated import bvlc
from caffeforge.runtime.cli import main
from caffeforge.runtime.errors import LegalizeError, UsageError
from caffeforge.runtime.onnx_front import read

TEXT = """
    <ir_version: 8, opset_import: ["" : 20]>
    net (string[3] words, float[3] x) => (string[3] long, float[3] y) {
        end = Constant<value_string = "ing">()
        long = StringConcat(words, end)
        wanted = Constant<value_strings = ["going"]>()
        same = Equal(long, wanted)
        number = Cast<to = 1>(same)
        y = Mul(number, x)
    }
"""
WORDS = np.array(["go", "going", "do"])
X = np.array([1, 2, 3], np.float32)


@pytest.fixture
def model(tmp_path: Path) -> str:
    """Return the path of a model of texts and numbers."""
    onnx.save(onnx.parser.parse_model(TEXT), tmp_path / "net.onnx")
    return str(tmp_path / "net.onnx")


def test_text_is_joined_and_compared(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given: list[str] = []
    for name, array in {"words": WORDS, "x": X}.items():
        np.save(tmp_path / f"{name}.npy", array)
        given += ["--input", f"{name}={tmp_path / name}.npy"]
    assert main(["run", model, *given]) == 0
    printed = capsys.readouterr().out
    assert "long: 3, 'going', 'goinging', 'doing'" in printed
    assert "y: 3, 0 to 1, mean 0.333333" in printed


def test_the_reference_takes_text(model: str) -> None:
    source = read(model, {"words": WORDS, "x": X})
    expected: dict[str, Any] = source.reference(source.example)
    assert expected["long"].tolist() == ["going", "goinging", "doing"]
    assert source.graph.inputs[0].type_text() == "string[3]"


def test_there_is_no_random_text(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", model, "--random"]) != 0
    assert "input words takes text" in capsys.readouterr().err
    with pytest.raises(UsageError, match="input words takes text"):
        read(model)


def test_caffe_refuses_text(model: str, tmp_path: Path) -> None:
    with pytest.raises(LegalizeError, match="a Caffe blob holds float32, not text"):
        bvlc.export(model, {"words": WORDS, "x": X}, tmp_path / "net")
    assert [path.name for path in tmp_path.iterdir()] == ["net.onnx"]
