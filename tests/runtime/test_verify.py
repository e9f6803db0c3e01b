"""Verifications: rows in order, the first divergence, doubts, merging, and their texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from caffeforge.runtime.compare import Tolerance
from caffeforge.runtime.errors import UsageError, VerificationError
from caffeforge.runtime.graph import Origin
from caffeforge.runtime.verify import Verification, merge, verify

Arrays = dict[str, npt.NDArray[Any]]

LAYERS = [
    ("a", "conv1", "Convolution", Origin("stem.conv1", source="model.py:12")),
    ("b", "relu1", "ReLU", Origin("stem.relu1", source="model.py:13")),
    ("inner", "scale1", "Scale", Origin()),
    ("y", "fc", "InnerProduct", Origin("head")),
]


def values(seed: int = 0) -> Arrays:
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal((1, 6)).astype(np.float32) for name in ("a", "b", "y")}


def check(reference: Arrays, result: Arrays, **options: Any) -> Verification:
    return verify(reference, result, LAYERS, ["y"], **options)


def test_equal_values_pass_and_prove_it() -> None:
    verification = check(values(), values())
    assert verification.passed and verification.conclusive and verification.first_divergence is None
    assert [row.layer for row in verification.rows] == ["conv1", "relu1", "scale1", "fc"]
    assert [row.layer for row in verification.outputs] == ["fc"]
    assert verification.summary().startswith("1 output and 3 layers agree on 1 input, the worst is ")


def test_the_first_divergence_is_named_with_module_and_line() -> None:
    result = values()
    result["b"] = result["b"] + 1
    result["y"] = result["y"] * 2
    verification = check(values(), result)
    assert not verification.passed
    assert verification.first_divergence is verification.rows[1]
    summary = verification.summary()
    assert summary.startswith("relu1 (ReLU) from module stem.relu1 (model.py:13) is the first that diverges")
    assert summary.endswith("output y is wrong")


def test_a_wrong_layer_fails_even_if_the_outputs_agree() -> None:
    result = values()
    result["a"] = result["a"] + 1
    verification = check(values(), result)
    assert not verification.passed and verification.outputs[0].passed
    assert verification.summary().endswith("the outputs agree all the same")


def test_a_wrong_output_fails_without_layers() -> None:
    verification = verify({"y": np.arange(3.0)}, {"y": np.arange(3.0) + 1}, [], ["y"])
    assert verification.first_divergence is verification.outputs[0]


def test_values_on_one_side_only_are_listed_but_not_counted() -> None:
    row = check(values(), values()).rows[2]
    assert row.difference is None and row.passed and not row.problem
    assert "not compared" in check(values(), values()).table()


def test_another_shape_is_a_failure() -> None:
    result = values()
    result["a"] = result["a"].reshape(2, 3)
    row = check(values(), result).first_divergence
    assert row is not None and row.layer == "conv1"
    assert row.problem == "shape [2, 3] instead of [1, 6]" and row.relative == np.inf


def test_an_output_must_exist_on_both_sides() -> None:
    missing = {name: array for name, array in values().items() if name != "y"}
    with pytest.raises(VerificationError, match="the result has no output y, it has a, b"):
        check(values(), missing)
    with pytest.raises(VerificationError, match="the source has no output y"):
        check(missing, values())


def test_a_constant_output_passes_but_proves_little() -> None:
    constant = {**values(), "y": np.full((1, 6), 0.5, np.float32)}
    verification = check(constant, constant)
    assert verification.passed and not verification.conclusive
    assert verification.summary().endswith("proves little, as output y is the same at every position")
    assert "is the same at every position" in verification.table()


def test_without_outputs_nothing_is_proved() -> None:
    verification = verify(values(), values(), LAYERS, [])
    assert verification.passed and not verification.conclusive
    assert verify({}, {}, LAYERS, []).summary() == "nothing was compared"


def test_a_tolerance_may_be_given() -> None:
    result = {name: array * np.float32(1.01) for name, array in values().items()}
    assert not check(values(), result).passed
    assert check(values(), result, accepted=Tolerance(0.02)).passed


def test_merging_keeps_the_worst_of_each_row() -> None:
    off = values(1)
    off["a"] = off["a"] + np.float32(1e-6)
    off["y"] = off["y"] + 1
    good, bad = check(values(0), values(0)), check(values(1), off)
    for order in ([good, bad], [bad, good]):
        merged = merge(order)
        assert merged.inputs == 2 and not merged.passed
        for index in (0, 3):
            assert merged.rows[index].difference == bad.rows[index].difference
        assert merged.first_divergence is not None and merged.first_divergence.layer == "fc"


def test_a_failure_outranks_a_larger_error_that_passed() -> None:
    loose = check(values(0), {k: v * np.float32(1.01) for k, v in values(0).items()}, accepted=Tolerance(1))
    strict = check(values(1), {k: v * np.float32(1.001) for k, v in values(1).items()})
    assert not merge([loose, strict]).passed


def test_an_output_that_ignores_the_input_is_in_doubt() -> None:
    first, second = values(0), values(1)
    assert merge([check(first, first), check(second, second)]).conclusive
    second["y"] = first["y"]
    merged = merge([check(first, first), check(second, second)])
    assert merged.passed and not merged.conclusive
    assert "output y is the same for every input" in merged.summary()


def test_an_output_that_varies_for_one_input_is_not_in_doubt() -> None:
    flat = {**values(0), "y": np.zeros((1, 6), np.float32)}
    assert merge([check(flat, flat), check(values(1), values(1))]).conclusive


def test_only_verifications_of_one_net_merge() -> None:
    with pytest.raises(UsageError, match="different nets"):
        merge([check(values(), values()), verify(values(), values(), LAYERS[:1], ["y"])])
    with pytest.raises(UsageError, match="no verification"):
        merge([])


def test_the_table_is_aligned_and_marks_what_differs() -> None:
    result = values()
    result["b"] = result["b"] + 1
    lines = check(values(), result).table().splitlines()
    head = lines[0]
    names = ["layer", "type", "module", "source"]
    assert head.split() == [*names, "max", "abs", "max", "rel", "cosine", "SNR", "dB"]
    assert [line.split()[0] for line in lines[1:]] == ["conv1", "relu1", "scale1", "fc", "output", "fc"]
    for line in lines[1:5]:
        assert line[head.index("type") - 1] == line[head.index("module") - 1] == " "
    assert [("<< differs" in line) for line in lines[1:5]] == [False, True, False, False]


def test_the_table_says_which_line_of_the_users_code_a_layer_comes_from() -> None:
    origin = Origin("head", source="/home/someone/project/net.py:37")
    row = verify(values(), values(), [("y", "fc", "InnerProduct", origin)], ["y"]).table().splitlines()[1]
    assert row.split()[:4] == ["fc", "InnerProduct", "head", "net.py:37"]
