"""Operators without a handler, operators that are folded, and parts of programs in a mode of PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.torch_front import trace
from caffeforge.runtime.torch_front.registry import HANDLERS
from tests.torch_front.checking import Function, checked, seeded, types

aten = torch.ops.aten
X = seeded(2, 6)


# Decomposition


def test_operator_without_handler_is_decomposed_and_keeps_its_place() -> None:
    assert aten.logit.default not in HANDLERS

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate = Function(torch.logit)

        def forward(self, x: torch.Tensor) -> Any:
            return self.gate(x.sigmoid()) + 1

    graph = checked(Net(), X).graph
    inner = [node for node in graph.nodes if node.origin.module == "gate"]
    assert {node.origin.op.partition(" ")[2] for node in inner} == {"(of aten.logit.default)"}
    assert all(node.name.startswith("gate.") and "checking.py:" in node.origin.source for node in inner)


def test_operators_within_a_decomposition_stay_whole() -> None:
    assert aten.lstm_cell.default not in HANDLERS
    graph = checked(nn.LSTMCell(6, 3), X).graph
    assert {"Gemm", "Sigmoid", "Tanh", "Split"} <= set(types(graph))
    assert "MatMul" not in types(graph)


def test_operator_with_several_results_is_decomposed() -> None:
    assert aten.std_mean.correction not in HANDLERS
    checked(lambda x: torch.std_mean(x, 1), X)


def test_rule_that_leads_back_to_its_operator_is_none() -> None:
    with pytest.raises(FrontEndError, match=r"aten\.i0\.default \(of aten\.special_i0\.default\), 1 time"):
        trace(Function(torch.special.i0).eval(), X)


# Folding


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + torch.arange(6),
        lambda x: x + torch.zeros_like(x) + torch.full_like(x, 2.0),
        lambda x: x * x.new_ones(6),
        lambda x: x + torch.linspace(0, 1, 6).roll(1).flip(0),
        lambda x: x + torch.eye(6)[1],
        lambda x: x + x.new_zeros(2, 6).fill_(3.0),
        lambda x: torch.cat([x, x[:, :0]], 1) * 2,
    ],
)
def test_what_reads_no_element_is_computed_when_traced(function: Any) -> None:
    assert set(types(checked(function, X).graph)) <= {"Add", "Mul"}


def test_equal_computations_of_constants_share_one_tensor() -> None:
    def table() -> torch.Tensor:
        return (torch.arange(600).reshape(100, 6) * 0.5).sin()

    graph = checked(lambda x: (x @ table().T) + (x * 2) @ table().T, X).graph
    large = [value for value in graph.constants() if len(value.dims) == 2]
    assert len(large) == 1


def test_view_of_a_constant_written_in_forward_is_no_note() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        mask = x.new_zeros(2, 6)
        mask[:, 2:4] = 1.0
        return x * mask

    source = checked(function, X)
    assert types(source.graph) == ["Mul"]
    assert source.notes == []


# Modes


class Moded(nn.Module):
    """Has parts without gradients and with autocast switched off, as rotary embeddings do."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> Any:
        y = self.layer(x)
        with torch.no_grad():
            z = y * 2
            z.add_(1)
            with torch.autocast("cpu", enabled=False):
                w = z.float() @ z.t()
        return y + z, w


@pytest.mark.parametrize("strict", [False, True])
def test_parts_in_a_mode_are_plain_parts(strict: bool) -> None:
    program = torch.export.export(Moded().eval(), (X,), strict=strict)
    assert any("wrap_with_set_grad_enabled" in str(node.target) for node in program.graph.nodes)
    graph = trace(program).graph
    assert types(graph) == ["Gemm", "Mul", "Add", "Transpose", "MatMul", "Add"]
    checked(Moded(), X)


def test_part_in_autocast_is_refused() -> None:
    class Cast(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.autocast("cpu", torch.bfloat16):
                return F.linear(x, x)

    program = torch.export.export(Cast().eval(), (X,))
    with pytest.raises(FrontEndError, match=r"autocast to torch\.bfloat16 on cpu"):
        trace(program)
