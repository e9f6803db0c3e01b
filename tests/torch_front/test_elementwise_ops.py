"""Activations and arithmetic: fields, scalars, broadcasting, element types."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from caffeforge.generated import hub
from caffeforge.runtime.array import Full
from caffeforge.runtime.op import Op
from tests.torch_front.checking import checked, only_op, seeded, types

X = seeded(2, 3, 4, 5) * 5


@pytest.mark.parametrize(
    ("function", "op"),
    [
        (F.relu, hub.Relu()),
        (nn.ReLU(inplace=True), hub.Relu()),
        (nn.LeakyReLU(0.2), hub.LeakyRelu(alpha=0.2)),
        (nn.LeakyReLU(0.2, inplace=True), hub.LeakyRelu(alpha=0.2)),
        (torch.sigmoid, hub.Sigmoid()),
        (torch.tanh, hub.Tanh()),
        (nn.ReLU6(), hub.Clip(min=0.0, max=6.0)),
        (F.relu6, hub.Clip(min=0.0, max=6.0)),
        (nn.Hardtanh(-2, 3, inplace=True), hub.Clip(min=-2.0, max=3.0)),
        (lambda x: x.clamp(min=-1), hub.Clip(min=-1.0)),
        (lambda x: x.clamp(max=0.5), hub.Clip(max=0.5)),
        (lambda x: x.clamp(-1, 2), hub.Clip(min=-1.0, max=2.0)),
        (lambda x: x.clamp_min(0.25), hub.Clip(min=0.25)),
        (lambda x: x.clamp_max(0.25), hub.Clip(max=0.25)),
        (nn.Softmax(dim=-1), hub.Softmax(axis=3)),
        (lambda x: torch.softmax(x, 1), hub.Softmax(axis=1)),
    ],
)
def test_function_of_one_tensor(function: Any, op: Op) -> None:
    assert only_op(function, X) == op


@pytest.mark.parametrize(
    ("function", "op"),
    [
        (torch.add, hub.Add()),
        (torch.sub, hub.Sub()),
        (torch.mul, hub.Mul()),
        (torch.div, hub.Div()),
        (torch.maximum, hub.Max()),
        (torch.minimum, hub.Min()),
        (torch.rsub, hub.Sub()),
        (lambda x, y: x.add_(y), hub.Add()),
    ],
)
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (3, 1, 1)])
def test_function_of_two_tensors_broadcasts(function: Any, op: Op, shape: tuple[int, ...]) -> None:
    assert only_op(function, X, seeded(*shape, seed=1)) == op


@pytest.mark.parametrize(
    ("function", "number", "place"),
    [
        (lambda x: x + 2, 2, 1),
        (lambda x: 0.5 + x, 0.5, 1),
        (lambda x: x - 2, 2, 1),
        (lambda x: 2 - x, 2, 0),
        (lambda x: x * 3, 3, 1),
        (lambda x: x / 4, 4, 1),
    ],
)
def test_number_becomes_a_scalar_constant(function: Any, number: float, place: int) -> None:
    (node,) = checked(function, X).graph.nodes
    scalar = node.inputs[place]
    assert scalar and isinstance(scalar.data, Full)
    assert (scalar.dims, scalar.dtype, scalar.data.value) == ((), "float32", number)


@pytest.mark.parametrize("function", [torch.add, torch.sub, torch.rsub])
def test_alpha_is_a_multiplication(function: Any) -> None:
    graph = checked(lambda x, y: function(x, y, alpha=2), X, seeded(3, 1, 1)).graph
    assert types(graph)[0] == "Mul" and len(graph.nodes) == 2


def test_numbers_take_the_tensor_s_type() -> None:
    graph = checked(lambda x: (x + 2) * 3, torch.arange(6).reshape(2, 3)).graph
    assert {value.dtype for value in graph.values()} == {"int64"}


@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: x + i,
        lambda x, i: i + 1.5,
        lambda x, i: i / 2,
        lambda x, i: x * (i > 0),
        lambda x, i: i + i.int(),
        lambda x, i: (i > 2) + (i < 1),
        lambda x, i: (i > 2) * (i < 4),
        lambda x, i: (i > 2) + 1,
        lambda x, i: (i > 2) * 1.5,
        lambda x, i: torch.sigmoid(i),
        lambda x, i: x.softmax(1, dtype=torch.float64),
        lambda x, i: torch.maximum(x, i.double()),
        lambda x, i: x * torch.arange(5, dtype=torch.float16),
    ],
)
def test_operands_are_converted_as_pytorch_does(function: Any) -> None:
    checked(function, X, torch.arange(5))


def test_constant_is_converted_when_traced() -> None:
    graph = checked(lambda x: x * torch.arange(5), X).graph
    assert types(graph) == ["Mul"]
