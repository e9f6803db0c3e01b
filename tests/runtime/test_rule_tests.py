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
  Elu:
    require:
      - {expr: alpha < 1, else: a small alpha, refused: "Elu(float32[2], alpha=2.0)"}
      - {expr: X.rank == 1, else: one axis, refused: "Elu(float32[2], alpha=0.5)"}
    layer: ELU
    fields: {alpha: alpha}
  Celu:
    any_of:
      - when: alpha == 1
        rewrite: Y = Elu(X, alpha=1.0)
      - when: alpha < 1
        rewrite: Y = Elu(X, alpha=alpha)
    example: Celu(float32[2], alpha=0.5)
    refused: ["Celu(float32[2], alpha=2.0)", "Celu(float32[2], alpha=0.25)"]
  Sin:
    require:
      - {expr: input.rank == 1, else: one axis}
    rewrite: output = Cos(Sub(1.5707964, input))
  vendory.Twice:
    layer: Power
    fields: {scale: 2.0}
    example: vendory.Twice(float32[2])
layers:
  Reduction:
    ignore: [operation]
    require:
      - {expr: axis == 1, else: the channels, refused: "Reduction(float32[2, 3])"}
      - {expr: coeff < 9, else: few, refused: "Reduction(float32[2, 3], axis=1, coeff=8)"}
    any_of:
      - when: coeff == 2
        rewrite: tops[0] = Concat(bottom, bottom, axis=1)
      - when: coeff == 3
        rewrite: tops[0] = Concat(bottom, Neg(bottom), axis=1)
    example:
      - Reduction(float32[2, 3], axis=1, coeff=2)
      - Reduction(float32[2, 3], axis=1, coeff=3)
      - Reduction(float32[2, 3], coeff=3)
    refused: Reduction(float32[2, 3], axis=1, coeff=5)
constraints:
  Power:
    - {expr: scale < 9, else: small scales, source: data sheet, refused: "Power(float32[2], scale=9)"}
    - {expr: shift < 9, else: small shifts, refused: "Power(float32[2], scale=9)"}
patterns:
  Softer:
    match: y = Log(Add(Exp(x), one))
    rewrite: y = Softplus(x)
    example: {x: "float32[2, 3]", one: 2.0}
  Sum-of-squares:
    match: y = Add(Mul(x, x), c)
    constant: [c]
    when: is_scalar(c)
    rewrite: y = Softplus(x)
    refused: [{x: "float32[2, 3]", c: "const(float32[3])"}, {x: "float32[2, 3]", c: 1.0}]
