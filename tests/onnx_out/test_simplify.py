"""Simplified models: fewer nodes, the same names of inputs and outputs, the same numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from caffeforge.runtime.cli import main
from caffeforge.runtime.onnx_simplify import simplify

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
FLOATS = np.random.default_rng(0).standard_normal((2, 4, 3, 3)).astype(np.float32)


def _write(path: Path, text: str, **weights: np.ndarray) -> Path:
    model = onnx.parser.parse_model(HEAD + text)
    for name, array in weights.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def _run(path: Path, **inputs: np.ndarray) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return list(session.run(None, inputs))


CASES = {
    "transposes that undo each other": (
        """g (float[2,4,3,3] x) => (float[2,4,3,3] y)
        {a = Transpose<perm=[0,2,3,1]>(x) b = Relu(a) c = Transpose<perm=[0,3,1,2]>(b)
         d = Transpose<perm=[0,2,3,1]>(c) e = Transpose<perm=[0,3,1,2]>(d) y = Sigmoid(e)}""",
        ["Transpose", "Relu", "Transpose", "Sigmoid"],
    ),
    "shapes in a row": (
        """g (float[2,4,3,3] x) => (float[8,9] y)
        <int64[3] s = {2, 36, 1}, int64[2] t = {8, 9}>
        {a = Reshape(x, s) b = Flatten(a) c = Reshape(b, t) y = Relu(c)}""",
        ["Reshape", "Relu"],
    ),
    "a transpose that moves single elements": (
        """g (float[2,4,3,3] x) => (float[3,4,6] y)
        <int64[4] s = {1, 8, 9, 1}, int64[3] t = {3, 4, 6}>
        {a = Reshape(x, s) b = Transpose<perm=[1,0,3,2]>(a) c = Reshape(b, t) y = Relu(c)}""",
        ["Reshape", "Relu"],
    ),
    "nodes that do nothing": (
        """g (float[2,4,3,3] x) => (float[2,4,3,3] y)
        <float[1] zero = {0.0}, float[1] one = {1.0}, int64[8] none = {0,0,0,0,0,0,0,0}>
        {a = Identity(x) b = Add(a, zero) c = Mul(one, b) d = Pad(c, none) e = Cast<to=1>(d) y = Relu(e)}""",
        ["Relu"],
    ),
    "nodes that are there twice": (
        """g (float[2,4,3,3] x) => (float[2,4,3,3] y)
        {a = Exp(x) b = Exp(x) c = Neg(a) d = Neg(b) y = Add(c, d)}""",
        ["Exp", "Neg", "Add"],
    ),
    "an output that an identity gives": (
        "g (float[2,4,3,3] x) => (float[2,4,3,3] y) {a = Relu(x) y = Identity(a)}",
        ["Relu"],
    ),
    "a chain of shapes": (
        """g (float[2,4,3,3] x) => (float[2,36] y)
        <int64[1] zero = {0}, int64[1] rest = {-1}>
        {s = Shape(x) n = Gather<axis=0>(s, zero) t = Concat<axis=0>(n, rest) y = Reshape(x, t)}""",
        ["Reshape"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_does_nothing_goes(name: str, tmp_path: Path) -> None:
    text, types = CASES[name]
    source = _write(tmp_path / "in.onnx", text)
    done = simplify(source, tmp_path / "out.onnx")
    model = onnx.load(tmp_path / "out.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert [node.op_type for node in model.graph.node] == types
    assert done.after == len(types) and done.error is not None and done.error < 1e-6
    assert [value.name for value in (*model.graph.input, *model.graph.output)] == ["x", "y"]
    np.testing.assert_array_equal(_run(source, x=FLOATS)[0], _run(tmp_path / "out.onnx", x=FLOATS)[0])


CONV = """g (float[2,4,3,3] x) => (float[2,6,3,3] y)
{a = Conv<kernel_shape=[1,1]>(x, w) b = BatchNormalization<epsilon=0.1>(a, s, o, m, v)
 c = Mul(b, f) y = Add(c, h)}"""


def test_what_scales_channels_becomes_part_of_the_weights(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    shapes = {
        "w": (6, 4, 1, 1),
        "s": (6,),
        "o": (6,),
        "m": (6,),
        "v": (6,),
        "f": (6, 1, 1),
        "h": (1, 6, 1, 1),
    }
    weights = {n: generator.uniform(0.5, 1.5, s).astype(np.float32) for n, s in shapes.items()}
    source = _write(tmp_path / "in.onnx", CONV, **weights)
    simplify(source, tmp_path / "out.onnx")
    assert [node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node] == ["Conv"]
    before, after = _run(source, x=FLOATS)[0], _run(tmp_path / "out.onnx", x=FLOATS)[0]
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-5)


LINEAR = {
    "of rows": (
        "y = Flatten(x) p = MatMul(y, w) s = Add(p, b) z = Relu(s)",
        (36, 5),
        ["Flatten", "Gemm", "Relu"],
    ),
    "between changes of shape": (
        "y = Reshape(x, t) p = MatMul(y, w) s = Add(b, p) z = Reshape(s, u)",
        (3, 5),
        ["Reshape", "Gemm", "Reshape"],
    ),
    "of more axes": (
        "y = Relu(x) p = MatMul(y, w) s = Add(p, b) z = Relu(s)",
        (3, 5),
        ["Relu", "MatMul", "Add", "Relu"],
    ),
    "read twice": (
        "y = Reshape(x, t) p = MatMul(y, w) s = Add(b, p) q = Reshape(s, u) r = Reshape(p, u) z = Add(q, r)",
        (3, 5),
        ["Reshape", "MatMul", "Add", "Reshape", "Reshape", "Add"],
    ),
}


@pytest.mark.parametrize("name", LINEAR)
def test_a_product_and_its_bias_are_one_gemm(name: str, tmp_path: Path) -> None:
    body, shape, types = LINEAR[name]
    text = f"""g (float[2,4,3,3] x) => (float z)
    <int64[3] t = {{6, 4, 3}}, int64[3] u = {{12, 2, 5}}> {{{body}}}"""
    weights = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    source = _write(tmp_path / "in.onnx", text, w=weights, b=weights[0])
    simplify(source, tmp_path / "out.onnx")
    assert [node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node] == types
    before, after = _run(source, x=FLOATS)[0], _run(tmp_path / "out.onnx", x=FLOATS)[0]
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-5)


def test_a_size_that_has_a_name_only_stays_one(tmp_path: Path) -> None:
    text = """g (float[batch,4,3,3] x) => (float[batch,36] y) {a = Identity(x) b = Relu(a) y = Flatten(b)}"""
    simplify(_write(tmp_path / "in.onnx", text), tmp_path / "out.onnx")
    model = onnx.load(tmp_path / "out.onnx")
    assert model.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert _run(tmp_path / "out.onnx", x=FLOATS[:1])[0].shape == (1, 36)


def test_the_command_writes_another_opset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = _write(tmp_path / "in.onnx", CASES["nodes that do nothing"][0])
    assert main(["simplify", str(source), str(tmp_path / "out.onnx"), "--opset", "9"]) == 0
    assert "out.onnx: 1 nodes of 6" in capsys.readouterr().out
    assert onnx.load(tmp_path / "out.onnx").opset_import[0].version == 9
    assert main(["simplify", str(source), str(tmp_path / "out.onnx"), "--opset", "99"]) == 2
