"""The notation of graphs: dumps parse back, and mistakes are told with line and column."""

from __future__ import annotations

import re

import numpy as np
import pytest

from caffeforge.generated import hub
from caffeforge.runtime.array import Dense
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.graph import Graph, Node, Symbol, Value, constant

TEXT = """\
def net(x: float32[1, 3, 8, 8], *, w: float32[4, 3, 3, 3], half: float32[] = 0.5):
    a = Conv(x, w, dilations=(1, 1), group=1, kernel_shape=(3, 3), pads=(1, 1, 1, 1), strides=(1, 1))
    b, c = Split(a, axis=1, split=(1, 3))
    y = Mul(b, half)
    return y, c
"""
WEIGHTS = {"w": Dense(np.ones((4, 3, 3, 3), "float32"))}


def without_comments(text: str) -> str:
    return re.sub(r"  # .*", "", text)


def test_a_dump_is_the_text_that_it_was_parsed_from() -> None:
    assert without_comments(Graph.parse(TEXT, WEIGHTS).dump()) == TEXT


def test_a_dump_shows_types_and_names_in_comments() -> None:
    line = Graph.parse(TEXT, WEIGHTS).dump().splitlines()[2]
    assert line.endswith("# b: float32[1, 1, 8, 8], float32[1, 3, 8, 8]")


def test_names_that_are_no_identifiers_are_spelt_with_underscores_and_stay_apart() -> None:
    x = Value("layer1.0/x", "float32", (2, 3))
    y, z = Value("layer1_0_x", "float32", (2, 3)), Value("for", "float32", (2, 3))
    graph = Graph("g", [x], [z], [Node("a", hub.Relu(), [x], [y]), Node("b", hub.Relu(), [y], [z])])
    text = graph.dump()
    assert "def g(layer1_0_x: float32[2, 3]):" in text
    assert "layer1_0_x_2 = Relu(layer1_0_x)" in text and "for_ = Relu(layer1_0_x_2)" in text
    assert [node.op for node in Graph.parse(text).nodes] == [hub.Relu(), hub.Relu()]


def test_symbols_are_names_in_a_type() -> None:
    graph = Graph.parse("def g(x: float32[batch, 3]):\n    y = Relu(x)\n    return y\n")
    assert graph.outputs[0].dims == (Symbol("batch"), 3)


def test_sizes_are_expressions_of_names_in_a_type() -> None:
    text = "def g(x: float32[batch, (H - 1) // 2 + 1]):\n    y = Relu(x)\n    return y\n"
    graph = Graph.parse(text)
    assert graph.outputs[0].dims == (Symbol("batch"), Symbol("(H + 1) // 2"))
    assert Graph.parse(graph.dump()).inputs[0].dims == graph.inputs[0].dims


def test_shapes_of_constants_come_from_their_types() -> None:
    graph = Graph.parse(
        "def g(x: float32[2, 2], *, c: float32[2] = (1.0, 2.5)):\n    y = Add(x, c)\n    return y\n"
    )
    (value,) = graph.constants()
    assert value.data is not None
    np.testing.assert_array_equal(value.data.numpy(), np.array([1.0, 2.5], "float32"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def g(x: float32[2]):\n    y = Relu(z)\n    return y\n", "line 2:14: z is not defined"),
        ("def g(x: float32[2]):\n    y = Rleu(x)\n    return y\n", "line 2:9: unknown op Rleu"),
        ("def g(x: float32[2]):\n    y = Relu(x, alpha=1)\n    return y\n", "line 2:9: Relu: "),
        ("def g(x):\n    y = Relu(x)\n    return y\n", "line 1:7: x needs a type"),
        ("def g(x: float32[2]):\n    x = Relu(x)\n    return x\n", "line 2:5: x is defined twice"),
        (
            "def g(x: float32[2], *, w: float32[2]):\n    y = Add(x, w)\n    return y\n",
            "the elements of w are not given",
        ),
        ("def g(x: float32[2]):\n    y = Relu(x)\n", "the last line must be 'return'"),
        ("x = 1\n", "a graph is one 'def"),
        ("def g(x: float32[2:\n", "not a graph"),
        (
            "def g(x: float32[2, 3], *, c: float32[2] = (1., 2.)):\n    y = Add(x, c)\n    return y\n",
            "line 2:5",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, message: str) -> None:
    with pytest.raises(GraphError) as caught:
        Graph.parse(text)
    assert message in str(caught.value)


def test_verify_names_what_breaks_an_invariant() -> None:
    x, y = Value("x", "float32", (2,)), Value("y", "float32", (2,))
    late = Value("late", "float32", (2,))
    graph = Graph("g", [x], [y], [Node("n", hub.Add(), [x, late], [y])])
    with pytest.raises(GraphError, match="operand late is used before it is computed"):
        graph.verify()
    same = Graph("g", [x], [y], [Node("n", hub.Relu(), [x], [y]), Node("n", hub.Relu(), [y], [late])])
    with pytest.raises(GraphError, match="two nodes are named n"):
        same.verify()
    missing = Graph("g", [x], [y], [Node("n", hub.Add(), [x], [y])])
    with pytest.raises(GraphError, match="input B of Add is missing"):
        missing.verify()
    folded = Graph("g", [x], [constant("c", Dense(np.ones(2, "float32")))], [])
    with pytest.raises(GraphError, match="output c"):
        folded.verify()
