"""The rewrites that all backends share: each example computes the same before and after, by onnxruntime.

That proves a rewrite right by the hub's semantics; tests/e2e runs what becomes of them in real Caffe.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from caffeforge.generated.hub.coverage import FUSIONS, LOWERINGS
from caffeforge.generated.hub.examples import EXAMPLES, REFUSED
from caffeforge.generated.hub.fusions import PATTERNS
from caffeforge.generated.hub.lowerings import RULES
from caffeforge.runtime import backends
from caffeforge.runtime.array import Dense
from caffeforge.runtime.backend import Alternative
from caffeforge.runtime.emit import Emit
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.fuse import fuse
from caffeforge.runtime.graph import Graph, Node
from caffeforge.runtime.legalize import arguments
from caffeforge.runtime.op import full_name
from caffeforge.runtime.pattern import COMMUTATIVE, Pattern
from caffeforge.runtime.refusal import Refused, working_out
from caffeforge.runtime.rule_conditions import Watch
from caffeforge.runtime.rule_tests import difference, graph_of, inputs_of

FUSED = [(name, text) for name, _, text in EXAMPLES if name in FUSIONS]
LOWERED = [(name, text) for name, _, text in EXAMPLES if name not in FUSIONS]
UNLOWERED = [(name, text, condition) for name, _, text, condition in REFUSED if name not in FUSIONS]
# Conditions that no example can make both true and false, and why.
UNSEEN = {
    ("ConstantOfShape", "not has(value)"),  # the value is a tensor, which examples cannot write
    ("Resize", "not has(scales) or len(scales) == len(along)"),  # ONNX refuses such a graph
    ("ScatterElements", "few_pieces(own, one + other)"),  # they would be hundreds of numbers
    ("ScatterND", "few_pieces(own, one + other)"),
}


@dataclass(frozen=True)
class Hub:
    """The shared rewrites, their conditions watched."""

    watch: Watch
    patterns: tuple[Pattern, ...]
    alternatives: dict[str, tuple[Alternative, ...]]


@pytest.fixture(scope="module")
def shared() -> Hub:
    watch = Watch()
    patterns = [
        replace(p, function=watch.watched(p.name, FUSIONS[p.name].conditions, p.function).run)
        for p in PATTERNS
    ]
    alternatives = {}
    for op, rule in RULES.items():
        entry = LOWERINGS[full_name(op)]
        pairs = zip(rule.alternatives, entry.ways, strict=True)
        alternatives[full_name(op)] = tuple(
            replace(
                a,
                function=watch.watched(full_name(op), (*entry.conditions, *way.conditions), a.function).run,
            )
            for a, way in pairs
        )
    return Hub(watch, tuple(patterns), alternatives)


def named(patterns: tuple[Pattern, ...], name: str) -> list[Pattern]:
    return [pattern for pattern in patterns if pattern.name == name]


def joins(graph: Graph, name: str, patterns: tuple[Pattern, ...] = PATTERNS) -> bool:
    """Tell whether a fusion takes a graph, for a target that takes everything."""
    return bool(fuse(graph, named(patterns, name), lambda node: True))


@pytest.mark.parametrize(("name", "text"), FUSED)
def test_a_fusion_computes_what_it_replaces(name: str, text: str, shared: Hub) -> None:
    graph = graph_of(text)
    inputs = inputs_of(graph)
    expected = Executor(graph).run(inputs)
    count = len(graph.nodes)
    assert joins(graph, name, shared.patterns)
    graph.verify()
    assert len(graph.nodes) < count
    assert not difference(expected, Executor(graph).run(inputs))


@pytest.mark.parametrize(("name", "text"), FUSED)
def test_a_fusion_leaves_an_inner_value_that_is_an_output(name: str, text: str) -> None:
    for index in range(len(graph_of(text).nodes) - 1):
        graph = graph_of(text)
        graph.outputs.append(graph.nodes[index].outputs[0])
        assert not joins(graph, name), f"node {index}"


@pytest.mark.parametrize(("name", "text"), FUSED)
def test_a_fusion_leaves_an_inner_value_that_another_node_reads(name: str, text: str) -> None:
    for index in range(len(graph_of(text).nodes) - 1):
        graph = graph_of(text)
        inner = graph.nodes[index].outputs[0]
        other = Graph.parse(f"def other(x: {inner.type_text()}):\n    z = Relu(x)\n    return z\n")
        other.nodes[0].inputs[0] = inner
        graph.nodes.append(other.nodes[0])
        graph.outputs += other.outputs
        graph.verify()
        assert not joins(graph, name), f"node {index}"


@pytest.mark.parametrize(("name", "text"), FUSED)
def test_a_fusion_takes_the_operands_of_commutative_ops_in_either_order(name: str, text: str) -> None:
    for index, node in enumerate(graph_of(text).nodes):
        if node.op.op_type in COMMUTATIVE and len(node.inputs) == 2:
            graph = graph_of(text)
            graph.nodes[index].inputs.reverse()
            assert joins(graph, name), f"node {index}"


@pytest.mark.parametrize(("name", "text"), FUSED)
@pytest.mark.parametrize(("factor", "taken"), [(1 + 3e-6, True), (1 + 1e-3, False)])
def test_a_fusion_takes_constants_within_a_tolerance(
    name: str, text: str, factor: float, taken: bool
) -> None:
    """A number of the match itself; one that is captured may be any."""
    numbers = [
        o.number for node in named(PATTERNS, name)[0].nodes for o in node.operands if o.number is not None
    ]
    for value in graph_of(text).constants():
        assert value.data is not None
        if not np.isclose(value.data.numpy(), numbers, rtol=1e-6).any():
            continue
        graph = graph_of(text)
        (constant,) = [v for v in graph.constants() if v.name == value.name]
        assert constant.data is not None
        constant.data = Dense((constant.data.numpy() * np.float32(factor)).astype(np.float32))
        assert joins(graph, name) == taken, f"{value.name} times {factor}"


@pytest.mark.parametrize(("name", "text"), [(s, t) for s, _, t, _ in REFUSED if s in FUSIONS])
def test_a_fusion_leaves_what_it_says_it_leaves(name: str, text: str, shared: Hub) -> None:
    assert not joins(graph_of(text), name, shared.patterns)


def yields(alternative: Alternative, node: Node) -> list[Node]:
    """Return the nodes that a lowering makes of a node.

    Raises:
        Refused: it does not hold.
    """
    emit = Emit(node, alternative.rule, backends.find("bvlc"))
    with working_out(alternative.rule):
        alternative.function(emit, node.op, *arguments(node))
    return emit.nodes


def over(graph: Graph, nodes: list[Node]) -> Graph:
    for node in nodes:
        for value in node.outputs:
            value.producer = node
    return Graph(graph.name, graph.inputs, graph.outputs, nodes)


@pytest.mark.parametrize(("op", "text"), LOWERED)
def test_every_lowering_that_applies_computes_what_the_op_computes(op: str, text: str, shared: Hub) -> None:
    graph = graph_of(text)
    inputs = inputs_of(graph)
    expected = Executor(graph).run(inputs)
    (node,) = graph.nodes
    applied = 0
    for alternative in shared.alternatives[op]:
        try:
            nodes = yields(alternative, node)
        except Refused:
            continue
        if not alternative.approximate:
            applied += 1
            assert not difference(expected, Executor(over(graph, nodes)).run(inputs))
    assert applied


@pytest.mark.parametrize(
    ("op", "text", "condition"), [(s, t, c) for s, _, t, c in REFUSED if s not in FUSIONS]
)
def test_a_lowering_refuses_what_it_says_it_refuses(op: str, text: str, condition: str, shared: Hub) -> None:
    (node,) = graph_of(text).nodes
    places = []
    for alternative in shared.alternatives[op]:
        with pytest.raises(Refused) as refused:
            yields(alternative, node)
        places.append(refused.value.rule)
    assert not condition or condition in places


def test_every_rewrite_has_an_example() -> None:
    """Give a rewrite that is listed an ``example:``."""
    names = [*(pattern.name for pattern in PATTERNS), *LOWERINGS]
    assert [name for name in names if name not in {s for s, _, _ in EXAMPLES}] == []


def test_examples_make_each_condition_true_and_false(shared: Hub) -> None:
    """Give a rewrite an ``example:`` or ``refused:`` for each that is missing, or a reason in UNSEEN."""
    for name, _, text in [*EXAMPLES, *((s, r, t) for s, r, t, _ in REFUSED)]:
        graph = graph_of(text)
        if name in FUSIONS:
            joins(graph, name, shared.patterns)
            continue
        for alternative in shared.alternatives[name]:
            try:
                yields(alternative, graph.nodes[0])
            except Refused:
                continue
    unseen = [s for s in shared.watch.found() if not (s.true and s.false)]
    assert {(s.subject, s.condition.expression) for s in unseen} == UNSEEN
