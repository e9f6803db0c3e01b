"""Gradient nodes: what they yield is what PyTorch's autograd computes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("torch")

import torch

from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.onnx_front import Importer, open_model

HEAD = '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.preview.training" : 1]>'
NET = """
    net (float[3,4] x, float[4,5] w, float[5] b) => (float[3,5] y, float[4,5] dw, float[5] db) {
        p = MatMul(x, w)
        q = Add(p, b)
        r = %s
        y = Div(r, q)
        dw, db = ai.onnx.preview.training.Gradient <xs = ["w", "b"], zs = ["x"], y = "y"> (w, b, x)
    }
"""
STEPS = {
    "Relu(q)": torch.relu,
    "Tanh(q)": torch.tanh,
    "Sigmoid(q)": torch.sigmoid,
    "Exp(q)": torch.exp,
    "Abs(q)": torch.abs,
    "Mul(q, q)": torch.square,
    "Sub(b, q)": None,
    "ReduceMean<axes = [0, -1], keepdims = 0>(q)": torch.mean,
    "Transpose<perm = [1, 0]>(turned)": None,
}


def arrays() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    shapes = {"x": (3, 4), "w": (4, 5), "b": (5,)}
    return {name: generator.uniform(0.5, 1.5, shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize("step", STEPS)
def test_gradients_are_those_of_autograd(step: str) -> None:
    text = HEAD + NET % step.replace("turned", "t")
    if "(turned)" in step:
        text = text.replace("r = ", "t = Transpose(q) r = ")
    graph = Importer(open_model(onnx.parser.parse_model(text))).run()
    found = Executor(graph).run(arrays())
    x, w, b = (torch.tensor(array, requires_grad=True) for array in arrays().values())
    q = x @ w + b
    function = STEPS[step]
    r = function(q) if function else b - q if step.startswith("Sub") else q
    y = r / q
    dw, db = torch.autograd.grad(y.sum(), [w, b])
    for name, tensor in {"y": y, "dw": dw, "db": db}.items():
        expected = tensor.detach().numpy()
        np.testing.assert_allclose(found[name], expected, rtol=1e-4, atol=1e-5)


def test_what_only_a_gradient_reads_is_computed() -> None:
    text = f"""{HEAD} net (float[3] x) => (float[3] dx) {{
        y = Mul(x, x)
        dx = ai.onnx.preview.training.Gradient <xs = ["x"], y = "y"> (x)
    }}"""
    x = np.array([1, 2, 3], np.float32)
    found = Executor(Importer(open_model(onnx.parser.parse_model(text))).run()).run({"x": x})
    np.testing.assert_array_equal(found["dx"], 2 * x)


def test_open_sizes_are_refused() -> None:
    text = HEAD + (NET % "Relu(q)").replace("float[3,4] x", "float[n,4] x")
    with pytest.raises(FrontEndError, match=r"needs a static n: it is dimension 0 of "):
        Importer(open_model(onnx.parser.parse_model(text))).run()


def test_an_op_without_a_rule_is_named() -> None:
    text = HEAD + NET % "Erf(q)"
    with pytest.raises(FrontEndError, match=r"the gradient of Erf \(r\) has no rule"):
        Importer(open_model(onnx.parser.parse_model(text))).run()
