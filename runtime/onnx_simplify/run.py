"""``simplify``: read, apply passes until nothing changes, write at an opset, and run both files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from caffeforge.generated.hub.fusions import PATTERNS
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.backends import find_any
from caffeforge.runtime.compare import compare, tolerance
from caffeforge.runtime.errors import GraphError, UsageError, VerificationError
from caffeforge.runtime.fold import fold_constants
from caffeforge.runtime.fuse import fuse
from caffeforge.runtime.graph import Graph
from caffeforge.runtime.legalize import legalized, written_directly
from caffeforge.runtime.onnx_front import Importer, open_model
from caffeforge.runtime.onnx_front.model_file import ModelFile, opsets
from caffeforge.runtime.onnx_front.running import running
from caffeforge.runtime.onnx_node import numpy_dtype
from caffeforge.runtime.onnx_out.backend import OnnxBackend
from caffeforge.runtime.onnx_out.checks import check_model
from caffeforge.runtime.onnx_out.model import assemble
from caffeforge.runtime.onnx_out.target import OnnxTarget, unread
from caffeforge.runtime.onnx_out.writer import write
from caffeforge.runtime.onnx_simplify.chains import as_changes_of_shape, join_duplicates, join_moves
from caffeforge.runtime.onnx_simplify.identities import without_identities
from caffeforge.runtime.onnx_simplify.linear import join_bias
from caffeforge.runtime.onnx_simplify.weights import fold_into_weights
from caffeforge.runtime.staging import disk_errors, folder, move, staging

OLDEST, NEWEST = 7, 28
ROUNDS: Final = 20  # more than passes can give each other work
SIZE: Final = 2  # of a dimension that has a name only, when both files are run
PASSES: Final[dict[str, Callable[[Graph], int]]] = {
    "identities": without_identities,
    "moves of single elements": as_changes_of_shape,
    "moves in a row": join_moves,
    "duplicates": join_duplicates,
    "parts of weights": fold_into_weights,
    "products with a bias": join_bias,
}


@dataclass(frozen=True)
class Simplified:
    """What became of a model.

    Attributes:
        before: its nodes.
        after: the nodes that were written.
        applied: how often each pass applied.
        error: the largest error of an output as a part of its scale; None if the two were not run.
    """

    before: int
    after: int
    applied: dict[str, int]
    error: float | None


def simplify(
    source: str | Path,
    target: str | Path,
    opset: int | None = None,
    *,
    backend: str | Path | None = None,
    verify: bool = True,
) -> Simplified:
    """Write a simpler model to `target`.

    Args:
        source: an ONNX file.
        target: the file to write; it may be `source`.
        opset: of the new file; None for that of the source.
        backend: an opset, or a vendor's part of one, that the new file shall fit, instead of `opset`.
        verify: run both on random inputs and compare.

    Raises:
        CaffeforgeError: the source cannot be read or said in the opset, or the two differ; then nothing is
            written.
    """
    file = open_model(source)
    goal = _goal(file, opset, backend)
    graph = Importer(file, custom=goal.custom).run()
    applied = simplified(graph)
    onnx_target = OnnxTarget(goal, unread(graph))
    fuse(graph, PATTERNS, lambda node: written_directly(node, onnx_target))
    model = assemble(graph, legalized(graph, OnnxTarget(goal, unread(graph))), goal.opset, "path")
    proto = model.proto()
    check_model(proto, model.weights)
    path = Path(target)
    error = None
    with folder(path.parent), staging(path.parent) as held:
        staged = [held / path.name]
        with disk_errors(path):
            beside = write(proto, model.weights, staged[0], None)
        if verify:
            error = _difference(file, staged[0], graph, goal)
        targets = [path]
        if beside is not None:
            staged.append(beside)
            targets.append(path.parent / beside.name)
        with disk_errors(path):
            move(staged, targets)
    return Simplified(len(file.proto.graph.node), len(model.calls), applied, error)


def _goal(file: ModelFile, opset: int | None, backend: str | Path | None) -> OnnxBackend:
    """Return what the new file shall be of."""
    if backend is not None:
        if opset is not None:
            raise UsageError("an opset and a backend are given, which has its own", hint="give one of them")
        found = find_any(backend)
        if not isinstance(found, OnnxBackend):
            raise UsageError(f"{found.name} writes no ONNX files")
        return found
    opset = opset if opset is not None else opsets(file.proto)[""]
    if not OLDEST <= opset <= NEWEST:
        raise UsageError(f"opset {opset} cannot be written, {OLDEST} to {NEWEST} can")
    whole = find_any(f"onnx_opset{opset}")
    assert isinstance(whole, OnnxBackend)
    return whole


def simplified(graph: Graph) -> dict[str, int]:
    """Apply all passes to `graph` in place until nothing changes; return how often each applied.

    Raises:
        GraphError: passes undo each other without end.
    """
    applied = dict.fromkeys(PASSES, 0)
    for _ in range(ROUNDS):
        fold_constants(graph)
        counts = {name: run(graph) for name, run in PASSES.items()}
        for name, count in counts.items():
            applied[name] += count
        if not any(counts.values()):
            return applied
    raise GraphError("the passes undo each other without end", where=graph.name)


def _difference(file: ModelFile, path: Path, graph: Graph, goal: OnnxBackend) -> float:
    """Return the largest error of the new file's outputs, as a part of their scale.

    Raises:
        VerificationError: an output differs.
    """
    generator = np.random.default_rng(0)
    feed = {value.name: _random(value, generator) for value in graph.inputs}
    expected = running(file, [], goal.custom).run(feed)
    found = running(open_model(path), [], goal.custom).run(feed)
    worst = 0.0
    for name, array in expected.items():
        if array.shape != found[name].shape:
            raise VerificationError(f"output {name} has another shape: {list(found[name].shape)}")
        difference = compare(array, found[name])
        if not tolerance(array.dtype.name, found[name].dtype.name).accepts(difference):
            raise VerificationError(f"output {name} differs by {difference.relative:.2e} of its scale")
        worst = max(worst, difference.relative)
    return worst


def _random(value: Any, generator: np.random.Generator) -> NDArray:
    dims = [dim if isinstance(dim, int) else SIZE for dim in value.dims]
    dtype = numpy_dtype(value.dtype)
    if dtype.kind in "iub":
        return generator.integers(0, 2, dims).astype(dtype)
    return generator.standard_normal(dims).astype(dtype)
