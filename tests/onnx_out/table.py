"""Prints what becomes of ONNX's node tests at other opsets, beside onnx's own converter.

``python -m tests.onnx_out.table [--constants | --weights] [--converter] OPSET ... [PART ...]``: with
``--constants`` small integer inputs are constants, with ``--weights`` all inputs but the first; a PART is a
piece of the names of cases.
"""

from __future__ import annotations

import sys
from collections import Counter

from tests.onnx_front.node_cases import cases, with_constants
from tests.onnx_out.node_cases import EQUAL, by_version_converter, outcome, with_weights


def main(arguments: list[str]) -> None:
    """Run all cases, or those whose names hold a part, and print those that are not equal."""
    opsets = [int(a) for a in arguments if a.isdigit()]
    parts = [a for a in arguments if not a.isdigit() and not a.startswith("--")]
    for opset in opsets:
        counts: Counter[str] = Counter()
        others: Counter[str] = Counter()
        for case in cases():
            if parts and not any(part in case.name for part in parts):
                continue
            model, sets = case.model, case.data_sets
            if "--constants" in arguments:
                model, given = with_constants(model, sets[0][0])
                sets = [(given, sets[0][1])]
            if "--weights" in arguments:
                model, given = with_weights(model, sets[0][0])
                sets = [(given, sets[0][1])]
            found, reason = outcome(model, sets, opset, case.rtol, case.atol)
            counts[found] += 1
            if found != EQUAL:
                print(f"{opset} {case.name}: {found}: {reason[:400]}", flush=True)
            if "--converter" in arguments:
                others[by_version_converter(model, sets, opset, case.rtol, case.atol)] += 1
        print(f"opset {opset}: {_listed(counts)}")
        if others:
            print(f"opset {opset}, onnx.version_converter: {_listed(others)}", flush=True)


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{outcome} {count}" for outcome, count in sorted(counts.items()))


if __name__ == "__main__":
    main(sys.argv[1:])
