"""ONNX's own node tests, imported and run: nearly all are equal, none is wrong, the rest says why."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("onnxruntime")

from tests.onnx_front.node_cases import REFUSED, WRONG, cases, run, with_constants

LEAST = 1500  # cases that the smallest onnx in use has
NOT_TOLD = "how many dimensions"  # ranks that depend on values: the hub's values have a rank


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("constants", [False, True], ids=["as-they-are", "sizes-constant"])
def test_node_cases_are_equal_or_refused_with_a_reason(constants: bool) -> None:
    outcomes = {}
    for index, case in enumerate(cases()):
        model, sets = case.model, case.data_sets
        if constants and index % 3:  # the whole of it: python -m tests.onnx_front.table --constants
            continue
        if constants:
            model, given = with_constants(model, sets[0][0])
            sets = [(given, sets[0][1])]
        outcomes[case.name] = run(model, sets, case.rtol, case.atol)
    assert len(outcomes) >= (LEAST // 3 if constants else LEAST)
    wrong = {name: reason for name, (outcome, reason) in outcomes.items() if outcome == WRONG}
    refused = {name: reason for name, (outcome, reason) in outcomes.items() if outcome == REFUSED}
    assert not wrong
    assert all(NOT_TOLD in reason for reason in refused.values()), refused
    assert len(refused) <= 0.005 * len(outcomes)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_kept_says_why() -> None:
    kept = [case for case in cases() if re.match(r"test_(bitcast|cumprod|scan_sum|if$)", case.name)]
    reasons = {run(case.model, case.data_sets, case.rtol, case.atol) for case in kept}
    assert {reason for _, reason in reasons} >= {
        "the hub has no BitCast",
        "the hub has no CumProd",
        "its condition is computed when the model runs",
    }
    assert {outcome for outcome, _ in reasons} == {"equal, kept"}
