"""Patterns: what matches, what must not, and what a fusion leaves behind."""

from __future__ import annotations

import numpy as np
import pytest

from caffeforge.generated import hub
from caffeforge.runtime.array import Dense
from caffeforge.runtime.builder import Builder
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.fuse import fuse
from caffeforge.runtime.graph import Graph, Value
from caffeforge.runtime.pattern import Capture, Operand, Pattern, PatternNode
from caffeforge.runtime.refusal import Refused


def silu(b: Builder, *, x: Value, gate: Value, y: Value) -> None:
    b.apply(hub.Swish(), (x,), (y,))


SILU = Pattern(
    "silu",
    "here:1",
    (
        PatternNode(hub.Sigmoid, (Operand("x"),), {}, ("gate",)),
        PatternNode(hub.Mul, (Operand("x"), Operand("gate")), {}, ("y",)),
    ),
    silu,
)


def ops(graph: Graph) -> list[str]:
    return [node.op.op_type for node in graph.nodes]


def fused(text: str, pattern: Pattern = SILU, accepts: bool = True) -> Graph:
    graph = Graph.parse(text)
    fuse(graph, [pattern], lambda node: accepts)
    graph.verify()
    return graph


BODY = "def g(x: float32[2, 3], z: float32[2, 3]):\n    s = Sigmoid(x)\n    {}\n    return {}\n"


@pytest.mark.parametrize("product", ["y = Mul(x, s)", "y = Mul(s, x)"])
def test_a_pattern_matches_in_either_order_of_a_commutative_op(product: str) -> None:
    graph = fused(BODY.format(product, "y"))
    assert ops(graph) == ["Swish"]
    assert graph.outputs[0].name == "y" and graph.nodes[0].name == "y"


def test_a_name_that_occurs_twice_must_be_the_same_value() -> None:
    assert ops(fused(BODY.format("y = Mul(z, s)", "y"))) == ["Sigmoid", "Mul"]


def test_an_inner_value_with_another_reader_keeps_the_nodes() -> None:
    assert ops(fused(BODY.format("y = Mul(x, s)\n    w = Relu(s)", "y, w"))) == ["Sigmoid", "Mul", "Relu"]


def test_an_inner_value_that_is_an_output_keeps_the_nodes() -> None:
    assert ops(fused(BODY.format("y = Mul(x, s)", "y, s"))) == ["Sigmoid", "Mul"]


def test_a_result_that_the_target_does_not_take_is_not_made() -> None:
    assert ops(fused(BODY.format("y = Mul(x, s)", "y"), accepts=False)) == ["Sigmoid", "Mul"]


def test_every_place_is_found_and_told() -> None:
    lines = ["def g(x: float32[2]):"]
    for i in range(5):
        before = "x" if i == 0 else f"y{i - 1}"
        lines += [f"    s{i} = Sigmoid({before})", f"    y{i} = Mul({before}, s{i})"]
    graph = Graph.parse("\n".join([*lines, "    return y4"]))
    notes = fuse(graph, [SILU], lambda node: True)
    assert ops(graph) == ["Swish"] * 5 and len(notes) == 5
    assert notes[-1] == "y0: 2 operations are one, silu (here:1)"


def test_a_refusal_of_the_replacement_leaves_the_nodes() -> None:
    def refuse(b: Builder, *, x: Value, gate: Value, y: Value) -> None:
        raise Refused("not here")

    pattern = Pattern("never", "here:2", SILU.nodes, refuse)
    assert ops(fused(BODY.format("y = Mul(x, s)", "y"), pattern)) == ["Sigmoid", "Mul"]


def shifted(number: float, **fields: object) -> Pattern:
    def replace(b: Builder, *, x: Value, y: Value, slope: object = None) -> None:
        b.apply(hub.Elu(), (x,), (y,))

    nodes = (
        PatternNode(hub.Add, (Operand("x"), Operand(number=number)), {}, ("t",)),
        PatternNode(hub.LeakyRelu, (Operand("t"),), fields, ("y",)),
    )
    return Pattern("shifted", "here:3", nodes, lambda b, t, **rest: replace(b, **rest))


ADD = """\
def g(x: float32[2], *, c: float32[] = {}):
    t = Add(c, x)
    y = LeakyRelu(t, alpha={})
    return y
"""


@pytest.mark.parametrize(
    ("constant", "alpha", "fields", "matches"),
    [
        (3.0, 0.01, {"alpha": 0.01}, True),
        (3.000001, 0.010000001, {"alpha": 0.01}, True),  # as numbers that went through float32
        (3.01, 0.01, {"alpha": 0.01}, False),
        (3.0, 0.2, {"alpha": 0.01}, False),
        (3.0, 0.2, {"alpha": ...}, True),
        (3.0, 0.2, {"alpha": Capture("slope")}, True),
    ],
)
def test_numbers_match_within_float32s_tolerance(
    constant: float, alpha: float, fields: dict[str, object], matches: bool
) -> None:
    graph = fused(ADD.format(constant, alpha), shifted(3.0, **fields))
    assert ops(graph) == (["Elu"] if matches else ["Add", "LeakyRelu"])


def test_optional_and_variadic_operands_are_captured_and_endless_rewriting_is_refused() -> None:
    def replace(b: Builder, *, xs: tuple[Value, ...], W: Value, B: Value | None, t: Value, y: Value) -> None:
        assert B is None and len(xs) == 2
        b.apply(hub.Concat(axis=1), xs, (t,))
        b.apply(hub.Conv(kernel_shape=(1, 1)), (t, W), (y,))

    conv = {name: ... for name in ("dilations", "group", "kernel_shape", "pads", "strides")}
    pattern = Pattern(
        "joined",
        "here:4",
        (
            PatternNode(hub.Concat, (Operand("xs", variadic=True),), {"axis": 1}, ("t",)),
            PatternNode(
                hub.Conv,
                (Operand("t"), Operand("W", constant=True), Operand("B", optional=True)),
                conv,
                ("y",),
            ),
        ),
        replace,
    )
    text = (
        "def g(a: float32[1, 2, 3, 3], b: float32[1, 1, 3, 3], *, w: float32[4, 3, 1, 1]):\n"
        "    t = Concat(a, b, axis=1)\n    y = Conv(t, w, kernel_shape=(1, 1))\n    return y\n"
    )
    graph = Graph.parse(text, {"w": Dense(np.ones((4, 3, 1, 1), "float32"))})
    with pytest.raises(GraphError, match="without end"):  # what it writes is what it looks for
        fuse(graph, [pattern], lambda node: True)


def test_another_result_of_an_op_with_more_of_them_is_no_match() -> None:
    body = "    a, s = Split(x, axis=1, num_outputs=2)\n    y = Mul(a, s)\n    return y\n"
    text = f"def g(x: float32[2, 4]):\n{body}"
    assert ops(fused(text)) == ["Split", "Mul"]
