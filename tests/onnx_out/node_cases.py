"""ONNX's own node tests, read and written at another opset: what becomes of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

from caffeforge.runtime.backends import find_any
from caffeforge.runtime.errors import CaffeforgeError, LegalizeError
from caffeforge.runtime.onnx_front import Importer, open_model
from caffeforge.runtime.onnx_node import DTYPES, tensor
from caffeforge.runtime.onnx_out.backend import OnnxBackend
from caffeforge.runtime.onnx_out.checks import check_model
from caffeforge.runtime.onnx_out.export import convert
from tests.onnx_front.node_cases import as_array, difference

EQUAL, REFUSED, UNREAD, NOT_RUN, WRONG = "equal", "refused", "not read", "nothing runs it", "wrong"


def converted(model: ModelProto, opset: int) -> tuple[ModelProto, list[str], list[str]]:
    """Return a model at another opset, with the names of its inputs and outputs.

    Raises:
        CaffeforgeError: it cannot be read, or the opset cannot express it.
    """
    backend = find_any(f"onnx_opset{opset}")
    assert isinstance(backend, OnnxBackend)
    graph = Importer(open_model(model)).run()
    made, _, _ = convert(graph, backend)
    check_model(made.proto(), made.weights)
    names = [made.names[value] for value in made.inputs]
    return made.whole(), names, [made.names[value] for value in made.outputs]


def outcome(model: ModelProto, sets: Sequence[Any], opset: int, rtol: float, atol: float) -> tuple[str, str]:
    """Write a model at an opset, run it, and return what became of it, with the reason."""
    try:
        made, inputs, outputs = converted(model, opset)
    except LegalizeError as error:
        return REFUSED, " ".join(str(error).split())
    except CaffeforgeError as error:
        text = " ".join(str(error).split())
        return (WRONG if "no valid ONNX model" in text else UNREAD), text
    declared = [value.name for value in model.graph.input]
    for given, expected in sets:
        fed = {name: as_array(array) for name, array in zip(declared, given, strict=False)}
        feed = {name: fed[name] for name in inputs}
        try:
            problem = _problem(run(made, outputs, feed), expected, rtol, atol)
            if problem:  # onnxruntime's MaxUnpool and others do not do what ONNX says
                problem = _problem(list(ReferenceEvaluator(made).run(outputs, feed)), expected, rtol, atol)
        except Exception as error:  # of two runtimes
            return NOT_RUN, " ".join(str(error).split())[:300]
        if problem:
            return WRONG, problem
    return EQUAL, ""


def with_weights(model: ModelProto, given: Sequence[Any]) -> tuple[ModelProto, list[Any]]:
    """Return a model of which all tensors but the first are initializers, and what it is fed then."""
    made = ModelProto()
    made.CopyFrom(model)
    fed = []
    for index, (value, item) in enumerate(zip(model.graph.input, given, strict=False)):
        array = as_array(item)
        if index == 0 or not isinstance(array, np.ndarray):
            fed.append(item)
            continue
        made.graph.input.remove(value)
        dtype = DTYPES[value.type.tensor_type.elem_type]
        made.graph.initializer.append(tensor(value.name, array, dtype))
    return made, fed


def _problem(found: Sequence[Any], expected: Sequence[Any], rtol: float, atol: float) -> str:
    """Return how the first output that differs does."""
    pairs = zip(found, expected, strict=True)
    problems = (difference(array, as_array(wanted), rtol, atol) for array, wanted in pairs)
    return next(filter(None, problems), "")


def run(model: ModelProto, outputs: Sequence[str], feed: dict[str, Any]) -> list[Any]:
    """Return what onnxruntime computes, or where it lacks a kernel, onnx's reference evaluator."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception:  # onnxruntime's classes share no base
        return list(ReferenceEvaluator(model).run(list(outputs), feed))
    return list(session.run(list(outputs), feed))


def by_version_converter(model: ModelProto, sets: Sequence[Any], opset: int, rtol: float, atol: float) -> str:
    """Return what becomes of a model that onnx's own converter takes to an opset."""
    try:
        made = onnx.version_converter.convert_version(model, opset)
        onnx.checker.check_model(made, full_check=True)
    except Exception:  # it raises several classes, RuntimeError among them
        return REFUSED
    inputs, outputs = ([value.name for value in side] for side in (made.graph.input, made.graph.output))
    for given, expected in sets:
        fed = {name: as_array(array) for name, array in zip(inputs, given, strict=False)}
        try:
            if _problem(run(made, outputs, fed), expected, rtol, atol):
                return WRONG
        except Exception:  # as above
            return NOT_RUN
    return EQUAL
