"""Single ops of the hub beside each other in one net: what our rules make of each, run by real Caffe.

The reference is onnxruntime on the op itself and, where a case has one, a function of NumPy or PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from caffeforge.generated.bvlc import BACKEND
from caffeforge.runtime.array import Dense
from caffeforge.runtime.assemble import assemble
from caffeforge.runtime.caffe_files import write_files
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.graph import Graph
from caffeforge.runtime.legalize import legalize
from caffeforge.runtime.loaded import load
from caffeforge.runtime.net import Net
from tests.e2e.layer_cases import difference, worst
from tests.real_caffe.witness import Witness

Anything = npt.NDArray[Any]


@dataclass(frozen=True)
class OpCase:
    """A small graph: what stands after ``def net``, as ``(x: float32[2, 3]): y = Abs(x)``.

    The last line's results are the outputs.

    Attributes:
        inputs: arrays for its parameters before ``*``, normally distributed if not given.
        weights: arrays for its parameters after ``*`` whose elements the text does not give.
        expected: gives the outputs of the inputs, in float64 or better than float32.
        varies: whether its results differ from place to place.
    """

    text: str
    inputs: Sequence[Anything] = field(default=(), repr=False)
    weights: Sequence[Anything] = field(default=(), repr=False)
    expected: Callable[..., Any] | None = field(default=None, repr=False)
    varies: bool = True

    def graph(self) -> Graph:
        """Return the graph."""
        head, body = self.text.split("):", 1)
        lines = [line.strip() for line in body.replace(";", "\n").splitlines() if line.strip()]
        results = lines[-1].partition(" = ")[0]
        source = "\n    ".join([f"def net{head}):", *lines, f"return {results}"])
        names = [part.partition(":")[0].strip() for part in head.partition("*")[2].split("], ")]
        named = [name.lstrip(", ") for name in names]
        weights = {name: Dense(array) for name, array in zip(named, self.weights, strict=False)}
        return Graph.parse(source, weights)


def check(cases: Sequence[OpCase], witness: Witness, folder: Path, seed: int = 0) -> float:
    """Run all cases in Caffe and compare; return the largest error as a part of the scale."""
    generator = np.random.default_rng(seed)
    graphs = [renamed(case.graph(), f"c{index}") for index, case in enumerate(cases)]
    inputs = {}
    for case, graph in zip(cases, graphs, strict=True):
        for place, value in enumerate(graph.inputs):
            given = case.inputs[place] if place < len(case.inputs) else generator.standard_normal(value.shape)
            given = given > 0 if value.dtype == "bool" else given
            inputs[value.name] = given.astype(value.dtype)
    due = [
        references(case, graph, {value.name: inputs[value.name] for value in graph.inputs})
        for case, graph in zip(cases, graphs, strict=True)
    ]
    net, prototxt, caffemodel = written(graphs, folder)
    floats = {name: array.astype(np.float32) for name, array in inputs.items()}
    names = [value.name for graph in graphs for value in graph.outputs]
    found = witness.run(prototxt, caffemodel, floats, names)
    again = load(prototxt, caffemodel, BACKEND).run(floats, names)
    errors = {}
    for case, graph, results in zip(cases, graphs, due, strict=True):
        for name, expected in results:
            assert not case.varies or np.asarray(expected).std() > 0, f"{case.text}: all results are alike"
            errors[f"{case.text} -> {kinds(net, graph)}"] = difference(found[name], np.asarray(expected))
            errors[f"{case.text}: our own run of the net"] = difference(again[name], found[name])
    return worst(errors)


def references(case: OpCase, graph: Graph, inputs: dict[str, Anything]) -> list[tuple[str, Any]]:
    """Return (output, what it should be), once by onnxruntime and once by the case's own function."""
    names = [value.name for value in graph.outputs]
    run = Executor(graph, threads=1).run(inputs)
    listed = [(name, run[name].astype(np.float64)) for name in names]
    if case.expected is not None:
        own = case.expected(*inputs.values())
        listed += list(zip(names, own if isinstance(own, tuple) else (own,), strict=True))
    return listed


def renamed(graph: Graph, stem: str) -> Graph:
    """Put `stem` before all names of a graph."""
    for value in graph.values():
        value.name = f"{stem}_{value.name}"
    for node in graph.nodes:
        node.name = f"{stem}_{node.name}"
    return graph


def written(graphs: Sequence[Graph], folder: Path) -> tuple[Net, Path, Path]:
    """Write graphs of different names as one net."""
    whole = Graph(
        "cases",
        [value for graph in graphs for value in graph.inputs],
        [value for graph in graphs for value in graph.outputs],
        [node for graph in graphs for node in graph.nodes],
    )
    net = assemble(whole, legalize(whole, BACKEND), BACKEND)
    prototxt, caffemodel, _ = write_files(net, BACKEND, folder / "net", "{}\n")
    return net, prototxt, caffemodel


def kinds(net: Net, graph: Graph) -> str:
    """Return the layer types that a graph became, in order."""
    stems = tuple(node.name for node in graph.nodes)
    return " ".join(layer.type for layer in net.layers if layer.name.startswith(stems) and layer.bottoms)
