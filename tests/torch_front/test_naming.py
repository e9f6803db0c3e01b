"""Names: close to the user's own, and the same from export to export."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from caffeforge.runtime.graph import Graph
from caffeforge.runtime.torch_front import trace
from tests.torch_front.checking import Function, checked, seeded


class Swish(nn.Module):
    """A module of several operators, none of which is the main one."""

    def forward(self, x: torch.Tensor) -> Any:
        return x * torch.sigmoid(x)


class Scaled(nn.Module):
    """A module of several operators, of which one reads its weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(1.5))

    def forward(self, x: torch.Tensor) -> Any:
        return F.relu(x + 1) * self.weight


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)
        self.swish = Swish()
        self.scaled = Scaled()
        self.drop = nn.Dropout()

    def forward(self, x: torch.Tensor) -> Any:
        y = self.relu(self.conv(x))
        y = self.relu(self.conv(y)) + x
        return self.drop(self.scaled(self.swish(y + x)))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(Block(), Block())
        self.fc = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> Any:
        return self.fc(F.adaptive_avg_pool2d(self.layers(x), 1).flatten(1))


def names(graph: Graph) -> list[str]:
    return [node.name for node in graph.nodes]


def test_names_follow_modules_and_operators() -> None:
    graph = checked(Net(), seeded(1, 4, 5, 5)).graph
    block = ["conv", "relu", "conv_1", "relu_1", "add", "add_1", "swish.sigmoid", "swish.mul"]
    block += ["scaled.add", "scaled.relu", "scaled"]
    assert names(graph) == [
        *(f"layers.0.{name}" for name in block),
        *(f"layers.1.{name}" for name in block),
        *("adaptive_avg_pool2d", "flatten", "fc"),
    ]
    assert all(node.outputs[0].name == node.name for node in graph.nodes)


def test_origin_tells_module_call_operator_and_line() -> None:
    graph = checked(Net(), seeded(1, 4, 5, 5)).graph
    conv, again, add = graph.nodes[0].origin, graph.nodes[2].origin, graph.nodes[4].origin
    assert (conv.module, conv.op) == ("layers.0.conv", "aten.conv2d.default")
    assert again.module == "layers.0.conv@1"
    assert (add.module, add.op) == ("layers.0", "aten.add.Tensor")
    line = Block.forward.__code__.co_firstlineno
    assert conv.source == f"{__file__}:{line + 1}"
    assert again.source == f"{__file__}:{line + 2}"


def test_line_within_a_helper_is_found() -> None:
    def helper(x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x)

    graph = trace(Function(lambda x: helper(x)), seeded(2)).graph
    assert graph.nodes[0].origin.source == f"{__file__}:{helper.__code__.co_firstlineno + 1}"


def test_names_are_the_same_from_export_to_export() -> None:
    torch.manual_seed(0)
    first = trace(Net(), seeded(1, 4, 5, 5)).graph
    second = trace(Net(), seeded(2, 4, 9, 9)).graph
    assert names(first) == names(second)
    assert [v.name for v in first.values()] == [v.name for v in second.values()]


def test_names_do_not_depend_on_other_modules() -> None:
    changed = Net()
    changed.layers[0] = nn.Sequential(nn.ReLU(), nn.Conv2d(4, 4, 1), nn.ReLU())
    before, after = trace(Net(), seeded(1, 4, 5, 5)).graph, trace(changed, seeded(1, 4, 5, 5)).graph
    assert names(after) == ["layers.0.0", "layers.0.1", "layers.0.2", *names(before)[11:]]


def test_functional_model_is_named_by_operators() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return F.relu(F.relu(x) + 1) + 2

    graph = trace(Function(model), seeded(2, 3)).graph
    assert names(graph) == ["relu", "add", "relu_1", "add_1"]
    assert [constant.name for constant in graph.constants()] == ["add.B", "add_1.B"]


def test_operator_gives_way_to_an_input_and_a_module_of_its_name() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mul = nn.ReLU()

        def forward(self, add: torch.Tensor) -> Any:
            return self.mul((add + 1) * 2)

    graph = checked(Odd(), seeded(2, 3)).graph
    assert [value.name for value in graph.inputs] == ["add"]
    assert names(graph) == ["add_1", "mul_1", "mul"]


def test_module_under_two_names_is_named_by_the_one_that_is_called() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.ReLU()
            self.second = self.first

        def forward(self, x: torch.Tensor) -> Any:
            return self.second(x) + 1

    assert names(trace(Shared(), seeded(2)).graph)[1:] == ["add"]


def test_results_of_one_node_are_numbered() -> None:
    graph = checked(lambda x: x.chunk(2, 1), seeded(1, 4)).graph
    assert [value.name for value in graph.outputs] == ["chunk.0", "chunk.1"]


def test_operands_of_variadic_operators_are_named_by_place() -> None:
    graph = trace(Function(lambda x: torch.cat([x, torch.ones(1, 2)], 1)), seeded(1, 4)).graph
    assert [constant.name for constant in graph.constants()] == ["cat.1"]


@pytest.mark.parametrize("shape", [(2, 4), (2, 3, 4)])
def test_helpers_are_named_by_the_node_they_help(shape: tuple[int, ...]) -> None:
    graph = trace(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), seeded(*shape)).graph
    expected = ["0", "1"] if len(shape) == 2 else ["0.matmul", "0", "1.matmul", "1"]
    assert names(graph) == expected


def test_weight_that_is_called_like_an_input_is_named_by_its_reader() -> None:
    class Masked(nn.Module):
        mask: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mask", seeded(3))

        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> Any:
            return x * mask + self.mask

    graph = checked(Masked(), seeded(2, 3), seeded(2, 3, seed=1)).graph
    assert [value.name for value in graph.values()] == ["x", "mask", "add.B", "mul", "add"]
