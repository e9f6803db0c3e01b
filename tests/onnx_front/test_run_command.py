"""``caffeforge run`` of ONNX models whose inputs are not all floats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime")

from caffeforge.runtime.cli import main

TEXT = """
    <ir_version: 8, opset_import: ["" : 17]>
    net (float[2,3] x, int64[1] rows, bool[2,3] mask) => (float[1,3] y, int64[1] next) {
        kept = Where(mask, x, zero)
        y = Gather(kept, rows)
        one = Constant<value = int64 {1}>()
        next = Add(rows, one)
    }
"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    """Return the path of a model of an input of each kind."""
    made = onnx.parser.parse_model(TEXT)
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(0), "zero"))
    onnx.save(made, tmp_path / "net.onnx")
    return str(tmp_path / "net.onnx")


def test_random_numbers_for_integers_are_refused_with_what_to_do(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", model, "--random"]) != 0
    text = capsys.readouterr().err
    assert "input rows takes int64, for which random numbers mean nothing" in text
    assert "--fill 0" in text and "--input rows=FILE.npy" in text


@pytest.mark.parametrize("fill", [0, 1])
def test_integers_and_truth_values_are_filled(model: str, fill: int, tmp_path: Path) -> None:
    out = tmp_path / "blobs.npz"
    assert main(["run", model, "--random", "--fill", str(fill), "--out", str(out)]) == 0
    x = np.random.default_rng(0).standard_normal((2, 3), np.float32)
    with np.load(out) as found:
        np.testing.assert_array_equal(found["y"], x[fill : fill + 1] * fill)
        assert found["next"].tolist() == [fill + 1]


def test_a_number_that_the_type_cannot_hold_is_refused(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", model, "--random", "--fill", "2"]) != 0
    assert "input mask takes bool, which cannot hold the numbers" in capsys.readouterr().err


def test_large_integers_in_files_stay_exact(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> net (int64[1] x) => (int64[1] y) { y = Neg(x) }'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "net.onnx")
    np.save(tmp_path / "x.npy", np.array([2**53 + 1]))
    out = tmp_path / "blobs.npz"
    given = f"x={tmp_path / 'x.npy'}"
    assert main(["run", str(tmp_path / "net.onnx"), "--input", given, "--out", str(out)]) == 0
    with np.load(out) as found:
        assert found["y"].tolist() == [-(2**53) - 1]
