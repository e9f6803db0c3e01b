"""ONNX's own node tests, written at older opsets: equal, or refused with a reason, never wrong."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("onnxruntime")

from tests.onnx_front.node_cases import cases, with_constants
from tests.onnx_out.node_cases import EQUAL, REFUSED, WRONG, outcome

OPSETS = (9, 11, 13, 17, 21)
EACH = 8  # one case of so many is tried; all of them: python -m tests.onnx_out.table 9 11 13 17 21


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("constants", [False, True], ids=["as-they-are", "sizes-constant"])
def test_node_cases_are_equal_or_refused_with_a_reason(constants: bool) -> None:
    counts: Counter[str] = Counter()
    for index, case in enumerate(cases()):
        if index % EACH != 2 * constants:
            continue
        model, sets = case.model, case.data_sets
        if constants:
            model, given = with_constants(model, sets[0][0])
            sets = [(given, sets[0][1])]
        opset = OPSETS[index // EACH % len(OPSETS)]
        found, reason = outcome(model, sets, opset, case.rtol, case.atol)
        counts[found] += 1
        assert found != WRONG, (case.name, opset, reason)
        assert found != REFUSED or "cannot express" in reason
    assert counts[EQUAL] >= 0.7 * counts.total()
