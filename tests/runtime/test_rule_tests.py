"""``caffeforge test`` finds the rules that write or read another op than they say, and only these."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from caffeforge.runtime import cli, coverage
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.rule_conditions import Observer
from caffeforge.runtime.rule_tests import Outcome, Trial, run_examples
from tests import checkout
from tests.docs.backends import build

PROTO = checkout.ROOT / "schemas" / "bvlc" / "caffe.proto"
MAPPING = """\
backend: vendory
extends: bvlc
custom:
  vendory.Twice:
    inputs: [X]
    shape: X.shape
    reference: Y = Mul(X, 2.0)
ops:
  Abs:
    layer: AbsVal
    example: Abs(float32[2, 3])
  Neg:
    layer: Power
    fields: {scale: -2.0}
    example: Neg(float32[2, 3])
  HardSwish:
    require:
      - {expr: X.rank == 4, else: four axes}
    rewrite: Y = Mul(X, HardSigmoid(X, alpha=0.16666667, beta=0.5))
    example: ["HardSwish(float32[2])", "HardSwish(float32[2, 3, 4, 5])"]
  Relu:
    require:
      - {expr: X.rank == 4, else: four axes}
    layer: ReLU
    example: Relu(float32[2])
  Sin:
    require:
      - {expr: input.rank == 1, else: one axis}
    rewrite: output = Cos(Sub(1.5707964, input))
  vendory.Twice:
    layer: Power
    fields: {scale: 2.0}
    example: vendory.Twice(float32[2])
constraints:
  Power:
    - {expr: scale < 9, else: small scales, source: data sheet}
patterns:
  Softer:
    match: y = Log(Add(Exp(x), one))
    rewrite: y = Softplus(x)
    example: {x: "float32[2, 3]", one: 2.0}
"""


@pytest.fixture(scope="module")
def vendory(tmp_path_factory: pytest.TempPathFactory) -> Backend:
    """A backend with rules that are right and rules that are wrong."""
    return build(tmp_path_factory.mktemp("vendory"), MAPPING)


def folder(backend: Backend) -> str:
    return str(Path(str(sys.modules[backend.descriptor.__module__].__file__)).parent)


def own(tested: Trial) -> bool:
    return tested.example.rule.startswith("vendor/")


def test_tells_right_rules_from_wrong_ones(vendory: Backend) -> None:
    found = [(t.example.subject, t.outcome) for t in run_examples(vendory) if own(t)]
    expected: list[tuple[str, Outcome]] = [
        ("Abs", "passed"),
        ("HardSwish", "failed"),
        ("HardSwish", "passed"),
        ("Neg", "failed"),
        ("Relu", "failed"),
        ("Softer", "failed"),
        ("vendory.Twice", "passed"),
    ]
    assert sorted(found, key=lambda entry: entry[0]) == expected


def test_says_what_is_wrong_with_a_rule(vendory: Backend) -> None:
    why = {t.example.subject: t.why for t in run_examples(vendory) if own(t) and t.outcome == "failed"}
    assert "6 of 6 elements differ" in why["Neg"]
    assert "four axes" in why["Relu"]
    assert "a lowering that all backends share" in why["HardSwish"]
    assert "elements differ" in why["Softer"]


def test_prints_failures_and_exits_with_1(vendory: Backend, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["test", folder(vendory)]) == 1
    printed = capsys.readouterr()
    assert re.match(r"vendory, \d+ examples of rules: \d+ compute what their ops compute, ", printed.out)
    assert "failed: Neg  [vendor/mapping.yaml:12]" in printed.out
    assert "passed" not in printed.out
    assert re.fullmatch(r"error: \d+ of \d+ examples of vendory failed\n", printed.err)


def test_prints_json(vendory: Backend, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["test", folder(vendory), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["passed"] + found["refused"] + found["failed"] == len(found["examples"])
    assert {e["outcome"] for e in found["examples"] if e["subject"] == "Neg"} == {"failed"}


def test_tells_which_conditions_were_true_and_which_false(
    vendory: Backend, capsys: pytest.CaptureFixture[str]
) -> None:
    observer = Observer(vendory)
    run_examples(observer.backend)
    found = {s.subject: s for s in observer.found() if s.condition.rule.startswith("vendor/")}
    assert (found["HardSwish"].true, found["HardSwish"].false) == (True, True)
    assert (found["Relu"].true, found["Relu"].false) == (False, True)
    assert (found["Sin"].true, found["Sin"].false) == (False, False)
    assert (found["Power"].true, found["Power"].false) == (True, False)
    assert cli.main(["test", folder(vendory), "--conditions"]) == 1
    printed = capsys.readouterr().out
    assert "  never true: Relu  X.rank == 4  [vendor/mapping.yaml:" in printed
    assert "  never asked: Sin  input.rank == 1  [vendor/mapping.yaml:" in printed
    assert "  never false: Power  scale < 9  [vendor/mapping.yaml:" in printed
    assert "HardSwish  X.rank" not in printed.partition("conditions were seen")[2]


def test_a_backend_without_examples_is_not_taken_for_tested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = build(tmp_path, "backend: bare\n", PROTO.read_text())
    assert cli.main(["test", folder(bare)]) == 2
    assert "no rule of bare has an example" in capsys.readouterr().err


def test_lists_what_no_example_tests(vendory: Backend, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["coverage", folder(vendory), "--rules", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    without, covered = found["without_example"], coverage.of(vendory)
    assert set(covered.ops) - set(without["ops"]) >= {"Abs", "HardSwish", "Neg", "Relu", "vendory.Twice"}
    assert without["ops"]["Sin"].startswith("vendor/mapping.yaml:")
    assert set(covered.layers) - set(without["layers"]) >= {"AbsVal", "Power", "ReLU"}
    assert without["patterns"] == {}
    assert cli.main(["coverage", folder(vendory), "--rules"]) == 0
    assert f"    Sin  {without['ops']['Sin']}\n" in capsys.readouterr().out
