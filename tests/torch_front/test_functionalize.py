"""In-place operators: exact whatever shares memory with what is written, or refused."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch
from torch import nn

from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.torch_front import trace
from caffeforge.runtime.torch_front.example import Example
from caffeforge.runtime.torch_front.functionalize import writes
from caffeforge.runtime.torch_front.program import export
from caffeforge.runtime.torch_front.reference import Recorder
from caffeforge.runtime.torch_front.traced import Traced
from tests.torch_front.checking import Function, checked, seeded, types

aten = torch.ops.aten


def functional(function: Any, *inputs: torch.Tensor) -> Traced:
    """Functionalize a function, and compare what it then computes with PyTorch, to the bit."""
    with torch.no_grad():
        traced = Traced.of(export(Function(function), Example.of(inputs)), foreign=False)
        results = Recorder(traced.graph, {}).run(*_placeholders(traced, inputs), enable_io_processing=False)
        expected = function(*(tensor.clone() for tensor in inputs))
    assert not any(map(writes, traced.graph.nodes))
    for result, tensor in zip(results, torch.utils._pytree.tree_leaves(expected), strict=True):
        assert torch.equal(result, tensor)
    return traced


def _placeholders(traced: Traced, inputs: Any) -> list[torch.Tensor]:
    values = traced.state | dict(zip(traced.inputs, inputs, strict=True))
    return [values[node] for node in traced.graph.nodes if node.op == "placeholder"]


def calls(traced: Traced) -> list[Any]:
    return [node.target for node in traced.graph.nodes if node.op == "call_function"]


def write_after_two_views(x: torch.Tensor) -> Any:
    y = x * 1
    v = y[1:3]
    w = v[:, ::2]
    y.add_(1)
    w.zero_()
    a, b = y.chunk(2, 1)
    a += b
    return y, v, w


def write_before_and_after_a_view(x: torch.Tensor) -> Any:
    y = x * 1
    y.add_(1)
    v = y[1:3]
    y.mul_(2)
    return v + 0


def write_through_rows(x: torch.Tensor) -> Any:
    y = x * 1
    rows = y.unbind(0)
    rows[1].mul_(3)
    rows[2].copy_(rows[1])
    return y


def write_through_pieces(x: torch.Tensor) -> Any:
    y = x * 1
    a, b = torch.split_with_sizes(y, [1, 3], dim=-1)
    b.neg_()
    y.t().add_(1)
    return a, b, y


def write_through_a_permutation(x: torch.Tensor) -> Any:
    y = (x * 1).view(2, 2, 4)
    y.permute(2, 0, 1)[1].fill_(5)
    return y.flatten()


def write_through_a_diagonal(x: torch.Tensor) -> Any:
    y = x * 1
    y.diagonal().copy_(y[0])
    return y


def write_through_a_reshape(x: torch.Tensor) -> Any:
    y = x * 1
    v = y.view(2, 8)
    v[0].clamp_(0)
    return y.squeeze(), v


def write_where_true(x: torch.Tensor) -> Any:
    y = x * 1
    y[y > 0] = 0
    return y


def write_by_index(x: torch.Tensor) -> Any:
    y = x * 1
    y[:, 1] = y[:, 2] * 2
    y[2:] += y[:2]
    return y


def write_into_a_copy(x: torch.Tensor) -> Any:
    y = x * 1
    v = y[:2].clone()
    v.mul_(7)
    return y, v


def write_into_what_reshape_copied(x: torch.Tensor) -> Any:
    y = (x * 1).t()
    v = y.reshape(16)
    v.add_(1)
    return y, v


def write_through_dropout(x: torch.Tensor) -> Any:
    y = x * 1
    torch.nn.functional.dropout(y, training=False).relu_()
    return y


def write_to_itself(x: torch.Tensor) -> Any:
    y = x * 1
    y.mul_(y).sub_(1)
    return y


def write_into_a_literal(x: torch.Tensor) -> Any:
    y = torch.tensor([1.0, 2.0, 3.0, 4.0])
    y[1:].mul_(2)
    return x + y


def write_integers(x: torch.Tensor) -> Any:
    i = x.to(torch.int64)
    j = i[1:]
    j.add_(2)
    return i


ADVERSARIES = [
    write_after_two_views,
    write_before_and_after_a_view,
    write_through_rows,
    write_through_pieces,
    write_through_a_permutation,
    write_through_a_diagonal,
    write_through_a_reshape,
    write_where_true,
    write_by_index,
    write_into_a_copy,
    write_into_what_reshape_copied,
    write_through_dropout,
    write_to_itself,
    write_into_a_literal,
    write_integers,
]


@pytest.mark.parametrize("function", ADVERSARIES)
def test_writes_are_exact(function: Any) -> None:
    functional(function, seeded(4, 4) * 3)


@pytest.mark.parametrize("function", ADVERSARIES)
def test_writes_are_exact_in_a_program_from_a_file(function: Any) -> None:
    inputs = (seeded(4, 4) * 3,)
    file = io.BytesIO()
    torch.export.save(torch.export.export(Function(function), inputs), file)
    program = torch.export.load(io.BytesIO(file.getvalue()))
    before = str(program.graph)
    traced = Traced.of(program, foreign=True)
    with torch.no_grad():
        results = Recorder(traced.graph, {}).run(*_placeholders(traced, inputs), enable_io_processing=False)
    for result, tensor in zip(results, torch.utils._pytree.tree_leaves(function(*inputs)), strict=True):
        assert torch.equal(result, tensor)
    assert str(program.graph) == before


@pytest.mark.parametrize(
    "view",
    [lambda y: y.mT, lambda y: y.swapaxes(0, 1), lambda y: y.movedim(0, 1), lambda y: y.view(torch.int32)],
)
def test_write_through_a_view_that_cannot_be_put_back_is_refused(view: Any) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x * 1
        view(y).mul_(2)
        return y

    with pytest.raises(FrontEndError, match=r"mul_\.Tensor writes through a view") as caught:
        functional(function, seeded(4, 4))
    assert "test_functionalize.py:" in caught.value.where


def test_write_through_an_alias_that_no_argument_tells_is_refused() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x * 1
        _, alias = torch.ops.aten.broadcast_tensors([x + 1, y])
        alias.mul_(2)
        return y

    with pytest.raises(FrontEndError, match="shares memory"):
        functional(function, seeded(4, 4))


@pytest.mark.parametrize(
    "change",
    [lambda y: y.t_(), lambda y: y.squeeze_(), lambda y: y.unsqueeze_(0), lambda y: y.transpose_(0, 1)],
)
def test_change_of_a_shape_in_place_is_refused(change: Any) -> None:
    with pytest.raises(FrontEndError, match="changes the shape"):
        functional(lambda x: change(x * 1), seeded(4, 4))


def test_write_without_living_alias_is_the_functional_operator() -> None:
    traced = functional(lambda x: x.mul(2).relu_().add_(1), seeded(4, 4))
    assert calls(traced) == [aten.mul.Tensor, aten.relu.default, aten.add.Tensor]
    assert traced.notes == {}


def test_write_into_a_part_is_right_in_the_hub() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        v = y[:, :2]
        v.relu_()
        return y + 1

    source = checked(function, seeded(2, 4, 3))
    assert types(source.graph) == ["Mul", "Slice", "Relu", "Slice", "Concat", "Add"]
    (note,) = source.notes
    assert "relu_" in note and "slice_scatter" in note and "test_functionalize.py:" in note


def test_write_into_every_second_element_takes_each_from_one_of_the_two() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y[:, ::2].relu_()
        return y

    assert types(checked(function, seeded(2, 4)).graph) == ["Mul", "Slice", "Relu", "Concat", "Gather"]


def test_write_into_a_piece_of_a_split_is_right_in_the_hub() -> None:
    def function(x: torch.Tensor) -> Any:
        a, b = (x * 2).chunk(2, 1)
        a += b
        return a, b

    checked(function, seeded(2, 4, 3))


def test_write_into_an_input_is_right_and_noted() -> None:
    source = checked(nn.Sequential(nn.ReLU(inplace=True), nn.Conv2d(2, 3, 1)), seeded(1, 2, 4, 4))
    assert types(source.graph) == ["Relu", "Conv"]
    assert source.notes == ["the model writes into its input input, the net does not"]


def test_inner_values_are_those_of_their_moment() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(2, 2, 1)
            self.relu = nn.ReLU(inplace=True)

        def forward(self, x: torch.Tensor) -> Any:
            y = self.relu(self.conv(x))
            y += x
            return y

    source = checked(Block(), seeded(1, 2, 4, 4))
    reference = source.reference(source.example)
    assert list(reference) == ["conv", "relu", "add"]
    assert reference["conv"].min() < 0 <= reference["relu"].min()


def test_model_that_changes_its_buffer_is_refused() -> None:
    class Counter(nn.Module):
        count: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> Any:
            self.count.add_(1)
            return x * self.count

    with pytest.raises(FrontEndError, match="changes the model's own"):
        trace(Counter().eval(), seeded(2, 4))
