"""ONNX's node tests of what is no tensor of usual numbers: nearly all are in, none is wrong."""

from __future__ import annotations

import pytest

pytest.importorskip("onnxruntime")

from tests.onnx_front.further_cases import further_cases
from tests.onnx_front.node_cases import REFUSED, WRONG, run

LEAST = 250

# How long a sequence is, or whether an optional holds something, is computed when these run.
NOT_KNOWN = {
    "test_if_opt",
    "test_if_seq",
    "test_loop13_seq",
    "test_loop16_seq_none",
    "test_sequence_insert_at_front",
    "test_split_to_sequence_1",
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_further_cases_are_equal_or_refused_with_a_reason() -> None:
    outcomes = {
        name: run(model, [(given, expected)], 1e-3, 1e-7) for name, model, given, expected in further_cases()
    }
    assert len(outcomes) >= LEAST
    assert not {name: reason for name, (outcome, reason) in outcomes.items() if outcome == WRONG}
    refused = {name: reason for name, (outcome, reason) in outcomes.items() if outcome == REFUSED}
    assert set(refused) <= NOT_KNOWN, refused
    assert all("is no tensor" in reason for reason in refused.values()), refused
