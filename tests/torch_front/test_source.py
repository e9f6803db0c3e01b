"""Inputs, outputs and reference values of a traced model."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from caffeforge.generated import hub
from caffeforge.runtime.errors import FrontEndError, UsageError
from caffeforge.runtime.torch_front import TorchSource, trace
from tests.torch_front.checking import Function, checked, ops, seeded, types

X, Y = seeded(2, 3), seeded(2, 3, seed=1)


class Difference(nn.Module):
    def forward(self, left: torch.Tensor, right: torch.Tensor) -> Any:
        return left - right


def inputs(source: TorchSource) -> list[str]:
    return [value.name for value in source.graph.inputs]


def outputs(source: TorchSource) -> list[str]:
    return [value.name for value in source.graph.outputs]


@pytest.mark.parametrize(
    "given",
    [(X, Y), [X, Y], {"left": X, "right": Y}, {"right": Y, "left": X}],
    ids=["tuple", "list", "dict", "other"],
)
def test_inputs_are_named_by_the_parameters_of_forward(given: Any) -> None:
    source = trace(Difference(), given)
    assert set(inputs(source)) == {"left", "right"}
    assert list(source.example) == inputs(source)
    np.testing.assert_array_equal(source.example["left"], X)
    np.testing.assert_array_equal(source.reference(source.example)["sub"], X - Y)
    np.testing.assert_array_equal([v.name for v in source.graph.nodes[0].inputs if v], ["left", "right"])


def test_inputs_by_place_keyword_and_number() -> None:
    class Many(nn.Module):
        def forward(self, *many: torch.Tensor, scale: torch.Tensor, shift: torch.Tensor) -> Any:
            return many[0] * scale + shift

    class One(nn.Module):
        def forward(self, first: torch.Tensor, **rest: torch.Tensor) -> Any:
            return first - rest["other"]

    assert inputs(trace(Function(lambda a, b: a - b), (X, Y))) == ["tensors_0", "tensors_1"]
    assert inputs(trace(One(), {"first": X, "other": Y})) == ["first", "other"]
    with pytest.raises(UsageError, match="scale"):
        trace(Many(), (X,))


def test_one_tensor_given_twice_is_two_inputs() -> None:
    source = trace(Difference(), (X, X))
    reference = source.reference({"left": X.numpy(), "right": Y.numpy()})
    np.testing.assert_array_equal(reference["sub"], X - Y)
    assert [value.name for value in source.graph.nodes[0].inputs if value] == ["left", "right"]


def test_views_of_one_tensor_are_inputs_without_common_memory() -> None:
    class Writing(nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> Any:
            a.add_(1)
            return a * b

    both = seeded(2, 3)
    before = both.clone()
    source = checked(Writing(), both[0], both[1])
    assert types(source.graph) == ["Add", "Mul"]
    assert torch.equal(both, before)


def test_input_that_nothing_reads_stays() -> None:
    source = trace(Function(lambda a, b: a + 1), (X, Y))
    assert inputs(source) == ["tensors_0", "tensors_1"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((X, object()), "example input 1 is a object"),
        ({"left": (X, {"a": object()})}, "example input 'left'.1.a is a object"),
        (np.zeros(3), "example input 0 is a ndarray"),
        ((1, 2), "hold no tensor"),
        (None, "hold no tensor"),
        ((X, X[:0]), "without elements"),
        ((X, X.to_sparse()), "no plain array"),
        ((X,), "does not fit the example inputs"),
        ({"middle": X}, "does not fit the example inputs"),
        ((X.to("meta"), Y), "meta device"),
    ],
)
def test_inputs_of_another_kind_are_refused(given: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        trace(Difference(), given)


def test_input_names_replace_those_of_forward() -> None:
    source = trace(Difference(), (X, Y), input_names=["data", "sub"])
    assert inputs(source) == list(source.example) == ["data", "sub"]
    assert outputs(source) == ["sub_1"]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["data"], "1 input_names are given, the model has 2 inputs"),
        (["data", "data"], "twice"),
        (["data", "da ta"], "no name"),
        (["data", ""], "no name"),
        ("ab", "one text"),
    ],
)
def test_input_names_that_do_not_fit_are_refused(names: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        trace(Difference(), (X, Y), input_names=names)


Pair = namedtuple("Pair", ["first", "second"])


@pytest.mark.parametrize(
    "nest",
    [
        lambda a, b: (a, b),
        lambda a, b: [a, [b]],
        lambda a, b: {"b": a, "a": b},
        lambda a, b: Pair(a, {"rest": b}),
        lambda a, b: (a, None, b),
    ],
)
def test_nested_outputs_are_flattened_in_order(nest: Any) -> None:
    source = trace(Function(lambda x: nest(x + 1, x * 2)), X)
    assert outputs(source) == ["add", "mul"]
    reference = source.reference(source.example)
    np.testing.assert_array_equal(reference["add"], X + 1)
    np.testing.assert_array_equal(reference["mul"], X * 2)


def test_output_names_rename_values() -> None:
    source = trace(Function(lambda x: (x + 1, x * 2)), X, output_names=["sum", "add"])
    assert outputs(source) == ["sum", "add"]
    assert [node.name for node in source.graph.nodes] == ["add", "mul"]
    reference = source.reference(source.example)
    np.testing.assert_array_equal(reference["sum"], X + 1)
    np.testing.assert_array_equal(reference["add"], X * 2)
    assert set(reference) == {"sum", "add"}


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a"], "1 output_names"),
        (["a", "a"], "twice"),
        (["a", "x y"], "no name"),
        (["a", "relu"], "another value"),
    ],
)
def test_output_names_that_do_not_fit_are_refused(names: Any, words: str) -> None:
    def model(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.relu(x)
        return y + 1, y * 2

    with pytest.raises(UsageError, match=words):
        trace(Function(model), X, output_names=names)


def test_output_that_is_an_input_is_an_identity() -> None:
    source = checked(lambda x: (x, x + 1), X)
    assert ops(source.graph) == [hub.Add(), hub.Identity()]
    assert outputs(source) == ["tensors_0.identity", "add"]
    named = trace(Function(lambda x: x.dropout() if False else x), X, output_names=["y"])
    assert outputs(named) == ["y"] and types(named.graph) == ["Identity"]


def test_output_given_twice_is_an_identity() -> None:
    def model(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x + 1
        return y, y

    assert outputs(checked(model, X)) == ["add", "add.identity"]
    source = trace(Function(model), X, output_names=["a", "b"])
    assert types(source.graph) == ["Add", "Identity"] and outputs(source) == ["a", "b"]
    np.testing.assert_array_equal(source.reference(source.example)["b"], X + 1)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda x: (x + 1, torch.ones(2) * 2), "output 1 of the model does not depend on its inputs"),
        (lambda x: (x + 1, 3), "output 1 of the model is always 3"),
        (lambda x: None, "returns no tensor"),
    ],
)
def test_output_that_is_no_result_is_refused(model: Any, words: str) -> None:
    with pytest.raises(FrontEndError, match=words):
        trace(Function(model), X)


def test_output_that_is_a_parameter_is_refused() -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(X.clone())

        def forward(self, x: torch.Tensor) -> Any:
            return x + self.weight, self.weight

    with pytest.raises(FrontEndError, match="output 1"):
        trace(Own(), X)


def test_reference_takes_other_inputs_than_the_example() -> None:
    source = trace(nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True)), X)
    one, other = source.reference({"input": X.numpy()}), source.reference({"input": Y.numpy()})
    assert list(one) == ["0", "1"]
    assert not np.array_equal(one["0"], other["0"])


def test_reference_leaves_its_inputs_and_the_example_alone() -> None:
    source = trace(nn.ReLU(inplace=True), X)
    given = X.numpy().copy()
    source.reference({"input": given})
    np.testing.assert_array_equal(given, X)
    np.testing.assert_array_equal(source.example["input"], X)


def test_reference_runs_the_user_s_module_for_the_outputs() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    source = trace(model, X)
    handle = model[1].register_forward_hook(lambda module, args, output: output + 1)
    changed = source.reference(source.example)["1"]
    handle.remove()
    np.testing.assert_array_equal(changed, source.reference(source.example)["1"] + 1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "inputs none are given"),
        ({"input": X.numpy(), "more": X.numpy()}, "the model takes input"),
        ({"data": X.numpy()}, "inputs data are given"),
        ({"input": np.zeros((2, 4), np.float32)}, r"float32\[2, 4\]"),
        ({"input": np.zeros((2, 3), np.float64)}, r"float64\[2, 3\]"),
    ],
)
def test_reference_refuses_inputs_that_do_not_fit(given: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        trace(nn.ReLU(), X).reference(given)


def test_graph_is_named_like_the_model() -> None:
    assert trace(Difference(), (X, Y)).graph.name == "Difference"


def test_dump_of_a_graph() -> None:
    class Small(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(2, 4, 3, padding=1, bias=False)
            self.pool = nn.MaxPool2d(3, 2, ceil_mode=True)
            self.fc = nn.Linear(16, 3, bias=False)

        def forward(self, x: torch.Tensor) -> Any:
            return self.fc(self.pool(self.conv(x).relu_()).flatten(1)) * 2

    assert trace(Small(), seeded(1, 2, 4, 4)).graph.dump() == DUMP


DUMP = """\
def Small(
    x: float32[1, 2, 4, 4],
    *,
    conv_weight: float32[4, 2, 3, 3],
    fc_weight: float32[3, 16],
    mul_B: float32[] = 2.0,
):
    conv = Conv(x, conv_weight, dilations=(1, 1), group=1, kernel_shape=(3, 3), pads=(1, 1, 1, 1), strides=(1, 1))  # conv: float32[1, 4, 4, 4]
    relu = Relu(conv)  # relu: float32[1, 4, 4, 4]
    pool = MaxPool(relu, dilations=(1, 1), kernel_shape=(3, 3), pads=(0, 0, 1, 1), strides=(2, 2))  # pool: float32[1, 4, 2, 2]
    flatten = Flatten(pool, axis=1)  # flatten: float32[1, 16]
    fc = Gemm(flatten, fc_weight, alpha=1.0, beta=1.0, transA=0, transB=1)  # fc: float32[1, 3]
    mul = Mul(fc, mul_B)  # mul: float32[1, 3]
    return mul
"""  # noqa: E501
