"""Convolutions, matrix products and batch norm: numbers, layouts of weights, what is refused."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from caffeforge.generated import hub
from caffeforge.runtime.array import Full
from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.torch_front import trace
from tests.torch_front.checking import Function, checked, only_op, ops, seeded, types


def trained(model: nn.Module) -> nn.Module:
    """Give every parameter and statistic a value that shows where it is used."""
    generator = torch.Generator().manual_seed(7)
    for tensor in [*model.parameters(), *model.buffers()]:
        if tensor.is_floating_point():
            tensor.data.uniform_(0.5, 1.5, generator=generator)
    return model.eval()


def test_convolution_keeps_its_numbers() -> None:
    conv = nn.Conv2d(4, 6, (3, 5), stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2)
    assert only_op(conv, seeded(2, 4, 9, 11)) == hub.Conv(
        kernel_shape=(3, 5), strides=(2, 1), pads=(1, 2, 1, 2), dilations=(1, 2), group=2
    )


def test_convolution_without_bias_has_two_operands() -> None:
    graph = checked(nn.Conv2d(2, 3, 1, bias=False), seeded(1, 2, 4, 4)).graph
    assert [value and value.name for value in graph.nodes[0].inputs] == ["input", "weight"]


@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_padding_same_puts_the_odd_half_at_the_end() -> None:
    conv = nn.Conv2d(2, 3, (4, 3), padding="same", dilation=(1, 2))
    assert only_op(conv, seeded(1, 2, 8, 8)) == hub.Conv(
        kernel_shape=(4, 3), pads=(1, 2, 2, 2), dilations=(1, 2)
    )


def test_padding_valid_is_none() -> None:
    op = only_op(nn.Conv2d(2, 3, 3, padding="valid", stride=2), seeded(1, 2, 8, 8))
    assert op == hub.Conv(kernel_shape=(3, 3), strides=(2, 2))


def test_an_image_without_batch_is_a_batch_of_one() -> None:
    graph = checked(nn.Conv2d(2, 3, 3), seeded(2, 8, 8)).graph
    assert types(graph) == ["Reshape", "Conv", "Reshape"]


def test_batch_norm_reads_its_five_tensors() -> None:
    graph = checked(trained(nn.BatchNorm2d(3, eps=1e-3)), seeded(2, 3, 4, 5)).graph
    assert ops(graph) == [hub.BatchNormalization(epsilon=1e-3)]
    names = [value and value.name for value in graph.nodes[0].inputs]
    assert names == ["input", "weight", "bias", "running_mean", "running_var"]


def test_batch_norm_without_affine_scales_by_one_and_shifts_by_zero() -> None:
    graph = checked(trained(nn.BatchNorm2d(3, affine=False)), seeded(2, 3, 4, 5)).graph
    scale, bias = graph.nodes[0].inputs[1:3]
    assert scale and bias and isinstance(scale.data, Full) and isinstance(bias.data, Full)
    assert (scale.data.value, scale.data.shape, bias.data.value) == (1.0, (3,), 0.0)


@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 5)])
def test_batch_norm_of_vectors(shape: tuple[int, ...]) -> None:
    assert only_op(trained(nn.BatchNorm1d(3)), seeded(*shape)) == hub.BatchNormalization()


def test_batch_norm_without_running_statistics_is_by_those_of_the_batch() -> None:
    checked(nn.BatchNorm2d(3, track_running_stats=False), seeded(2, 3, 4, 4))


def test_linear_of_a_matrix_is_a_gemm() -> None:
    x = seeded(2, 5)
    assert only_op(nn.Linear(5, 3), x) == hub.Gemm(transB=1)
    assert only_op(nn.Linear(5, 3, bias=False), x) == hub.Gemm(transB=1)


@pytest.mark.parametrize("shape", [(5,), (2, 4, 5), (2, 3, 4, 5)])
def test_linear_of_another_rank_multiplies_by_the_transposed_weight(shape: tuple[int, ...]) -> None:
    linear = nn.Linear(5, 3)
    graph = checked(nn.Sequential(linear), seeded(*shape)).graph
    assert types(graph) == ["MatMul", "Add"]
    weight = graph.nodes[0].inputs[1]
    assert weight and weight.data is not None and weight.dims == (5, 3)
    assert [node.name for node in graph.nodes] == ["0.matmul", "0"]
    assert weight.name == "0.matmul.B"
    assert only_op(nn.Linear(5, 3, bias=False), seeded(*shape)) == hub.MatMul()


def test_linear_by_a_computed_weight_transposes_it() -> None:
    graph = checked(lambda x, w: F.linear(x, w * 2), seeded(2, 3, 5), seeded(4, 5, seed=1)).graph
    assert types(graph) == ["Mul", "Transpose", "MatMul"]


def test_linear_by_a_vector_is_refused() -> None:
    with pytest.raises(FrontEndError, match="weight of rank 1"):
        trace(Function(F.linear), (seeded(2, 3, 5), seeded(5)))
