"""Folding of constants: results are values with elements, and outputs stay computed."""

from __future__ import annotations

import numpy as np

from caffeforge.generated import hub
from caffeforge.runtime.array import Dense
from caffeforge.runtime.builder import Builder
from caffeforge.runtime.fold import fold_constants
from caffeforge.runtime.graph import Graph, Origin

TEXT = """\
def g(x: float32[2, 3], *, c: float32[2, 3] = ((1., 2., 3.), (4., 5., 6.))):
    a = Slice(c, starts=(1,), ends=(2,), axes=(0,))
    b = Mul(a, a)
    y = Add(x, b)
    return y
"""


def test_nodes_over_constants_vanish_and_leave_their_elements() -> None:
    graph = Graph.parse(TEXT)
    fold_constants(graph)
    graph.verify()
    assert [node.op.op_type for node in graph.nodes] == ["Add"]
    (folded,) = graph.constants()
    assert folded.data is not None
    np.testing.assert_array_equal(folded.data.numpy(), np.array([[16.0, 25.0, 36.0]], "float32"))


def test_an_output_stays_computed() -> None:
    graph = Graph.parse(TEXT.replace("return y", "return y, b"))
    fold_constants(graph)
    graph.verify()
    assert [node.op.op_type for node in graph.nodes] == ["Mul", "Add"]


def test_a_builder_folds_as_it_goes() -> None:
    builder = Builder("n", Origin())
    half = builder.value(hub.Mul(), (Dense(np.full((2,), 3.0, "float32")), 0.5))
    assert not builder.nodes and half.data is not None
    np.testing.assert_array_equal(half.data.numpy(), np.array([1.5, 1.5], "float32"))
