"""The legalizer: alternatives in order, lowerings below them, and reports of everything that is refused."""

from __future__ import annotations

import contextlib
import itertools
import json
from dataclasses import replace

import pytest

from caffeforge.generated import hub
from caffeforge.generated.bvlc import BACKEND, layers
from caffeforge.runtime.backend import Alternative, Backend, Rule
from caffeforge.runtime.emit import Emit, LayerCall
from caffeforge.runtime.errors import LegalizeError
from caffeforge.runtime.graph import Graph, Node, Origin, Symbol, Value
from caffeforge.runtime.legalize import directly, legalize
from caffeforge.runtime.op import Op
from caffeforge.runtime.read import Read
from caffeforge.runtime.refusal import Refused


def relu(e: Emit, op: Op, X: Value, Y: Value) -> None:
    e.layer(layers.ReLU(), (X,), tops=(Y,))


def never(e: Emit, op: Op, X: Value, Y: Value) -> None:
    raise Refused("it never holds", "here:1")


def to(other: Op) -> Alternative:
    def rewrite(e: Emit, op: Op, X: Value, Y: Value) -> None:
        e.apply(other, (X,), (Y,))

    return Alternative(rewrite, f"to {other.op_type}")


def target(**rules: tuple[Alternative, ...]) -> Backend:
    return replace(BACKEND, rules={hub.OPS[name]: Rule(found) for name, found in rules.items()})


def graph(*ops: Op, dims: tuple[int | Symbol, ...] = (2, 3)) -> Graph:
    values = [Value(f"v{i}", "float32", dims) for i in range(len(ops) + 1)]
    nodes = [
        Node(f"n{i}", op, [values[i]], [values[i + 1]], Origin(f"block.{i}", "aten.x", f"net.py:{i + 10}"))
        for i, op in enumerate(ops)
    ]
    return Graph("g", values[:1], values[-1:], nodes)


def types(calls: list[LayerCall]) -> list[str]:
    return [call.param.TYPE for call in calls]


def test_the_first_alternative_that_holds_is_taken() -> None:
    backend = target(Relu=(Alternative(never, "a:1"), Alternative(relu, "a:2"), Alternative(never, "a:3")))
    (call,) = legalize(graph(hub.Relu()), backend)
    assert call.rule == "a:2" and call.name == "n0" and call.tops[0].name == "v1"


def test_an_alternative_counts_only_if_what_it_yields_is_legal() -> None:
    backend = target(Relu=(Alternative(relu, "a:1"),), Abs=(to(hub.Erf()), to(hub.Relu())))
    (call,) = legalize(graph(hub.Abs()), backend)
    assert call.rule == "to Relu > a:1" and call.root is not None and call.root.op == hub.Abs()


def test_a_lowering_that_leads_back_to_itself_is_refused() -> None:
    backend = target(Abs=(to(hub.Neg()),), Neg=(to(hub.Abs()),))
    with pytest.raises(LegalizeError, match="the lowering leads back to itself"):
        legalize(graph(hub.Abs()), backend)


def test_a_cycle_on_one_way_does_not_spoil_another() -> None:
    backend = target(
        Abs=(to(hub.Neg()), Alternative(relu, "a:9")), Neg=(to(hub.Abs()),), Relu=(Alternative(relu, "a:1"),)
    )
    calls = legalize(graph(hub.Neg(), hub.Abs(), hub.Neg()), backend)
    assert [call.rule for call in calls] == ["to Abs > a:9", "a:9", "to Abs > a:9"]


def test_every_refused_node_is_reported_at_once_with_its_place() -> None:
    backend = target(Relu=(Alternative(relu, "a:1"),), Abs=(Alternative(never, "a:2"), to(hub.Erf())))
    with pytest.raises(LegalizeError) as caught:
        legalize(graph(hub.Abs(), hub.Relu(), hub.Log()), backend)
    text = str(caught.value)
    assert "cannot express 2 operations of g" in text
    assert "n0: Abs() on float32[2, 3], from module block.0 (net.py:10)" in text
    assert "here:1: it never holds" in text
    assert "to Erf: its lowering needs Erf" in text
    assert "n2: Log() on float32[2, 3], from module block.2 (net.py:12)" in text
    assert "has no rule for Log" in text and "hint:" in text


def test_the_report_is_json_too() -> None:
    backend = target(Abs=(Alternative(never, "a:2"),))
    with pytest.raises(LegalizeError) as caught:
        legalize(graph(hub.Abs()), backend)
    document = json.loads(json.dumps(caught.value.document))
    (refused,) = document["refused"]
    assert (refused["module"], refused["source"], refused["op"]) == ("block.0", "net.py:10", "Abs")
    assert refused["alternatives"] == [{"rule": "here:1", "refused": "it never holds"}]


def test_a_condition_on_a_symbolic_size_refuses() -> None:
    def needs_height(e: Emit, op: Op, X: Value, Y: Value) -> None:
        if X.shape[1] != 3:
            raise Refused("three are due", "a:1")
        e.layer(layers.ReLU(), (X,), tops=(Y,))

    backend = target(Relu=(Alternative(needs_height, "a:1"),))
    assert types(legalize(graph(hub.Relu(), dims=(Symbol("n"), 3)), backend)) == ["ReLU"]
    with pytest.raises(LegalizeError, match="needs a static h: it is dimension 1 of v0"):
        legalize(graph(hub.Relu(), dims=(2, Symbol("h"))), backend)


