"""Prints what OpenVINO computes of ONNX's node tests that ``openvino_onnx`` writes.

``python -m tests.onnx_out.openvino_runs [PART ...]``; a PART is a piece of the names of cases. It needs the
package openvino, which caffeforge itself does not.
"""

from __future__ import annotations

import sys
from collections import Counter
from importlib import import_module
from typing import Any

from caffeforge.runtime.backends import find_any
from caffeforge.runtime.errors import CaffeforgeError, LegalizeError
from caffeforge.runtime.onnx_front import Importer, open_model
from caffeforge.runtime.onnx_out.backend import OnnxBackend
from caffeforge.runtime.onnx_out.export import convert
from tests.onnx_front.node_cases import as_array, cases, difference

BACKEND = "openvino_onnx"
FLOAT = {"INFERENCE_PRECISION_HINT": "f32"}


def outcome(case: Any, core: Any) -> tuple[str, str]:
    """Return what became of a case, with the reason."""
    backend = find_any(BACKEND)
    assert isinstance(backend, OnnxBackend)
    try:
        made, _, _ = convert(Importer(open_model(case.model)).run(), backend)
    except LegalizeError as error:
        return "refused", " ".join(str(error).split())
    except CaffeforgeError as error:
        return "not read", " ".join(str(error).split())
    names = [made.names[value] for value in made.inputs]
    declared = [value.name for value in case.model.graph.input]
    try:
        compiled = core.compile_model(core.read_model(made.whole().SerializeToString()), "CPU", FLOAT)
        for given, expected in case.data_sets:
            fed = {name: as_array(array) for name, array in zip(declared, given, strict=False)}
            found = compiled([fed[name] for name in names])
            for index, wanted in enumerate(expected):
                problem = difference(found[index], as_array(wanted), case.rtol, case.atol)
                if problem:
                    return "differs", problem
    except Exception as error:  # OpenVINO raises RuntimeError and its own
        return "OpenVINO refuses", " ".join(str(error).split())[-200:]
    return "equal", ""


def main(parts: list[str]) -> None:
    """Run all cases, or those whose names hold a part, and print those that are not equal."""
    core: Any = import_module("openvino").Core()
    counts: Counter[str] = Counter()
    for case in cases():
        if parts and not any(part in case.name for part in parts):
            continue
        found, reason = outcome(case, core)
        counts[found] += 1
        if found != "equal":
            print(f"{case.name}: {found}: {reason[:300]}", flush=True)
    print(f"{BACKEND}: " + ", ".join(f"{name} {count}" for name, count in sorted(counts.items())))


if __name__ == "__main__":
    main(sys.argv[1:])
