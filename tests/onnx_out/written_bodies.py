"""One op of Caffe's as a model of an opset, in which only other ops stand, run by onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnxruntime

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.backends import find_any
from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.legalize import legalized
from caffeforge.runtime.onnx_out.backend import OnnxBackend
from caffeforge.runtime.onnx_out.model import assemble
from caffeforge.runtime.onnx_out.target import OnnxTarget
from caffeforge.runtime.op import Op
from caffeforge.runtime.reference import find
from caffeforge.runtime.shapes import infer

OPSETS = (9, 10, 13, 18, 21)


def node_of(op: Op, operands: Sequence[NDArray]) -> Node:
    inputs = [Value(f"x{i}", array.dtype.name, array.shape) for i, array in enumerate(operands)]
    types = infer(op, inputs, len(op.outputs))
    return Node("node", op, [*inputs], [Value(f"y{i}", *each) for i, each in enumerate(types)])


class Written:
    """A node by other ops; its operands may be given anew, of the same sizes."""

    def __init__(self, op: Op, operands: Sequence[NDArray], opset: int) -> None:
        backend = find_any(f"onnx_opset{opset}")
        assert isinstance(backend, OnnxBackend)
        node = node_of(op, operands)
        inputs = [value for value in node.inputs if value is not None]
        graph = Graph("net", inputs, node.outputs, [node])
        for value in node.outputs:
            value.producer = node
        model = assemble(graph, legalized(graph, OnnxTarget(backend, own_ops="lower")), opset, "c").whole()
        assert not any(each.domain for each in model.graph.node)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), options)

    def run(self, operands: Sequence[NDArray]) -> list[NDArray]:
        names = [each.name for each in self.session.get_inputs()]
        found = self.session.run(None, dict(zip(names, operands, strict=True)))
        return [np.asarray(array) for array in found]


def reference(op: Op, operands: Sequence[NDArray]) -> list[NDArray]:
    return [np.asarray(array) for array in find(Node("node", op, [], []))(op, operands)]


def agree(op: Op, samples: Sequence[Sequence[NDArray]], opset: int, tolerance: float = 1e-5) -> list[NDArray]:
    """Compare an op's body at an opset with its reference; return what that finds in each sample first."""
    written = Written(op, samples[0], opset)
    first = []
    for operands in samples:
        expected = reference(op, operands)
        for due, array in zip(expected, written.run(operands), strict=True):
            assert array.dtype == due.dtype
            np.testing.assert_allclose(array, due, rtol=tolerance, atol=tolerance)
        first.append(expected[0])
    return first
