"""Runs the examples of a backend's rules: what a rule writes, read back, computes what the op computes.

What a rule says it refuses is refused by the condition that says so; if it is written another way, that
must be right. All this proves that writing and reading agree with each other and with the op, not that the
vendor's program computes the same: a rule wrong in the same way in both directions passes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
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
from caffeforge.runtime.coverage import Example, LayerExample
from caffeforge.runtime.emit import Emit, LayerCall
from caffeforge.runtime.errors import CaffeforgeError, GraphError, LegalizeError
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.expand import expand
from caffeforge.runtime.fuse import fuse
from caffeforge.runtime.graph import Graph, Node
from caffeforge.runtime.legalize import arguments, directly, legalize
from caffeforge.runtime.loaded import load
from caffeforge.runtime.notation import constants_of, parse
from caffeforge.runtime.refusal import Refused, working_out

Outcome = Literal["passed", "read", "refused", "failed"]
RELATIVE, ABSOLUTE = 1e-4, 1e-5  # float32 sums in another order, at the magnitudes of examples
OUTCOMES: Final[Mapping[Outcome, str]] = {
    "passed": "are as they should be",
    "read": "of layers are read and run only, what they compute has no rule to be written back",
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
        rules: the alternatives that wrote it, each followed by those that wrote what it yields.
    """

    example: Example | LayerExample
    outcome: Outcome
    why: str = ""
    rules: frozenset[str] = frozenset()


def run_examples(backend: Backend, subjects: Collection[str] = ()) -> list[Trial]:
    """Return what becomes of each example of a backend's rules, in their order.

    Args:
        backend: whose own and inherited examples are run.
        subjects: the ops, layer types and patterns whose examples are run; empty for all.
    """
    from caffeforge.runtime.layer_trials import run_layer_example

    with tempfile.TemporaryDirectory() as folder:
        trials = [
            run_example(example, backend, Path(folder, f"op{index}"))
            for index, example in enumerate(coverage.examples_of(backend))
            if not subjects or example.subject in subjects
        ]
        for index, layer in enumerate(coverage.layer_examples_of(backend)):
            if not subjects or layer.subject in subjects:
                trials.append(run_layer_example(layer, backend, Path(folder, f"layer{index}")))
    return trials


def run_example(example: Example, backend: Backend, stem: Path) -> Trial:
    """Write one example to files named `stem`, read it back, run it and compare; or see it refused."""
    try:
        graph = graph_of(example.text, backend)
        if example.refused is not None:
            return _run_refused(example, graph, backend, stem)
        if example.subject in coverage.of(backend).patterns and not _fused(graph, example, backend):
            return Trial(example, "failed", "the pattern does not take its own example")
        calls = legalize(graph, backend, folded=False)
        rules = frozenset(call.rule for call in calls)
        if not _by_rule(calls, example, backend):
            why = "the rule does not hold for it, a lowering that all backends share was taken"
            return Trial(example, not_taken(example, backend), why)
        why = _written_otherwise(graph_of(example.text, backend), graph, calls, backend, stem)
    except LegalizeError as error:
        return Trial(example, not_taken(example, backend), str(error))
    except CaffeforgeError as error:
        return Trial(example, "failed", str(error))
    return Trial(example, "failed" if why else "passed", why, rules)


def _run_refused(example: Example, graph: Graph, backend: Backend, stem: Path) -> Trial:
    """See that a rule refuses an example; where another way is taken, it must be right."""
    if example.subject in coverage.of(backend).patterns:
        joined = _fused(graph, example, backend)
        return Trial(example, "failed" if joined else "passed", "the pattern joins it" if joined else "")
    why = _accepted(example, graph.nodes[0], backend) if example.refused else ""
    if why:
        return Trial(example, not_taken(example, backend), why)
    try:
        calls = legalize(graph, backend, folded=False)
    except LegalizeError:
        return Trial(example, "passed")
    if not example.refused and _by_rule(calls, example, backend):
        return Trial(example, not_taken(example, backend), f"an alternative takes it  [{calls[0].rule}]")
    why = _written_otherwise(graph_of(example.text, backend), graph, calls, backend, stem)
    return Trial(example, "failed" if why else "passed", why, frozenset(call.rule for call in calls))


def _accepted(example: Example, node: Node, backend: Backend) -> str:
    """Return a sentence if the condition that should refuse a node does not; empty if it does."""
    said = []
    rule = backend.rules.get(type(node.op))
    for alternative in rule.alternatives if rule is not None else ():
        try:
            with working_out(alternative.rule):
                alternative.function(Emit(node, alternative.rule, backend), node.op, *arguments(node))
        except Refused as reason:
            if reason.rule == example.refused:
                return ""
            said.append(f"{reason.sentence}  [{reason.rule}]")
        except GraphError as error:
            said.append(f"{error.what}  [{alternative.rule}]")
        finally:
            node.own_outputs()
    why = f"the condition at {example.refused} does not refuse it"
    return "\n  ".join([f"{why}; what does:", *said]) if said else why


def _written_otherwise(
    source: Graph, graph: Graph, calls: Sequence[LayerCall], backend: Backend, stem: Path
) -> str:
    """Return how what the layers `calls` of `graph` compute, read back, differs from what `source` does."""
    inputs = inputs_of(source)
    expected = Executor(expand(source)).run(inputs)
    prototxt, caffemodel, _ = write_files(assemble(graph, calls, backend), backend, stem, "{}")
    given = {name: array.astype(np.float32) for name, array in inputs.items()}  # as blobs hold them
    return difference(expected, load(prototxt, caffemodel, backend).run(given, list(expected)))


def graph_of(text: str, backend: Backend | None = None) -> Graph:
    """Return the graph of an example with seeded random constants, positive where they are variances."""
    generator = np.random.default_rng(1)
    weights = {
        name: Dense(generator.uniform(0.5, 1.5, shape).astype("float32"))
        for name, shape in constants_of(text).items()
    }
    return parse(text, weights, backend.custom if backend else {})


def inputs_of(graph: Graph) -> dict[str, NDArray]:
    """Return seeded random inputs by name: normal, of mean 0 and deviation 1, or small whole numbers."""
    generator = np.random.default_rng(2)
    return {v.name: random_array(generator, v.dtype, v.shape[:]) for v in graph.inputs}


def random_array(generator: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> NDArray:
    """Return normal numbers; whole numbers are 0, 1 or 2, so that they can be places along an axis."""
    if dtype in ("bool", "int32", "int64"):
        return generator.integers(0, 2 if dtype == "bool" else 3, shape).astype(dtype)
    return generator.standard_normal(shape).astype(dtype)


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


def not_taken(example: Example | LayerExample, backend: Backend) -> Outcome:
    """Return what a rule's not taking its example means: that of an inherited rule knows no other chip."""
    inherited = example.rule.split("/")[0] in {*names(), "schemas"} - {backend.name}  # or a known layer's
    return "refused" if inherited else "failed"


def counted(tests: Sequence[Trial]) -> dict[Outcome, int]:
    """Return how many examples had each outcome."""
    return {outcome: sum(test.outcome == outcome for test in tests) for outcome in OUTCOMES}
