"""Weights: the module's own memory, other layouts and types, tied and computed ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.torch_front import trace
from caffeforge.runtime.torch_front.weights import TorchArray, Weights
from tests.torch_front.checking import checked, seeded, types


def bytes_of(array: TorchArray, dtype: str = "float32") -> bytes:
    return b"".join(bytes(block) for block in array.blocks(dtype))


def test_row_major_floats_are_given_in_place() -> None:
    weight = nn.Parameter(seeded(3, 4))
    (block,) = TorchArray(weight).blocks("float32")
    assert np.frombuffer(block, np.float32).ctypes.data == weight.data_ptr()


@pytest.mark.parametrize(
    "tensor",
    [
        seeded(3, 4).t(),
        seeded(6, 4)[::2],
        seeded(2, 3, 4).to(memory_format=torch.contiguous_format).permute(2, 0, 1),
        seeded(2, 3, 4, 5).to(memory_format=torch.channels_last),
        seeded(3, 4).double(),
        seeded(3, 4).half(),
        seeded(3, 4).bfloat16(),
        seeded(1)[0],
        torch.empty(0, 3),
        torch.arange(6),
        torch.randn(2000, 1500).t(),
    ],
)
def test_other_arrays_give_the_same_numbers(tensor: torch.Tensor) -> None:
    array = TorchArray(tensor)
    assert array.shape == tuple(tensor.shape)
    assert array.dtype == str(tensor.dtype).removeprefix("torch.")
    assert bytes_of(array) == tensor.float().contiguous().numpy().tobytes()
    np.testing.assert_array_equal(
        array.numpy(), tensor.float().numpy() if tensor.is_floating_point() else tensor.numpy()
    )
    if tensor.dim():
        np.testing.assert_array_equal(array.rows(0, 1), array.numpy()[:1])


def test_large_transposed_weight_comes_in_blocks() -> None:
    blocks = list(TorchArray(torch.zeros(4096, 2048).t()).blocks("float32"))
    assert len(blocks) == 8
    assert sum(block.nbytes for block in blocks) == 4096 * 2048 * 4


def test_weights_of_a_graph_are_the_module_s_memory() -> None:
    model = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3)).eval()
    constants = {value.name: value for value in trace(model, seeded(1, 2, 4, 4)).graph.constants()}
    state = {name: t for name, t in model.state_dict().items() if not name.endswith("num_batches_tracked")}
    assert set(constants) == set(state)
    for name, tensor in state.items():
        data = constants[name].data
        assert data is not None and data.numpy().ctypes.data == tensor.data_ptr()


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(4, 4, bias=False)
        self.decoder = nn.Linear(4, 4, bias=False)
        self.decoder.weight = self.encoder.weight
        self.register_buffer("alias", self.encoder.weight.detach())

    def forward(self, x: torch.Tensor) -> Any:
        return self.decoder(self.encoder(x)) * self.alias


def test_tied_weights_are_one_value() -> None:
    graph = checked(Tied(), seeded(4, 4)).graph
    assert [constant.name for constant in graph.constants()] == ["encoder.weight"]
    assert graph.nodes[0].inputs[1] is graph.nodes[1].inputs[1] is graph.nodes[2].inputs[1]


def test_views_of_one_memory_in_other_shapes_are_two_values() -> None:
    class Halves(nn.Module):
        first: torch.Tensor
        all: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            both = seeded(2, 4)
            self.register_buffer("first", both[:1])
            self.register_buffer("all", both)

        def forward(self, x: torch.Tensor) -> Any:
            return x * self.first + self.all

    graph = checked(Halves(), seeded(2, 4)).graph
    assert [constant.name for constant in graph.constants()] == ["first", "all"]


def test_buffers_attributes_and_literals_are_constants() -> None:
    class Mixed(nn.Module):
        kept: torch.Tensor
        fleeting: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("kept", seeded(3))
            self.register_buffer("fleeting", seeded(3, seed=1), persistent=False)
            self.plain = seeded(3, seed=2)

        def forward(self, x: torch.Tensor) -> Any:
            return (x + self.kept - self.fleeting) * self.plain + torch.tensor([1.0, 2.0, 3.0])

    graph = checked(Mixed(), seeded(2, 3)).graph
    assert [constant.name for constant in graph.constants()] == ["kept", "fleeting", "plain", "add_1.B"]


def test_what_depends_on_weights_only_is_computed_when_traced() -> None:
    graph = checked(weight_norm(nn.Conv2d(2, 3, 1)), seeded(1, 2, 4, 4)).graph
    assert types(graph) == ["Conv"]
    assert [constant.name for constant in graph.constants()] == ["conv2d.W", "bias"]

    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(seeded(3))

        def forward(self, x: torch.Tensor) -> Any:
            low, high = self.scale.view(1, -1, 1, 1).exp().chunk(2, 1)
            return torch.cat([x[:, :2] * low, x[:, 2:] * high], 1)

    assert types(checked(Scale(), seeded(1, 3, 4, 4)).graph) == ["Slice", "Mul", "Slice", "Mul", "Concat"]


def test_random_numbers_are_no_constants() -> None:
    class Noise(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return x + torch.rand(3)

    with pytest.raises(FrontEndError, match=r"aten\.rand\.default"):
        trace(Noise(), seeded(2, 3))


def test_half_precision_model_keeps_its_type() -> None:
    graph = trace(nn.Linear(4, 2).half(), seeded(1, 4).half()).graph
    assert {value.dtype for value in graph.values()} == {"float16"}


def quantized(tensor: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = torch.quantize_per_tensor(tensor, 0.1, 0, torch.qint8)
    return result


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
@pytest.mark.parametrize(("make", "words"), [(torch.Tensor.to_sparse, "sparse"), (quantized, "quantized")])
def test_weight_that_is_no_plain_array_is_refused(make: Any, words: str) -> None:
    weight = make(seeded(2, 2))
    with pytest.raises(FrontEndError, match=f"fc.weight is {words}"):
        Weights({"fc.weight": weight}).value(weight)
