"""Local functions of one op that a model holds several of: each node calls the one that was made for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnxruntime
import pytest

from caffeforge.generated.hub.caffe_ops import Proposal
from caffeforge.runtime.backends import find_any
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.onnx_out.backend import OnnxBackend
from caffeforge.runtime.onnx_out.export import convert
from caffeforge.runtime.open_sizes import name_apart
from caffeforge.runtime.shapes import infer


@dataclass(frozen=True)
class Call:
    """A node: its setting, and how many of its results it has."""

    post_nms_top_n: int
    results: int


def proposals(calls: Sequence[Call]) -> Graph:
    """Return a graph of nodes of one op over the same operands."""
    shapes = {"scores": (1, 4, 5, 6), "deltas": (1, 8, 5, 6), "info": (1, 3)}
    inputs = [Value(name, "float32", shape) for name, shape in shapes.items()]
    nodes, sizes = [], set[str]()
    for index, call in enumerate(calls):
        op = Proposal(
            stride=8,
            base_size=8,
            ratios=(1.0, 2.0),
            scales=(2.0,),
            min_size=4.0,
            pre_nms_top_n=30,
            post_nms_top_n=call.post_nms_top_n,
            nms_threshold=0.5,
        )
        types = infer(op, inputs, call.results)
        node = Node(f"n{index}", op, [*inputs], [Value(f"n{index}_{i}", *t) for i, t in enumerate(types)])
        name_apart([node], inputs, sizes)
        nodes.append(node)
    return Graph("g", inputs, [value for node in nodes for value in node.outputs], nodes)


@pytest.mark.parametrize("opset", [15, 21])
@pytest.mark.parametrize(
    ("calls", "functions"),
    [
        ([Call(8, 2), Call(8, 2)], 1),
        ([Call(8, 1), Call(8, 2)], 2),  # as nets with and without a top for the scores
        ([Call(8, 2), Call(3, 1), Call(8, 1), Call(3, 1)], 3),
    ],
)
def test_nodes_of_other_settings_or_results_call_functions_of_their_own(
    calls: Sequence[Call], functions: int, opset: int
) -> None:
    backend = find_any(f"onnx_opset{opset}")
    assert isinstance(backend, OnnxBackend)
    random = np.random.default_rng(0)
    feed = {
        "scores": random.uniform(0, 1, (1, 4, 5, 6)).astype(np.float32),
        "deltas": random.normal(0, 0.4, (1, 8, 5, 6)).astype(np.float32),
        "info": np.array([[38, 47, 1]], np.float32),
    }
    expected = Executor(proposals(calls)).run(feed)
    model = convert(proposals(calls), backend)[0].whole()
    assert len(model.functions) == functions
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    names = [each.name for each in session.get_outputs()]
    for name, array in zip(names, session.run(None, feed), strict=True):
        np.testing.assert_allclose(array, expected[name], rtol=1e-4, atol=1e-4)
