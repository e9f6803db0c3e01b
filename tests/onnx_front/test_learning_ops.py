"""Ops of ai.onnx.ml that become sums and products: they compute what onnxruntime computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

pytest.importorskip("onnxruntime")

from caffeforge.runtime.executor import Executor
from caffeforge.runtime.onnx_front import read

X = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
SCORES = {"coefficients": [0.1, -0.2, 0.3, 0.5, 0.25, -1.0], "intercepts": [0.5, -0.5]}


def model(op: str, x: Any, outputs: int, **attributes: Any) -> onnx.ModelProto:
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    names = [f"y{index}" for index in range(outputs)]
    node = helper.make_node(op, ["x"], names, domain="ai.onnx.ml", **attributes)
    results = [onnx.ValueInfoProto(name=name) for name in names]
    graph = helper.make_graph([node], "net", [helper.make_tensor_value_info("x", kind, x.shape)], results)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


CASES: dict[str, tuple[str, Any, int, dict[str, Any]]] = {
    "Scaler": ("Scaler", X, 1, {"offset": [1.0, 2.0, 3.0], "scale": [0.5]}),
    "Scaler of integers": ("Scaler", np.arange(12).reshape(4, 3), 1, {"scale": [0.5], "offset": [0.25]}),
    "LinearRegressor": ("LinearRegressor", X, 1, {**SCORES, "targets": 2}),
    "LinearRegressor, one target": ("LinearRegressor", X, 1, {"coefficients": [0.1, 0.2, 0.3]}),
    "LinearRegressor, logistic": (
        "LinearRegressor",
        X,
        1,
        {**SCORES, "targets": 2, "post_transform": "LOGISTIC"},
    ),
    "LinearClassifier": ("LinearClassifier", X, 2, {**SCORES, "classlabels_ints": [7, 9]}),
    "LinearClassifier of texts": (
        "LinearClassifier",
        X,
        2,
        {**SCORES, "classlabels_strings": ["a", "b"], "post_transform": "SOFTMAX"},
    ),
    "Normalizer, L1": ("Normalizer", np.vstack([X, 0 * X]), 1, {"norm": "L1"}),
    "Normalizer, L2": ("Normalizer", X, 1, {"norm": "L2"}),
    "Binarizer": ("Binarizer", X, 1, {"threshold": 0.25}),
}
KEPT: dict[str, tuple[str, Any, int, dict[str, Any]]] = {
    "Normalizer, MAX": ("Normalizer", X, 1, {"norm": "MAX"}),
    "LinearRegressor, probit": (
        "LinearRegressor",
        X,
        1,
        {**SCORES, "targets": 2, "post_transform": "PROBIT"},
    ),
}


@pytest.mark.parametrize("name", [*CASES, *KEPT])
def test_op_computes_what_onnxruntime_does(name: str) -> None:
    op, x, outputs, attributes = {**CASES, **KEPT}[name]
    source = read(model(op, x, outputs, **attributes), x)
    assert [note.startswith("y0 is kept as it is: ") for note in source.notes] == [True] * (name in KEPT)
    found = Executor(source.graph).run({"x": x})
    expected = source.reference({"x": x})
    for output in found:
        if found[output].dtype == object:
            assert found[output].tolist() == expected[output].tolist()
        else:
            np.testing.assert_allclose(found[output], expected[output], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(3,), (1, 3), (4, 3)])
def test_columns_are_taken_by_place(shape: tuple[int, ...]) -> None:
    x = X[0].reshape(shape) if len(shape) == 1 or shape[0] == 1 else X
    node = helper.make_node("ArrayFeatureExtractor", ["x", "at"], ["y"], domain="ai.onnx.ml")
    given = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, shape),
        helper.make_tensor_value_info("at", TensorProto.INT64, (2, 1)),
    ]
    graph = helper.make_graph([node], "net", given, [onnx.ValueInfoProto(name="y")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    feed = {"x": x, "at": np.array([[2], [0]])}
    source = read(helper.make_model(graph, opset_imports=opsets, ir_version=8), feed)
    np.testing.assert_array_equal(Executor(source.graph).run(feed)["y"], source.reference(feed)["y"])
