"""Prints what becomes of ONNX's node tests: ``python -m tests.onnx_front.table [--constants] [PART]``.

With ``--constants`` small integer inputs are constants, so that they become fields of the hub's ops.
"""

from __future__ import annotations

import sys
from collections import Counter

from tests.onnx_front.node_cases import cases, run, with_constants


def main(arguments: list[str]) -> None:
    """Run all cases, or those whose names hold a part, and print those that are not equal in the hub."""
    constants = "--constants" in arguments
    parts = [a for a in arguments if not a.startswith("--")]
    counts: Counter[str] = Counter()
    for case in cases():
        if parts and not any(part in case.name for part in parts):
            continue
        model, sets = case.model, case.data_sets
        if constants:
            model, given = with_constants(model, sets[0][0])
            sets = [(given, sets[0][1])]
        outcome, reason = run(model, sets, case.rtol, case.atol)
        counts[outcome] += 1
        if reason:
            print(f"{case.name}: {outcome}: {reason}")
    total = sum(counts.values())
    equal = sum(count for outcome, count in counts.items() if outcome.startswith("equal"))
    print(", ".join(f"{outcome} {count}" for outcome, count in sorted(counts.items())))
    print(f"{equal} of {total} equal, {equal / total:.1%}")


if __name__ == "__main__":
    main(sys.argv[1:])
