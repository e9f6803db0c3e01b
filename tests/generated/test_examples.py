"""Runs every rule's example: what a rule writes computes what the op or the matched nodes compute.

That proves a rule consistent with the hub, not with a real Caffe: tests/e2e does the latter.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from caffeforge.generated.hub.examples import EXAMPLES
from caffeforge.generated.hub.fusions import PATTERNS
from caffeforge.generated.hub.lowerings import RULES
from caffeforge.runtime import backends
from caffeforge.runtime.array import Dense, NDArray
from caffeforge.runtime.assemble import assemble
from caffeforge.runtime.caffe_files import write_files
from caffeforge.runtime.emit import Emit
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.fuse import fuse
from caffeforge.runtime.graph import Graph, Node
from caffeforge.runtime.legalize import arguments, legalize
from caffeforge.runtime.loaded import load
from caffeforge.runtime.notation import constants_of
from caffeforge.runtime.refusal import Refused

PATTERN_NAMES = {pattern.name for pattern in PATTERNS}


def build(text: str) -> Graph:
    """Return the graph of an example with seeded random constants, positive where they are variances."""
    generator = np.random.default_rng(1)
    weights = {
        name: Dense(generator.uniform(0.5, 1.5, shape).astype("float32"))
        for name, shape in constants_of(text).items()
    }
    return Graph.parse(text, weights)


def inputs_of(graph: Graph) -> dict[str, NDArray]:
    generator = np.random.default_rng(2)
    return {v.name: generator.standard_normal(v.shape[:]).astype(v.dtype) for v in graph.inputs}


def agree(expected: dict[str, NDArray], found: dict[str, NDArray]) -> None:
    for name, array in expected.items():
        assert array.shape == found[name].shape
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "text"), [(s, t) for s, _, t in EXAMPLES if s in PATTERN_NAMES])
def test_a_fusion_computes_what_it_replaces(name: str, text: str) -> None:
    graph = build(text)
    inputs = inputs_of(graph)
    expected = Executor(graph).run(inputs)
    count = len(graph.nodes)
    pattern = [pattern for pattern in PATTERNS if pattern.name == name]
    assert fuse(graph, pattern, lambda node: True)
    graph.verify()
    assert len(graph.nodes) < count
    agree(expected, Executor(graph).run(inputs))


@pytest.mark.parametrize(("op", "text"), [(s, t) for s, _, t in EXAMPLES if s not in PATTERN_NAMES])
def test_every_lowering_that_applies_computes_what_the_op_computes(op: str, text: str) -> None:
    graph = build(text)
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
        agree(expected, Executor(_over(graph, emit.nodes)).run(inputs))
    assert applied


def _over(graph: Graph, nodes: list[Node]) -> Graph:
    for node in nodes:
        for value in node.outputs:
            value.producer = node
    return Graph(graph.name, graph.inputs, graph.outputs, nodes)


CASES = [
    (backend, subject, rule, text)
    for backend in backends.names()
    for subject, rule, text in import_module(f"caffeforge.generated.{backend}.examples").EXAMPLES
]


@pytest.mark.parametrize(("backend", "subject", "rule", "text"), CASES)
def test_a_rule_writes_layers_that_read_back_as_the_op(
    backend: str, subject: str, rule: str, text: str, tmp_path: Path
) -> None:
    dialect = backends.find(backend)
    graph = build(text)
    inputs = inputs_of(graph)
    expected = Executor(graph).run(inputs)
    net = assemble(graph, legalize(graph, dialect), dialect)
    prototxt, caffemodel, _ = write_files(net, dialect, tmp_path / "net", "{}")
    found = load(prototxt, caffemodel, dialect).run(inputs, list(expected))
    agree(expected, found)
