"""Runs every rule's example: what a rule writes computes what the op or the matched nodes compute.

That proves a rule consistent with the hub, not with a real Caffe: tests/e2e does the latter.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from caffeforge.generated.hub.examples import EXAMPLES
from caffeforge.generated.hub.fusions import PATTERNS
from caffeforge.generated.hub.lowerings import RULES
from caffeforge.runtime import backends
from caffeforge.runtime.coverage import Example, examples_of, without_example
from caffeforge.runtime.emit import Emit
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.fuse import fuse
from caffeforge.runtime.graph import Graph, Node
from caffeforge.runtime.legalize import arguments
from caffeforge.runtime.refusal import Refused
from caffeforge.runtime.rule_tests import difference, graph_of, inputs_of, run_example

# Of bvlc: take away what gets one, add nothing.
WITHOUT_EXAMPLE = {
    *("And", "ArgMin", "Cast", "GRU", "Gather", "GreaterOrEqual", "LSTM", "Less", "LessOrEqual", "Log"),
    *("MeanVarianceNormalization", "Not", "Or", "Pad", "RMSNormalization", "RNN", "Reciprocal", "ReduceL1"),
    *("ReduceMin", "ReduceSumSquare", "Sqrt", "TopK", "Where"),
}
PATTERN_NAMES = {pattern.name for pattern in PATTERNS}


@pytest.mark.parametrize(("name", "text"), [(s, t) for s, _, t in EXAMPLES if s in PATTERN_NAMES])
def test_a_fusion_computes_what_it_replaces(name: str, text: str) -> None:
    graph = graph_of(text)
    inputs = inputs_of(graph)
    expected = Executor(graph).run(inputs)
    count = len(graph.nodes)
    pattern = [pattern for pattern in PATTERNS if pattern.name == name]
    assert fuse(graph, pattern, lambda node: True)
    graph.verify()
    assert len(graph.nodes) < count
    assert not difference(expected, Executor(graph).run(inputs))


@pytest.mark.parametrize(("op", "text"), [(s, t) for s, _, t in EXAMPLES if s not in PATTERN_NAMES])
def test_every_lowering_that_applies_computes_what_the_op_computes(op: str, text: str) -> None:
    graph = graph_of(text)
    inputs = inputs_of(graph)
    expected = Executor(graph).run(inputs)
    (node,) = graph.nodes
    applied = 0
    exact = [a for a in RULES[type(node.op)].alternatives if not a.approximate]
    for alternative in exact:
        emit = Emit(node, alternative.rule, backends.find("bvlc"))
        try:
            alternative.function(emit, node.op, *arguments(node))
        except Refused:
            continue
        applied += 1
        assert not difference(expected, Executor(_over(graph, emit.nodes)).run(inputs))
    assert applied


def _over(graph: Graph, nodes: list[Node]) -> Graph:
    for node in nodes:
        for value in node.outputs:
            value.producer = node
    return Graph(graph.name, graph.inputs, graph.outputs, nodes)


CASES = [(name, example) for name in backends.names() for example in examples_of(backends.find(name))]


@pytest.mark.parametrize(("backend", "example"), CASES)
def test_a_rule_writes_layers_that_read_back_as_the_op(
    backend: str, example: Example, tmp_path: Path
) -> None:
    tested = run_example(example, backends.find(backend), tmp_path)
    assert tested.outcome == "passed", tested.why


def test_new_rules_of_bvlc_have_examples() -> None:
    untested = without_example(backends.find("bvlc"))
    assert set(untested.ops) <= WITHOUT_EXAMPLE
    assert not untested.patterns
