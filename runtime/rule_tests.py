"""Runs the examples of a backend's rules: what a rule writes, read back, computes what the op computes.

That proves that writing and reading agree with each other and with the op, not that the vendor's program
computes the same: a rule wrong in the same way in both directions passes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np

from caffeforge.runtime import coverage
from caffeforge.runtime.array import Dense, NDArray
from caffeforge.runtime.assemble import assemble
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.backends import names
from caffeforge.runtime.caffe_files import write_files
from caffeforge.runtime.coverage import Example
from caffeforge.runtime.emit import LayerCall
from caffeforge.runtime.errors import CaffeforgeError, LegalizeError
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.expand import expand
from caffeforge.runtime.fuse import fuse
from caffeforge.runtime.graph import Graph
from caffeforge.runtime.legalize import directly, legalize
from caffeforge.runtime.loaded import load
from caffeforge.runtime.notation import constants_of, parse

Outcome = Literal["passed", "refused", "failed"]
RELATIVE, ABSOLUTE = 1e-4, 1e-5  # float32 sums in another order, at the magnitudes of examples
OUTCOMES: Final[Mapping[Outcome, str]] = {
    "passed": "compute what their ops compute",
    "refused": "of inherited rules do not hold on this backend",
    "failed": "failed",
}


@dataclass(frozen=True)
class Trial:
    """What became of one example.

    Attributes:
        example: the example.
        outcome: ``refused`` if the rule is inherited and this backend does not take it.
        why: a sentence, empty if it passed.
    """

    example: Example
    outcome: Outcome
    why: str = ""


def run_examples(backend: Backend) -> list[Trial]:
    """Return what becomes of each example of a backend's rules, in their order."""
    with tempfile.TemporaryDirectory() as folder:
        return [
            run_example(example, backend, Path(folder) / str(index))
            for index, example in enumerate(coverage.examples_of(backend))
        ]


def run_example(example: Example, backend: Backend, folder: Path) -> Trial:
    """Write one example below `folder`, read it back, run it and compare."""
    try:
        graph = graph_of(example.graph, backend)
        inputs = inputs_of(graph)
        expected = Executor(expand(graph)).run(inputs)
        if example.subject in coverage.of(backend).patterns and not _fused(graph, example, backend):
            return Trial(example, "failed", "the pattern does not take its own example")
        calls = legalize(graph, backend)
        if not _by_rule(calls, example, backend):
            why = "the rule does not hold for it, a lowering that all backends share was taken"
            return Trial(example, _refused(example, backend), why)
        net = assemble(graph, calls, backend)
        prototxt, caffemodel, _ = write_files(net, backend, folder / "net", "{}")
        found = load(prototxt, caffemodel, backend).run(inputs, list(expected))
    except LegalizeError as error:
        return Trial(example, _refused(example, backend), str(error))
    except CaffeforgeError as error:
        return Trial(example, "failed", str(error))
    why = difference(expected, found)
    return Trial(example, "failed" if why else "passed", why)


def graph_of(text: str, backend: Backend | None = None) -> Graph:
    """Return the graph of an example with seeded random constants, positive where they are variances."""
    generator = np.random.default_rng(1)
    weights = {
        name: Dense(generator.uniform(0.5, 1.5, shape).astype("float32"))
        for name, shape in constants_of(text).items()
    }
    return parse(text, weights, backend.custom if backend else {})


def inputs_of(graph: Graph) -> dict[str, NDArray]:
    """Return seeded random inputs by name: normal, of mean 0 and deviation 1."""
    generator = np.random.default_rng(2)
    return {v.name: generator.standard_normal(v.shape[:]).astype(v.dtype) for v in graph.inputs}


def difference(expected: Mapping[str, NDArray], found: Mapping[str, NDArray]) -> str:
    """Return a sentence for the first result that is not the expected one, empty if all are."""
    for name, array in expected.items():
        other = found[name]
        if array.shape != other.shape:
            return f"{name} has shape {list(other.shape)}, the op gives {list(array.shape)}"
        a, b = array.astype(np.float64), other.astype(np.float64)
        wrong = ~np.isclose(b, a, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True)
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            count = f"{int(wrong.sum())} of {array.size} elements differ"
            return f"{name}: {count}; at {list(at)} {b[at]:.7g} is read back, the op gives {a[at]:.7g}"
    return ""


def _fused(graph: Graph, example: Example, backend: Backend) -> bool:
    patterns = [pattern for pattern in backend.patterns if pattern.name == example.subject]
    return bool(fuse(graph, patterns, lambda node: directly(node, backend)))


def _by_rule(calls: Sequence[LayerCall], example: Example, backend: Backend) -> bool:
    """Tell whether the layers are those of the rule that has the example; a pattern has none of its own."""
    entry = coverage.of(backend).ops.get(example.subject)
    ways = {way.rule for way in entry.ways} if entry is not None else set()
    return not ways or all(call.rule.split(" > ")[0] in ways for call in calls)


def _refused(example: Example, backend: Backend) -> Outcome:
    """Return what a rule's not taking its example means: that of an inherited rule knows no other chip."""
    inherited = example.rule.split("/")[0] in set(names()) - {backend.name}
    return "refused" if inherited else "failed"


def counted(tests: Sequence[Trial]) -> dict[Outcome, int]:
    """Return how many examples had each outcome."""
    return {outcome: sum(test.outcome == outcome for test in tests) for outcome in OUTCOMES}
