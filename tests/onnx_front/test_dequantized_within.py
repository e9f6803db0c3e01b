"""Dequantizing in branches, loops and functions, and by the commands that read ONNX models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime")

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.cli import main
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.onnx_front import open_model, read
from caffeforge.runtime.onnx_front.dequantized import dequantized

X = np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)
W = np.arange(-4, 4, dtype=np.int8).reshape(4, 2)
HEAD = '<ir_version: 8, opset_import: ["" : 17, "own" : 1]>'
TENSORS = "<float s = {0.1}, int8 z = {2}, float ws = {0.5}>"

# Both branches name alike what they make; the second reads integers of the graph around it.
BRANCHES = f"""
    {HEAD} net (float[2,4] x, bool c) => (float[2,2] y) {TENSORS} {{
        q = QuantizeLinear(x, s, z)
        y = If (c) <
            then_branch = yes () => (float[2,2] a) {{
                wq = Constant<value = int8[4,2] {{-4, -3, -2, -1, 0, 1, 2, 3}}>()
                w = DequantizeLinear(wq, ws)
                d = DequantizeLinear(q, s, z)
                a = MatMul(d, w)
            }},
            else_branch = no () => (float[2,2] b) {{
                wq = Constant<value = int8[4,2] {{1, 1, 1, 1, 1, 1, 1, 1}}>()
                w = DequantizeLinear(wq, ws)
                n = Neg(x)
                nq = QuantizeLinear(n, s, z)
                d = DequantizeLinear(nq, s, z)
                b = MatMul(d, w)
            }} >
    }}
"""
FUNCTION = f"""
    {HEAD} net (float[2,4] x) => (float[2,2] y) {TENSORS} {{
        p = own.rounded(x, s, z)
        wq = Constant<value = int8[4,2] {{-4, -3, -2, -1, 0, 1, 2, 3}}>()
        w = DequantizeLinear(wq, ws)
        y = MatMul(p, w)
    }}
    <domain: "own", opset_import: ["" : 17]>
    rounded (v, s, z) => (d) {{ q = QuantizeLinear(v, s, z)  d = DequantizeLinear(q, s, z) }}
"""


def float_of(text: str) -> onnx.ModelProto:
    return dequantized(open_model(onnx.parser.parse_model(text)))[0].proto


def run(model: onnx.ModelProto, feed: dict[str, NDArray]) -> NDArray:
    return Executor(read(model, feed).graph).run(feed)["y"]


@pytest.mark.parametrize("condition", [True, False])
def test_branches_are_dequantized_each_by_its_own_constants(condition: bool) -> None:
    model = float_of(BRANCHES)
    inner = [node.op_type for a in model.graph.node[-1].attribute for node in a.g.node]
    assert [node.op_type for node in model.graph.node] == ["If"]
    assert inner.count("DequantizeLinear") == inner.count("QuantizeLinear") == 0
    onnx.checker.check_model(model)
    found = run(model, {"x": X, "c": np.array(condition)})
    expected = X @ (W * np.float32(0.5)) if condition else -X @ np.full((4, 2), 0.5, np.float32)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_functions_are_dequantized() -> None:
    model = float_of(FUNCTION)
    assert [node.op_type for node in model.graph.node] == ["Identity", "MatMul"]
    np.testing.assert_allclose(run(model, {"x": X}), X @ (W * np.float32(0.5)), rtol=1e-4, atol=1e-5)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Return the paths of a quantized model and of its float model."""
    onnx.save(onnx.parser.parse_model(FUNCTION), tmp_path / "net.onnx")
    onnx.save(float_of(FUNCTION), tmp_path / "float.onnx")
    return str(tmp_path / "net.onnx"), str(tmp_path / "float.onnx")


def test_run_and_dump_take_the_option(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", files[0], "--dequantize"]) == 0
    assert "Linear" not in capsys.readouterr().out
    assert main(["run", files[1], "--random"]) == 0
    expected = capsys.readouterr().out.splitlines()[-1]
    assert main(["run", files[0], "--random", "--dequantize"]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1] == expected and "no longer the quantized model" in printed


def test_verify_takes_the_option(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", *files]) != 0
    capsys.readouterr()
    assert main(["verify", *files, "--dequantize", "--per-layer"]) == 0
    assert "float model behind net.onnx against ONNX model float.onnx" in capsys.readouterr().out


def test_what_is_no_onnx_model_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", "net.prototxt", "--backend", "bvlc", "--dequantize"]) == 2
    assert "--dequantize is for ONNX models" in capsys.readouterr().err
    assert main(["verify", "a.prototxt", "b.onnx", "--backend", "bvlc", "--dequantize"]) == 2
    assert "--dequantize is for an ONNX model as SOURCE" in capsys.readouterr().err
