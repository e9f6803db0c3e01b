"""Nodes of ONNX's domain for which onnxruntime has no kernel: which they are, and what runs them.

onnxruntime lacks some ops, and of many ops some element types. onnx's reference evaluator, written in NumPy,
has nearly all; it is slow, so it runs only what nothing else does.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import onnxruntime

from caffeforge.runtime.array import TEXT, NDArray
from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.islands import needed
from caffeforge.runtime.onnx_model import to_model, weights
from caffeforge.runtime.onnx_node import numpy_dtype

# How onnxruntime says that it has no kernel; any other refusal says that the node is at fault.
_LACKS = ("NOT_IMPLEMENTED", "No Op registered for")


def has_kernel(node: Node, opset: int) -> bool:
    """Tell whether onnxruntime runs a node on the CPU."""
    operands = [value for value in node.inputs if value is not None]
    inputs = list(dict.fromkeys(value for value in operands if value.data is None))
    alone = Graph(node.name, inputs, node.outputs, [node])
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        model = to_model(alone, opset).SerializeToString()
        onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's classes share no base of their own
        return not any(sign in str(error) for sign in _LACKS)
    return True


def parts(graph: Graph, opset: int) -> list[tuple[Graph, bool]]:
    """Cut an island into graphs to run one after another, each with whether onnxruntime can run it."""
    runs = [(kernel, list(run)) for kernel, run in groupby(graph.nodes, lambda node: has_kernel(node, opset))]
    later = set(graph.outputs)
    found = []
    for kernel, run in reversed(runs):
        computed = {value: None for node in run for value in node.outputs}
        read = {v: None for node in run for v in node.inputs if v is not None and v.data is None}
        outputs = [value for value in computed if value in later]
        inputs = [value for value in read if value not in computed]
        found.append((Graph(graph.name, inputs, outputs, needed(Graph("", [], [], run), outputs)), kernel))
        later.update(inputs)
    return found[::-1]


class Evaluated:
    """A graph that onnx's reference evaluator runs."""

    def __init__(self, graph: Graph, opset: int) -> None:
        from onnx.reference import ReferenceEvaluator

        self.graph = graph
        self.weights = weights(graph)
        try:
            self.evaluator: Any = ReferenceEvaluator(to_model(graph, opset))
        except NotImplementedError as error:
            raise CaffeforgeError(
                f"neither onnxruntime nor onnx can run it: {error}", where=graph.name
            ) from None

    def run(self, known: dict[str, NDArray]) -> None:
        """Add the graph's outputs to `known`, which holds its inputs."""
        feed: dict[str, NDArray] = {v.name: known[v.name] for v in self.graph.inputs}
        feed.update((v.name, _elements(v)) for v in self.weights)
        try:
            results: Sequence[Any] = self.evaluator.run([v.name for v in self.graph.outputs], feed)
        except Exception as error:  # whatever NumPy refuses
            text = f"onnx's evaluator fails: {type(error).__name__}: {error}"
            raise CaffeforgeError(text, where=self.graph.name) from None
        for value, result in zip(self.graph.outputs, results, strict=True):
            known[value.name] = result.astype(object) if value.dtype == TEXT else result


def _elements(value: Value) -> NDArray:
    assert value.data is not None  # weights() yields no other
    return value.data.numpy().astype(numpy_dtype(value.dtype), copy=False)