def test_an_op_that_is_only_lowered_is_not_taken_directly() -> None:
    backend = target(Relu=(Alternative(relu, "a:1"),), Abs=(to(hub.Relu()),))
    relu_node, abs_node = graph(hub.Relu(), hub.Abs()).nodes
    assert directly(relu_node, backend) and not directly(abs_node, backend)


def test_an_input_that_is_computed_where_it_must_be_known_is_refused() -> None:
    x, shape, y = Value("x", "float32", (2, 3)), Value("s", "int64", (1,)), Value("y", "float32", (6,))
    found = Graph("g", [x, shape], [y], [Node("n", hub.Reshape(), [x, shape], [y])])
    with pytest.raises(LegalizeError, match="shape must be known when the model is converted, s is computed"):
        legalize(found, BACKEND)


@pytest.mark.parametrize("rule", [(to(hub.Relu()),), (to(hub.Erf()),)])
def test_the_source_graph_stays_as_it_was(rule: tuple[Alternative, ...]) -> None:
    source = graph(hub.Abs(), hub.Relu())
    before = source.dump()
    backend = target(Abs=rule, Relu=(Alternative(relu, "a:1"),))
    assert not directly(source.nodes[0], backend)
    with contextlib.suppress(LegalizeError):
        legalize(source, backend)
    source.verify()
    assert source.dump() == before


def test_a_layer_that_a_constraint_refuses_is_passed_over() -> None:
    def no_slope(r: Read, param: layers.ReLU) -> None:
        if param.negative_slope is not None:
            raise Refused("no slope", "limits:1")

    def leaky(e: Emit, op: Op, X: Value, Y: Value) -> None:
        e.layer(layers.ReLU(negative_slope=0.5), (X,), tops=(Y,))

    rules = target(
        Relu=(Alternative(leaky, "a:1"), Alternative(relu, "a:2")), Abs=(Alternative(leaky, "a:3"),)
    )
    backend = replace(rules, constraints={"ReLU": no_slope})
    (call,) = legalize(graph(hub.Relu()), backend)
    assert call.rule == "a:2"
    with pytest.raises(LegalizeError, match="limits:1: no slope"):
        legalize(graph(hub.Abs()), backend)


def test_what_was_refused_is_not_tried_again() -> None:
    """Each op has two ways that both lead to the next one: without memory that is 2**11 times the last."""
    tried: list[str] = []

    def counted(e: Emit, op: Op, X: Value, Y: Value) -> None:
        tried.append(op.op_type)
        raise Refused("it never holds", "here:1")

    names = ["Abs", "Neg", "Exp", "Log", "Sqrt", "Sin", "Cos", "Tan", "Erf", "Floor", "Ceil", "Round"]
    ways = {a: (to(hub.OPS[b]()), to(hub.OPS[b]())) for a, b in itertools.pairwise(names)}
    backend = target(**ways, Round=(Alternative(counted, "here:1"),))
    with pytest.raises(LegalizeError):
        legalize(graph(hub.Abs(), hub.Abs(), hub.Abs()), backend)
    assert len(tried) <= 6  # once, and again for the reports of the others


def too_many(e: Emit, op: Op, X: Value, Y: Value) -> None:
    raise Refused(f"{X.name} is no number", "here:2")


def test_a_report_names_each_nodes_own_values() -> None:
    backend = target(Abs=(Alternative(too_many, "a:2"),), Log=(to(hub.Abs()),))
    with pytest.raises(LegalizeError) as caught:
        legalize(graph(hub.Abs(), hub.Abs(), hub.Log()), backend)
    first, second, third = caught.value.document["refused"]
    assert first["alternatives"][0]["refused"] == "v0 is no number"
    assert second["alternatives"][0]["refused"] == "v1 is no number"
    assert third["below"][0]["alternatives"][0]["refused"] == "v2 is no number"


def test_nodes_that_are_refused_alike_are_told_in_one_paragraph() -> None:
    backend = target(Abs=(Alternative(too_many, "a:2"),))
    with pytest.raises(LegalizeError) as caught:
        legalize(graph(*[hub.Abs()] * 10), backend)
    text = str(caught.value)
    assert "cannot express 10 operations of g" in text
    assert text.count("is no number") == 1
    assert "and 9 like it: n1 from module block.1 (net.py:11), " in text
    assert text.count("from module") == 7 and ", and 3 more\n" in text


def test_what_alternatives_have_in_common_is_said_once() -> None:
    backend = target(Abs=(Alternative(never, "a:2"), Alternative(never, "a:3"), to(hub.Erf())))
    with pytest.raises(LegalizeError) as caught:
        legalize(graph(hub.Abs()), backend)
    assert str(caught.value).count("here:1: it never holds") == 1
    assert "--outputs-at" in caught.value.hint


def test_operands_are_told_by_the_names_that_conditions_use() -> None:
    source = Graph.parse("def g(x: float32[2], p: float32[2]):\n    y = Pow(x, p)\n    return y\n")
    with pytest.raises(
        LegalizeError, match=r"y: Pow\(\) on X: float32\[2\], Y: float32\[2\], from the model"
    ):
        legalize(source, BACKEND)


def test_a_conversion_to_whole_numbers_is_met_with_a_hint() -> None:
    source = Graph.parse(
        "def g(x: float32[2]):\n    n = Cast(x, to=7)\n    y = Cast(n, to=1)\n    return y\n"
    )
    with pytest.raises(LegalizeError, match=r"hint: leave the conversion out, as trunc\(\) in place of long"):
        legalize(source, BACKEND)