"""
# A mapping is tried as a whole once; the commands on some of its rules.
OWN = [
    "Abs",
    "Celu",
    "Elu",
    "HardSwish",
    "Neg",
    "Power",
    "Relu",
    "Softer",
    "Sum-of-squares",
    "Reduction",
    "vendory.Twice",
]


@pytest.fixture(scope="module")
def vendory(tmp_path_factory: pytest.TempPathFactory) -> Backend:
    """A backend with rules that are right and rules that are wrong."""
    return build(tmp_path_factory.mktemp("vendory"), MAPPING)


def folder(backend: Backend) -> str:
    return str(Path(str(sys.modules[backend.descriptor.__module__].__file__)).parent)


@pytest.fixture(scope="module")
def observer(vendory: Backend) -> Observer:
    return Observer(vendory)


@pytest.fixture(scope="module")
def trials(observer: Observer) -> list[Trial]:
    return run_examples(observer.backend, OWN)


def of(trials: list[Trial], *, refused: bool) -> list[tuple[str, Outcome]]:
    return [(t.example.subject, t.outcome) for t in trials if (t.example.refused is not None) == refused]


def test_tells_right_rules_from_wrong_ones(trials: list[Trial]) -> None:
    expected: list[tuple[str, Outcome]] = [
        ("Abs", "passed"),
        ("Celu", "failed"),
        ("HardSwish", "failed"),
        ("HardSwish", "passed"),
        ("Neg", "failed"),
        ("Power", "passed"),
        ("Power", "passed"),
        ("Reduction", "failed"),
        ("Reduction", "failed"),
        ("Reduction", "passed"),
        ("Relu", "failed"),
        ("Softer", "failed"),
        ("vendory.Twice", "passed"),
    ]
    assert sorted(of(trials, refused=False)) == expected


def test_tells_refusals_by_the_condition_that_says_so_from_others(trials: list[Trial]) -> None:
    expected: list[tuple[str, Outcome]] = [
        ("Celu", "failed"),
        ("Celu", "passed"),
        ("Elu", "passed"),
        ("Elu", "failed"),
        ("Power", "passed"),
        ("Power", "failed"),
        ("Sum-of-squares", "passed"),
        ("Sum-of-squares", "failed"),
        ("Reduction", "passed"),
        ("Reduction", "failed"),
        ("Reduction", "passed"),
    ]
    found = of(trials, refused=True)
    assert sorted(found) == sorted(expected)


def test_says_what_is_wrong_with_a_rule(trials: list[Trial]) -> None:
    why = {t.example.subject: t.why for t in trials if t.example.refused is None and t.why}
    assert "6 of 6 elements differ" in why["Neg"]
    assert "four axes" in why["Relu"]
    assert "a lowering that all backends share" in why["HardSwish"]
    assert "elements differ" in why["Softer"]
    assert "the channels" in why["Reduction"]


def test_says_what_is_wrong_with_a_refusal(trials: list[Trial]) -> None:
    why = {t.example.subject: t.why for t in trials if t.example.refused is not None and t.why}
    assert why["Celu"].startswith("an alternative takes it  [vendor/mapping.yaml:")
    assert re.fullmatch(r"the condition at vendor/mapping.yaml:\d+ does not refuse it", why["Elu"])
    assert re.fullmatch(
        r"another refuses it: .* no alternative holds \[vendor/mapping.yaml:\d+\]", why["Reduction"]
    )
    assert why["Power"].startswith("another refuses it: small scales (source: data sheet)  [vendor/mapping.")
    assert why["Sum-of-squares"] == "the pattern joins it"


def test_prints_failures_and_exits_with_1(vendory: Backend, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["test", folder(vendory), "Abs", "Neg"]) == 1
    printed = capsys.readouterr()
    assert printed.out.startswith("vendory, 2 examples of rules: 1 are as they should be, 1 failed\n\n")
    assert "\nfailed: Neg  [vendor/mapping.yaml:12]\n" in printed.out
    assert "passed" not in printed.out
    assert printed.err == "error: 1 of 2 examples of vendory failed\n"


def test_prints_json(vendory: Backend, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["test", folder(vendory), "Neg", "Reduction", "--json", "--conditions"]) == 1
    found = json.loads(capsys.readouterr().out)
    outcomes = {outcome: found[outcome] for outcome in ("passed", "read", "refused", "failed")}
    assert outcomes == {"passed": 3, "read": 0, "refused": 0, "failed": 4}
    assert [e["subject"] for e in found["examples"]] == ["Neg", *["Reduction"] * 6]
    assert {c["subject"] for c in found["conditions"]} == {"Reduction"}


def test_names_what_is_near_to_an_unknown_rule(vendory: Backend, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["test", folder(vendory), "Reductions"]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("error: vendory has no rule for Reductions\n  hint: did you mean Reduction, ")


def test_tells_which_conditions_were_true_and_which_false(observer: Observer, trials: list[Trial]) -> None:
    assert trials
    found = {
        (s.subject, s.condition.expression): (s.true, s.false)
        for s in observer.found()
        if s.condition.rule.startswith("vendor/")
    }
    assert found == {
        ("HardSwish", "X.rank == 4"): (True, True),
        ("Relu", "X.rank == 4"): (False, True),
        ("Elu", "alpha < 1"): (True, True),
        ("Elu", "X.rank == 1"): (True, False),
        ("Celu", "alpha == 1"): (False, True),
        ("Celu", "alpha < 1"): (True, True),
        ("Sin", "input.rank == 1"): (False, False),
        ("Reduction", "axis == 1"): (True, True),
        ("Reduction", "coeff < 9"): (True, False),
        ("Reduction", "coeff == 2"): (True, True),
        ("Reduction", "coeff == 3"): (True, True),
        ("Power", "scale < 9"): (True, True),
        ("Power", "shift < 9"): (True, False),
        ("Sum-of-squares", "is_scalar(c)"): (True, True),
    }
    untaken = {u.subject for u in observer.untaken(trials) if u.rule.startswith("vendor/")}
    assert untaken == {"Celu", "Relu", "Sin"}


def test_prints_conditions(vendory: Backend, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["test", folder(vendory), "Relu", "Reduction", "--conditions"]) == 1
    printed = capsys.readouterr().out.partition("3 of 5 conditions were seen both true and false")[2]
    assert "  never true: Relu  X.rank == 4  [vendor/mapping.yaml:" in printed
    assert "  never false: Reduction  coeff < 9  [vendor/mapping.yaml:" in printed
    assert "  never taken: Relu  [vendor/mapping.yaml:" in printed


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
    assert list(without["patterns"]) == ["Sum-of-squares"]
    assert cli.main(["coverage", folder(vendory), "--rules"]) == 0
    assert f"    Sin  {without['ops']['Sin']}\n" in capsys.readouterr().out
