"""Runs every rule's example: what a rule writes computes what the op or the matched nodes compute.

That proves a rule consistent with the hub, not with a real Caffe: tests/e2e does the latter.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest

from caffeforge.runtime import backends
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.coverage import without_example
from caffeforge.runtime.rule_conditions import Observer
from caffeforge.runtime.rule_tests import Trial, run_examples

NO_EVALUATOR = (
    "onnxruntime takes odd windows on four axes, and onnx's evaluator mistakes the batch for the channels; "
    "tests/e2e/test_bvlc_ops_windows.py has them in real Caffe, against NumPy"
)
# Conditions that no example can make both true and false, and why.
UNSEEN = {
    ("LRN", "X.rank == 4 and size % 2 == 1"): NO_EVALUATOR,
    ("LRN", "X.rank != 4"): NO_EVALUATOR,
    ("LRN", "X.rank == 4 and size % 2 == 0"): NO_EVALUATOR,
    (
        "Pooling",
        'not has(round_mode) or not has(ceil_mode) or (round_mode == "FLOOR") != ceil_mode',
    ): "no shipped proto has both fields",
}
# Alternatives that no example takes, how many of an op.
UNTAKEN = {
    "bvlc": {
        "Gather": 2,  # where an axis is cut into more than 256 pieces, or a chip does not take so many tops
        "LRN": 2,  # see above
    },
    # Also those for which this Caffe has a better one.
    "bvlc_master": {"AveragePool": 1, "Clip": 1, "Gather": 2, "HardSigmoid": 1, "LRN": 2, "MaxPool": 2},
}
ONLY_IN_CAFFE = "caffe."  # ops that no program but a Caffe computes; tests/e2e has them there


@dataclass(frozen=True)
class Run:
    """What the examples of one backend showed."""

    backend: Backend
    observer: Observer
    trials: list[Trial]


@pytest.fixture(scope="module", params=sorted(UNTAKEN))
def run(request: pytest.FixtureRequest) -> Run:
    backend = backends.find(request.param)
    observer = Observer(backend)
    return Run(backend, observer, run_examples(observer.backend))


def test_each_example_is_written_read_and_computed_as_it_should_be(run: Run) -> None:
    wrong = [t for t in run.trials if t.outcome not in ("passed", "read")]
    assert not wrong, "\n".join(f"{t.example.subject} {t.example.text}: {t.outcome}: {t.why}" for t in wrong)
    assert len(run.trials) > 300


def test_only_what_no_rule_writes_is_not_written_back(run: Run) -> None:
    assert {t.example.subject for t in run.trials if t.outcome == "read"} == {
        "BatchReindex",
        "Embed",
    }


def test_examples_make_each_condition_true_and_false(run: Run) -> None:
    """Give a rule an ``example:`` or ``refused:`` for each that is missing, or a reason in UNSEEN."""
    unseen = [s for s in run.observer.found() if not (s.true and s.false)]
    found = {(s.subject, s.condition.expression) for s in unseen}
    assert {pair for pair in found if not pair[0].startswith(ONLY_IN_CAFFE)} <= set(UNSEEN)


def test_examples_take_each_alternative(run: Run) -> None:
    """Give a rule an ``example:`` for each that is missing, or a reason in UNTAKEN."""
    untaken = [one.subject for one in run.observer.untaken(run.trials)]
    assert Counter(op for op in untaken if not op.startswith(ONLY_IN_CAFFE)) == UNTAKEN[run.backend.name]


def test_every_rule_has_an_example(run: Run) -> None:
    untested = without_example(run.backend)
    assert [op for op in untested.ops if not op.startswith(ONLY_IN_CAFFE)] == []
    assert (untested.layers, untested.patterns) == ({}, {})
