"""Pooling: windows, ceil mode, divisors, adaptive sizes."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from caffeforge.generated import hub
from caffeforge.runtime.torch_front import trace
from tests.torch_front.checking import Function, checked, only_op, ops, seeded, types


def test_max_pool_without_overhang_keeps_its_numbers() -> None:
    op = only_op(nn.MaxPool2d(3, stride=2, padding=1), seeded(1, 2, 8, 8))
    assert op == hub.MaxPool(kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1))


def test_stride_defaults_to_the_kernel() -> None:
    op = only_op(nn.MaxPool2d((2, 3)), seeded(1, 2, 8, 9))
    assert op == hub.MaxPool(kernel_shape=(2, 3), strides=(2, 3))


def test_ceil_mode_pads_the_end() -> None:
    op = only_op(nn.MaxPool2d(3, stride=2, ceil_mode=True), seeded(1, 2, 8, 9))
    assert op == hub.MaxPool(kernel_shape=(3, 3), strides=(2, 2), pads=(0, 0, 1, 0))


def test_ceil_mode_drops_a_window_that_starts_in_the_padding() -> None:
    # ceil((4 + 2 - 2) / 3) + 1 = 3 windows, of which the third starts at 5 - 1 = 4, behind the input.
    op = only_op(nn.MaxPool2d(2, stride=3, padding=1, ceil_mode=True), seeded(1, 1, 4, 4))
    assert op == hub.MaxPool(kernel_shape=(2, 2), strides=(3, 3), pads=(1, 1, 1, 1))


def test_dilated_max_pool() -> None:
    op = only_op(nn.MaxPool2d(3, stride=1, padding=1, dilation=2, ceil_mode=True), seeded(1, 2, 9, 8))
    assert op == hub.MaxPool(kernel_shape=(3, 3), pads=(1, 1, 1, 1), dilations=(2, 2))


@pytest.mark.parametrize("size", [(7, 7), (8, 9), (10, 13)])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("ceil_mode", [False, True])
def test_pools_agree_with_torch(size: tuple[int, int], stride: int, padding: int, ceil_mode: bool) -> None:
    def pools(x: torch.Tensor) -> list[torch.Tensor]:
        return [
            F.max_pool2d(x, (3, 2), stride, padding, ceil_mode=ceil_mode),
            F.avg_pool2d(x, (3, 2), stride, padding, ceil_mode, count_include_pad=True),
            F.avg_pool2d(x, (3, 2), stride, padding, ceil_mode, count_include_pad=False),
        ]

    checked(pools, seeded(2, 3, *size))


def test_average_pool_counts_padding_where_torch_does() -> None:
    x = seeded(1, 2, 8, 8)
    for counts in (False, True):
        op = only_op(nn.AvgPool2d(3, 2, 1, count_include_pad=counts), x)
        assert op == hub.AveragePool(
            kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1), count_include_pad=int(counts)
        )


def test_average_pool_with_counted_padding_and_overhang_pads_first() -> None:
    graph = checked(nn.AvgPool2d(3, 2, 1, ceil_mode=True), seeded(1, 2, 8, 8)).graph
    assert ops(graph) == [
        hub.Pad(pads=(0, 0, 1, 1, 0, 0, 1, 1), constant_value=0.0),
        hub.AveragePool(kernel_shape=(3, 3), strides=(2, 2), pads=(0, 0, 1, 1)),
    ]


def test_divisor_override_of_the_window_is_no_override() -> None:
    op = only_op(nn.AvgPool2d(2, divisor_override=4), seeded(1, 2, 8, 8))
    assert op == hub.AveragePool(kernel_shape=(2, 2), strides=(2, 2))


@pytest.mark.parametrize(
    "pool",
    [
        nn.AvgPool2d(2, divisor_override=3),
        nn.AvgPool2d(2, ceil_mode=True, divisor_override=4),
        nn.AvgPool2d(2, padding=1, count_include_pad=False, divisor_override=4),
    ],
)
def test_another_divisor_is_a_factor(pool: nn.Module) -> None:
    graph = checked(pool, seeded(1, 2, 7, 7)).graph
    assert "AveragePool" in types(graph)


def test_adaptive_pool_to_one_is_global() -> None:
    x = seeded(2, 3, 5, 7)
    assert only_op(nn.AdaptiveAvgPool2d(1), x) == hub.GlobalAveragePool()
    assert only_op(nn.AdaptiveMaxPool2d(1), x) == hub.GlobalMaxPool()


def test_adaptive_pool_to_the_input_size_is_nothing() -> None:
    graph = checked(lambda x: F.relu(F.adaptive_avg_pool2d(x, (6, None))), seeded(1, 3, 6, 8)).graph
    assert ops(graph) == [hub.Relu()]


def test_adaptive_pool_with_windows_of_one_size_is_a_plain_pool() -> None:
    # 8 = 2 * 4, windows of 2; 7 = 3 * 2 + 1, windows of 3 every 2.
    x = seeded(1, 3, 8, 7)
    average, highest = only_op(nn.AdaptiveAvgPool2d((4, 3)), x), only_op(nn.AdaptiveMaxPool2d((4, 3)), x)
    assert average == hub.AveragePool(kernel_shape=(2, 3), strides=(2, 2))
    assert highest == hub.MaxPool(kernel_shape=(2, 3), strides=(2, 2))
    assert only_op(nn.AdaptiveAvgPool2d((1, 3)), x) == hub.AveragePool(kernel_shape=(8, 3), strides=(8, 2))


@pytest.mark.parametrize(("size", "out"), [((8, 8), (3, 4)), ((2, 8), (5, 4)), ((1, 1), (7, 7))])
@pytest.mark.parametrize("pool", [nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d])
def test_adaptive_pool_with_uneven_windows_goes_axis_by_axis(
    pool: type[nn.Module], size: tuple[int, int], out: tuple[int, int]
) -> None:
    graph = checked(pool(out), seeded(1, 2, *size)).graph
    assert set(types(graph)) <= {"Slice", "ReduceMean", "ReduceMax", "Concat"}


@pytest.mark.parametrize("out", [1, 3, (4, 6)])
def test_places_of_an_adaptive_pool(out: int | tuple[int, int]) -> None:
    pool = nn.AdaptiveMaxPool2d(out, return_indices=True)
    assert "GatherElements" in types(checked(pool, seeded(2, 3, 4, 7)).graph)
    checked(pool, torch.ones(1, 1, 4, 7))  # of equal ones the first


def test_mean_over_height_and_width_is_a_global_pool() -> None:
    x = seeded(2, 3, 5, 7)
    assert only_op(lambda x: x.mean((-1, 2), keepdim=True), x) == hub.GlobalAveragePool()
    assert only_op(lambda x: x.mean((3, 2)), x) == hub.ReduceMean(axes=(2, 3), keepdims=0)
    assert only_op(lambda x: x.mean(1, keepdim=True), x) == hub.ReduceMean(axes=(1,), keepdims=1)


def test_an_image_without_batch_is_a_batch_of_one() -> None:
    assert types(checked(nn.MaxPool2d(2), seeded(3, 8, 8)).graph) == ["Reshape", "MaxPool", "Reshape"]


def test_a_pool_of_three_results_names_each_by_its_operator() -> None:
    graph = trace(Function(lambda x: (F.max_pool2d(x, 2), F.max_pool2d(x, 4))), seeded(1, 2, 8, 8)).graph
    assert [value.name for value in graph.outputs] == ["max_pool2d", "max_pool2d_1"]
