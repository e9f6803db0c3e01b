"""Shape inference of single ops, against PyTorch's shapes and for symbolic sizes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from onnx import defs

from caffeforge.generated import hub
from caffeforge.runtime import shapes
from caffeforge.runtime.array import Dense
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.graph import Dim, Symbol, Value, constant
from caffeforge.runtime.onnx_node import OPSET
from caffeforge.runtime.op import Op
from caffeforge.runtime.shapes import infer

N, M = Symbol("n"), Symbol("m")


def value(*dims: Dim, dtype: str = "float32") -> Value:
    return Value("v", dtype, dims)


def of(*dims: int) -> torch.Tensor:
    return torch.empty(dims, device="meta")


TORCH: list[tuple[Op, list[tuple[int, ...]], Callable[..., torch.Tensor]]] = [
    (
        hub.Conv(kernel_shape=(3, 5), strides=(2, 1), pads=(1, 2, 1, 2), dilations=(2, 1), group=2),
        [(2, 4, 17, 9), (6, 2, 3, 5)],
        lambda x, w: F.conv2d(x, w, stride=(2, 1), padding=(1, 2), dilation=(2, 1), groups=2),
    ),
    (
        hub.ConvTranspose(kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1), output_padding=(1, 1)),
        [(1, 4, 5, 6), (4, 3, 3, 3)],
        lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1),
    ),
    (
        hub.MaxPool(kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1)),
        [(1, 4, 11, 8)],
        lambda x: F.max_pool2d(x, 3, 2, 1),
    ),
    (hub.MatMul(), [(5, 1, 2, 3), (4, 3, 6)], torch.matmul),
    (hub.Gemm(transB=1), [(2, 3), (4, 3)], lambda x, w: F.linear(x, w)),
    (hub.Add(), [(2, 1, 4), (3, 1)], torch.add),
    (hub.ReduceSum(axes=(-1,), keepdims=0), [(2, 3, 4)], lambda x: x.sum(-1)),
    (hub.Concat(axis=1), [(2, 3), (2, 5)], lambda a, b: torch.cat([a, b], 1)),
    (hub.Einsum(equation="bij,bjk->bik"), [(2, 3, 4), (2, 4, 5)], torch.bmm),
    (hub.GroupNormalization(num_groups=2), [(2, 4, 3), (4,), (4,)], lambda x, w, b: F.group_norm(x, 2, w, b)),
    (hub.DepthToSpace(blocksize=2), [(1, 8, 3, 5)], lambda x: F.pixel_shuffle(x, 2)),
]


@pytest.mark.parametrize(("op", "operands", "function"), TORCH, ids=[case[0].op_type for case in TORCH])
def test_infers_the_shape_that_torch_computes(
    op: Op, operands: list[tuple[int, ...]], function: Callable[..., torch.Tensor]
) -> None:
    expected = tuple(function(*(of(*dims) for dims in operands)).shape)
    assert infer(op, [value(*dims) for dims in operands]) == [("float32", expected)]


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (hub.Reshape(shape=(0, -1)), (N, 12)),
        (hub.Reshape(shape=(-1, 12)), (N, 12)),
        (hub.Reshape(shape=(2, -1, 6)), (2, N, 6)),
        (hub.Reshape(shape=(-1, 6)), (N * 2, 6)),
        (hub.Resize(scales=(1, 2, 2), mode="nearest"), (N, 6, 8)),
        (hub.Slice(starts=(1,), ends=(3,), axes=(1,)), (N, 2, 4)),
        (hub.Slice(starts=(0,), ends=(5,), axes=(0,)), None),
        (hub.Pad(pads=(0, 1, 1, 0, 1, 1)), (N, 5, 6)),
        (hub.Pad(pads=(1, 0, 0, 0, 0, 0)), (N + 1, 3, 4)),
        (hub.Slice(starts=(0,), ends=(5,), axes=(0,), steps=(1,)), None),
        (hub.Slice(starts=(1,), ends=(2**63 - 1,), axes=(0,), steps=(3,)), ((N + 1) // 3, 3, 4)),
        (hub.Resize(scales=(0.5, 1, 1), mode="nearest"), (N // 2, 3, 4)),
        (hub.Transpose(perm=(2, 0, 1)), (4, N, 3)),
        (hub.ReduceMean(axes=(2,)), (N, 3, 1)),
        (hub.Expand(shape=(5, 1, 1, 1)), (5, N, 3, 4)),
        (hub.Flatten(axis=1), (N, 12)),
    ],
    ids=str,
)
def test_a_symbol_is_kept_or_the_size_is_refused(op: Op, expected: tuple[Dim, ...] | None) -> None:
    operand = value(N, 3, 4)
    if expected is None:
        with pytest.raises(
            GraphError, match=r"of \(float32\[n, 3, 4\]\): dimension \d of result 0 cannot be told"
        ):
            infer(op, [operand])
    else:
        assert infer(op, [operand]) == [("float32", expected)]


def test_two_symbols_are_told_apart() -> None:
    assert infer(hub.Reshape(shape=(0, -1, 6)), [value(N, M, 6)]) == [("float32", (N, M, 6))]
    assert infer(hub.Concat(axis=2), [value(N, M, 2), value(N, M, 3)]) == [("float32", (N, M, 5))]
    assert infer(hub.Reshape(shape=(-1, 6)), [value(N, M, 6)]) == [("float32", (N * M, 6))]
    assert infer(hub.Concat(axis=0), [value(N, 3), value(M, 3)]) == [("float32", (N + M, 3))]


def test_windows_over_a_symbol() -> None:
    def height(op: Op) -> Dim:
        weight = [value(4, 3, 3, 3)] if isinstance(op, hub.Conv) else []
        return infer(op, [value(1, 3, N, 8), *weight])[0][1][2]

    assert height(hub.Conv(kernel_shape=(3, 3))) == N - 2
    assert height(hub.Conv(kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1))) == (N - 1) // 2 + 1
    assert height(hub.MaxPool(kernel_shape=(5, 5), strides=(16, 3))) == (N - 5) // 16 + 1
    half = infer(hub.AveragePool(kernel_shape=(2, 2), strides=(2, 2)), [value(1, 3, N // 2, 8)])
    assert half == [("float32", (1, 3, N // 4, 4))]


def test_symbols_that_may_differ_do_not_broadcast() -> None:
    with pytest.raises(GraphError, match="dimension 0"):
        infer(hub.Add(), [value(N, 3), value(M, 3)])


def test_every_result_has_its_own_type() -> None:
    assert infer(hub.TopK(K=2), [value(N, 5)], 2) == [("float32", (N, 2)), ("int64", (N, 2))]
    parts = infer(hub.Split(split=(1, 4), axis=1), [value(N, 5)], 2)
    assert parts == [("float32", (N, 1)), ("float32", (N, 4))]


def test_the_elements_of_constant_operands_count() -> None:
    def shape(*sizes: int) -> Value:
        return constant("s", Dense(np.array(sizes)))

    assert infer(hub.Reshape(), [value(3, 4), shape(6, 2)]) == [("float32", (6, 2))]
    assert infer(hub.Reshape(), [value(3, 4), shape(2, 6)]) == [("float32", (2, 6))]
    limits = [constant(name, Dense(np.array(limit))) for name, limit in (("a", 1), ("b", 8), ("c", 2))]
    assert infer(hub.Range(), limits) == [("int64", (4,))]


def test_element_types_follow_the_operand() -> None:
    for dtype in ("float16", "bfloat16", "float64", "int32"):
        assert infer(hub.Clip(min=0.0), [value(3, dtype=dtype)]) == [(dtype, (3,))]
    assert infer(hub.Greater(), [value(3), value(3)]) == [("bool", (3,))]


@pytest.mark.parametrize(
    ("op", "operands", "sentence"),
    [
        (hub.MatMul(), [value(2, 3), value(4, 5)], r"of \(float32\[2, 3\], float32\[4, 5\]\): Incompatible"),
        (hub.Add(), [value(3), value(3, dtype="int64")], "inconsistent type"),
        (hub.NonZero(), [value(3)], "dimension 1 of result 0 cannot be told"),
    ],
    ids=["MatMul", "Add", "NonZero"],
)
def test_what_cannot_be_inferred_names_op_operands_and_reason(
    op: Op, operands: list[Value | None], sentence: str
) -> None:
    with pytest.raises(GraphError, match=sentence) as caught:
        infer(op, operands)
    assert caught.value.what.startswith(op.op_type) and "\n" not in caught.value.what


def test_ops_of_other_domains_need_a_shape_rule() -> None:
    class Focus(Op):
        op_type, domain = "Focus", "vendory"

    with pytest.raises(GraphError, match=r"vendory\.Focus .* needs? a shape rule"):
        infer(Focus(), [value(3)])


def test_only_known_ops_lack_an_inference_function() -> None:
    ops = [defs.get_schema(name, OPSET, "") for name in hub.OPS if "." not in name]
    lacking = {schema.name for schema in ops if not schema.has_type_and_shape_inference_function}
    assert lacking == shapes._LIKE_FIRST


def test_the_cache_stays_bounded_and_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "_CACHE_SIZE", 3)
    monkeypatch.setattr(shapes, "_cache", type(shapes._cache)())
    for size in (1, 2, 3, 4, 1, 5, 4):
        assert infer(hub.Flatten(axis=1), [value(2, size, 3)]) == [("float32", (2, size * 3))]
    assert len(shapes._cache) == 3
