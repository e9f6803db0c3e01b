"""Ops of a backend's own domain in ONNX models: local functions run in onnxruntime and onnx's evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

from caffeforge.generated import hub
from caffeforge.runtime.array import Dense
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.graph import Graph, Node, Value, constant
from caffeforge.runtime.onnx_domain import to_model_with_functions
from tests.docs.backends import build

MAPPING = """
backend: domain
extends: bvlc
custom:
  domain.PartialMean:
    inputs: [X]
    attributes: {axes: ints}
    shape: "[1 if i in axes else X.shape[i] for i in range(X.rank)]"
    reference: Y = ReduceMean(X, axes=axes, keepdims=1)
  domain.Centred:
    inputs: [X, W]
    attributes: {axes: ints, gain: float = 2.0}
    reference: |
      mean = domain.PartialMean(X, axes=axes)
      Y = Mul(Mul(Sub(X, mean), W), gain)
"""
IMAGE = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
SCALE = np.random.default_rng(1).standard_normal((3, 1, 1)).astype(np.float32)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """Two means over other axes, and one inside another op."""
    backend: Backend = build(tmp_path_factory.mktemp("domain"), MAPPING)
    kinds: list[Any] = [backend.custom[f"domain.{kind}"].op for kind in ("PartialMean", "Centred")]
    mean, centred = kinds
    x, w = Value("x", "float32", IMAGE.shape), constant("w", Dense(SCALE))
    a, b, c, y = (
        Value(name, "float32", dims)
        for name, dims in (("a", (2, 1, 4, 5)), ("b", IMAGE.shape), ("c", (2, 3, 1, 1)), ("y", IMAGE.shape))
    )
    nodes = [
        Node("a", mean(axes=(1,)), [x], [a]),
        Node("b", centred(axes=(1,), gain=0.5), [x, w], [b]),
        Node("c", mean(axes=(2, 3)), [b], [c]),
        Node("add", hub.Sum(), [a, b, c], [y]),
    ]
    return Graph("means", [x], [y], nodes)


def expected() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    centred = (IMAGE - IMAGE.mean(1, keepdims=True)) * SCALE * np.float32(0.5)
    result: np.ndarray[tuple[int, ...], np.dtype[np.float32]] = (
        IMAGE.mean(1, keepdims=True) + centred + centred.mean((2, 3), keepdims=True)
    )
    return result


def test_local_functions_compute_what_the_references_say(graph: Graph) -> None:
    model = to_model_with_functions(graph)
    assert [(n.domain, n.op_type) for n in model.graph.node][:2] == [
        ("domain", "PartialMean"),
        ("domain", "Centred"),
    ]
    session = onnxruntime.InferenceSession(model.SerializeToString())
    np.testing.assert_allclose(session.run(None, {"x": IMAGE})[0], expected(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(Executor(graph).run({"x": IMAGE})["y"], expected(), rtol=1e-5, atol=1e-6)


def test_functions_within_functions_run_in_onnx_too(graph: Graph) -> None:
    """Without a second overload, which this evaluator does not know."""
    centred = Graph("centred", graph.inputs, graph.nodes[1].outputs, graph.nodes[1:2])
    evaluator: Any = ReferenceEvaluator(to_model_with_functions(centred))
    (found,) = evaluator.run(None, {"x": IMAGE})
    wanted = (IMAGE - IMAGE.mean(1, keepdims=True)) * SCALE * np.float32(0.5)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_nodes_keep_their_attributes_and_weights_can_be_bound(graph: Graph, tmp_path: Path) -> None:
    model = to_model_with_functions(graph, bind_weights=True)
    centred = model.graph.node[1]
    assert {a.name: (list(a.ints), a.f) for a in centred.attribute} == {"axes": ([1], 0), "gain": ([], 0.5)}
    assert [(f.name, f.overload) for f in model.functions if f.name == "PartialMean"] == [
        ("PartialMean", ""),
        ("PartialMean", "1"),
    ]
