"""ONNX's own node tests: which of them count, and what becomes of one when it is imported and run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, TypeProto

from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.onnx_front import Importer, open_model
from caffeforge.runtime.onnx_front.kept import Kept, inner_graphs

EQUAL, KEPT, REFUSED, WRONG = "equal", "equal, kept", "refused", "wrong"

_NUMBERS = frozenset(
    getattr(TensorProto, name)
    for name in (
        "FLOAT16",
        "FLOAT",
        "DOUBLE",
        "BOOL",
        *(f"{u}INT{n}" for u in ("", "U") for n in (8, 16, 32, 64)),
    )
)
_RANDOM = frozenset(
    ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
)


@lru_cache(maxsize=1)
def all_cases() -> tuple[Any, ...]:
    """Return every case, with its model and data."""
    import warnings

    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tuple(collect_testcases(None))


@lru_cache(maxsize=1)
def cases() -> tuple[Any, ...]:
    """Return the cases that count."""
    return tuple(case for case in all_cases() if counts(case.model))


def counts(model: Any) -> bool:
    """Tell whether a case counts: ai.onnx alone, tensors of usual numbers, nothing random."""
    values = [*model.graph.input, *model.graph.output, *model.graph.value_info]
    nodes = [*_nodes(model.graph), *(node for function in model.functions for node in function.node)]
    return (
        all(_is_number(value.type) for value in values)
        and all(node.domain in ("", "ai.onnx") or _is_own(model, node) for node in nodes)
        and not any(node.op_type in _RANDOM or _trains(node) for node in nodes)
        and not any("Sequence" in node.op_type or "Optional" in node.op_type for node in nodes)
    )


def _is_own(model: ModelProto, node: Any) -> bool:
    return any((f.domain, f.name) == (node.domain, node.op_type) for f in model.functions)


def _is_number(kind: TypeProto) -> bool:
    return kind.HasField("tensor_type") and kind.tensor_type.elem_type in _NUMBERS


def _trains(node: Any) -> bool:
    """Tell whether a node is a Dropout with an input for training, whose mask is random."""
    return bool(node.op_type == "Dropout" and len(node.input) > 2)


def _nodes(graph: Any) -> Iterator[Any]:
    for node in graph.node:
        yield node
        for inner in inner_graphs(node):
            yield from _nodes(inner)


def run(model: ModelProto, sets: Sequence[Any], rtol: float, atol: float) -> tuple[str, str]:
    """Import a model, compute its outputs, and return the outcome with its reason."""
    try:
        importer = Importer(open_model(model))
        graph = importer.run()
        executor = Executor(graph)
        for given, expected in sets:
            names = [value.name for value in model.graph.input]
            fed = {name: as_array(array) for name, array in zip(names, given, strict=False)}
            feed = {value.name: fed[value.name] for value in graph.inputs}
            found = executor.run(feed)
            for value, wanted in zip(graph.outputs, expected, strict=True):
                problem = difference(found[value.name], as_array(wanted), rtol, atol)
                if problem:
                    return WRONG, f"{value.name}: {problem}"
    except CaffeforgeError as error:
        return REFUSED, " ".join(str(error).split())
    if any(isinstance(node.op, Kept) for node in graph.nodes):
        return KEPT, "; ".join(dict.fromkeys(importer.reasons.values()))
    return EQUAL, ""


def as_array(given: Any) -> Any:
    """Return what a case gives as an array."""
    found = onnx.numpy_helper.to_array(given) if isinstance(given, TensorProto) else np.asarray(given)
    return found.astype(object) if found.dtype.kind in "US" else found


def difference(found: Any, wanted: Any, rtol: float, atol: float) -> str:
    """Return how two arrays differ, empty if they do not."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return f"{found.dtype}{list(found.shape)} instead of {wanted.dtype}{list(wanted.shape)}"
    if found.dtype.kind == "O":
        return "" if np.array_equal(found, wanted) else f"{found.tolist()} instead of {wanted.tolist()}"
    if found.dtype.kind == "f" and wanted.size:  # rounding goes with the largest of what is summed
        finite = np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0)
        atol = max(atol, float(finite) * (1e-3 if found.dtype == np.float16 else 1e-6))
    if np.allclose(found, wanted, rtol, atol, equal_nan=True):
        return ""
    return f"differs by {np.nanmax(np.abs(found.astype(np.float64) - wanted.astype(np.float64))):.3g}"


def with_constants(model: ModelProto, given: Sequence[Any]) -> tuple[ModelProto, list[Any]]:
    """Return a model whose small integer inputs are constants, as exporters write them, and what it is fed.

    So sizes, axes and the like are known before it runs. One input stays at least.
    """
    made = ModelProto()
    made.CopyFrom(model)
    small = [
        bool(isinstance(a, np.ndarray) and a.dtype == np.int64 and a.ndim < 2 and a.size < 16) for a in given
    ]
    if all(small) and small:
        small[0] = False
    for fixed, value, array in zip(small, model.graph.input, given, strict=False):
        if fixed:
            made.graph.input.remove(value)
            made.graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
    return made, [array for fixed, array in zip(small, given, strict=False) if not fixed]
