"""Reshapes, transposes, slices, splits, concatenations, and operators that become nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from caffeforge.generated import hub
from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.op import Op
from caffeforge.runtime.torch_front import trace
from tests.torch_front.checking import Function, checked, only_op, ops, seeded, types

X = seeded(2, 3, 4, 5)


@pytest.mark.parametrize(
    ("function", "op"),
    [
        (nn.Flatten(), hub.Flatten(axis=1)),
        (lambda x: x.flatten(1, -1), hub.Flatten(axis=1)),
        (lambda x: x.flatten(2), hub.Reshape(shape=(0, 0, 20))),
        (lambda x: x.flatten(), hub.Reshape(shape=(120,))),
        (lambda x: x.view(x.size(0), -1), hub.Reshape(shape=(0, 60))),
        (lambda x: x.view(-1, 60), hub.Reshape(shape=(0, 60))),
        (lambda x: x.reshape(2, 3, 20), hub.Reshape(shape=(0, 0, 20))),
        (lambda x: x.reshape(6, 20), hub.Reshape(shape=(6, 20))),
        (lambda x: x.unflatten(2, (2, -1)), hub.Reshape(shape=(0, 0, 2, 2, 5))),
        (lambda x: x.unsqueeze(1), hub.Reshape(shape=(0, 1, 3, 4, 5))),
        (lambda x: x.unsqueeze(-1), hub.Reshape(shape=(0, 0, 0, 0, 1))),
        (lambda x: x.permute(0, 2, -1, 1), hub.Transpose(perm=(0, 2, 3, 1))),
        (lambda x: x.transpose(1, -1), hub.Transpose(perm=(0, 3, 2, 1))),
        (lambda x: x[:, 1:], hub.Slice(starts=(1,), ends=(3,), axes=(1,), steps=(1,))),
        (lambda x: x[:, :, -2:], hub.Slice(starts=(2,), ends=(4,), axes=(2,), steps=(1,))),
        (lambda x: x[..., 1:-1:2], hub.Slice(starts=(1,), ends=(4,), axes=(3,), steps=(2,))),
        (lambda x: torch.cat([x, x], -3), hub.Concat(axis=1)),
        (lambda x: torch.cat([x, torch.zeros(0), x], 3), hub.Concat(axis=3)),
    ],
)
def test_function_becomes_one_op(function: Any, op: Op) -> None:
    assert only_op(function, X) == op


def test_unsqueeze_of_the_batch_copies_no_dimension() -> None:
    # The leading one is new: copying "the first dimension" would be wrong for another batch.
    assert only_op(lambda x: x.unsqueeze(0), seeded(1, 3)) == hub.Reshape(shape=(1, 1, 3))


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: x.squeeze(), (2, 3)),
        (lambda x: x.squeeze(1), (0, 3, 1)),
        (lambda x: x.squeeze((1, 3)), (0, 3)),
        (lambda x: x.squeeze(-1), (0, 0, 0)),
    ],
)
def test_squeeze_is_a_reshape(function: Any, shape: tuple[int, ...]) -> None:
    assert only_op(function, seeded(2, 1, 3, 1)) == hub.Reshape(shape=shape if shape[0] == 0 else (0, 3))


def test_transposed_matrix() -> None:
    assert only_op(torch.t, seeded(2, 3)) == hub.Transpose(perm=(1, 0))


@pytest.mark.parametrize(
    "function",
    [
        nn.Dropout(),
        nn.Dropout2d(),
        nn.AlphaDropout(),
        nn.Identity(),
        nn.Flatten(start_dim=3),
        lambda x: x.contiguous(),
        lambda x: x.clone(),
        lambda x: x.detach(),
        lambda x: x.float(),
        lambda x: x.to(torch.float32),
        lambda x: x.to("cpu"),
        lambda x: x.type_as(x),
        lambda x: x.view(2, 3, 4, 5),
        lambda x: x[:, :100],
        lambda x: x[:],
        lambda x: x.squeeze(1),
        lambda x: x.permute(0, 1, 2, 3),
        lambda x: torch.cat([x], 1),
        lambda x: x.chunk(1)[0],
    ],
)
def test_function_becomes_nothing(function: Any) -> None:
    graph = checked(
        nn.Sequential(function if isinstance(function, nn.Module) else Function(function), nn.ReLU()), X
    ).graph
    assert ops(graph) == [hub.Relu()]


@pytest.mark.parametrize(
    ("function", "op"),
    [
        (lambda x: torch.chunk(x, 2, -1), hub.Split(axis=3, split=(3, 2))),
        (lambda x: torch.split(x, 2, 1), hub.Split(axis=1, split=(2, 1))),
        (lambda x: torch.split(x, [1, 3], 2), hub.Split(axis=2, split=(1, 3))),
    ],
)
def test_split_knows_its_sizes(function: Any, op: Op) -> None:
    graph = checked(lambda x: [piece + 1 for piece in function(x)], X).graph
    assert graph.nodes[0].op == op
    assert [value.name for value in graph.nodes[0].outputs] == [
        f"{graph.nodes[0].name}.{i}" for i in range(2)
    ]


def test_a_piece_that_nobody_reads_is_still_a_result() -> None:
    graph = checked(lambda x: x.chunk(2, 1)[1] + 1, X).graph
    assert types(graph) == ["Split", "Add"]
    assert len(graph.nodes[0].outputs) == 2


def test_conversion_is_a_cast() -> None:
    assert only_op(lambda x: x.double(), X) == hub.Cast(to=11)


def test_dropout_that_is_always_on_is_refused() -> None:
    with pytest.raises(FrontEndError, match="drops elements at random"):
        trace(Function(lambda x: nn.functional.dropout(x)), X)


def test_concatenation_of_mixed_types_converts() -> None:
    graph = checked(lambda x, y: torch.cat([x, y]), seeded(3), torch.arange(3)).graph
    assert types(graph) == ["Cast", "Concat"]
