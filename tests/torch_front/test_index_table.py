"""Reading and writing at indices, reductions, and orders: one line a configuration, see `table`."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from tests.torch_front.checking import seeded
from tests.torch_front.table import Line, check_line, lines

A = seeded(2, 6, 4, 5)
ROW = seeded(3, 8)
TIES = torch.tensor([[1.0, 3, 3, 2, 1], [0, 0, 0, 0, 0], [5, 4, 5, 4, 5]])
IDS = torch.tensor([[0, 2, 1, 4], [3, 3, 0, 1]])
FLAGS = ROW > 0

READS: list[Line] = [
    ("index of one axis", lambda x: x[:, [0, 3, 3]], (A,), ["Gather"]),
    ("index by a tensor", lambda x, i: x[i], (seeded(5, 3), IDS), ["Gather"]),
    ("index from the end", lambda x: x[:, [-1, 0]], (A,), ["Gather"]),
    ("index of two axes", lambda x: x[:, [0, 1], [3, -1]], (A,), ["Reshape", "Gather"]),
    (
        "index of two axes by tensors",
        lambda x, i, j: x[i, j],
        (A, torch.tensor([0, -1]), torch.tensor([2, 3])),
        None,
    ),
    ("index of axes apart", lambda x: x[[0, 1], :, [3, 2]], (A,), ["Transpose", "Reshape", "Gather"]),
    (
        "index by a broadcast",
        lambda x: x[torch.arange(2)[:, None], torch.arange(3)],
        (A,),
        ["Reshape", "Gather"],
    ),
    ("index_select", lambda x: x.index_select(2, torch.tensor([1, 1, 0])), (A,), ["Gather"]),
    ("take", lambda x, i: x.take(i), (ROW, IDS), None),
    (
        "gather",
        lambda x, i: x.gather(1, i),
        (ROW, torch.tensor([[0, 7], [3, 3], [5, 1]])),
        ["GatherElements"],
    ),
    (
        "gather of a part",
        lambda x, i: x.gather(1, i),
        (ROW, torch.tensor([[0, 7]])),
        ["Slice", "GatherElements"],
    ),
    ("take_along_dim", lambda x: x.take_along_dim(x.argsort(1), 1), (ROW,), None),
    ("embedding", nn.Embedding(6, 4), (IDS,), ["Gather"]),
    ("embedding by int32", nn.Embedding(6, 4), (IDS.int(),), ["Gather"]),
    ("one_hot", lambda i: nn.functional.one_hot(i, 6), (IDS,), ["OneHot"]),
]

WRITES: list[Line] = [
    ("scatter", lambda x, i, s: x.scatter(1, i, s), (ROW, IDS, seeded(2, 4)), ["ScatterElements"]),
    ("scatter of a number", lambda x, i: x.scatter(1, i, 2.5), (ROW, IDS), ["ScatterElements"]),
    ("scatter of a large source", lambda x, i, s: x.scatter(1, i, s), (ROW, IDS, seeded(5, 7)), None),
    ("scatter_add", lambda x, i, s: x.scatter_add(1, i, s), (ROW, IDS, seeded(2, 4)), ["ScatterElements"]),
    *[
        (
            f"scatter_reduce {how} {kept}",
            lambda x, i, s, how=how, kept=kept: x.scatter_reduce(1, i, s, how, include_self=kept),
            (ROW, IDS, seeded(2, 4)),
            None,
        )
        for how in ("sum", "prod", "mean", "amax", "amin")
        for kept in (True, False)
    ],
    (
        "index_put",
        lambda x, v: torch.index_put(x, (torch.tensor([0, 2]), torch.tensor([1, 1])), v),
        (ROW, seeded(2)),
        None,
    ),
    (
        "index_put of rows",
        lambda x, v: torch.index_put(x, (torch.tensor([0, 2]),), v),
        (ROW, seeded(8)),
        None,
    ),
    ("index_put behind an axis", lambda x, v: _behind(x, v), (ROW, seeded(3, 2)), None),
    (
        "index_put with addition",
        lambda x, i: torch.index_put(x, (i,), torch.ones(8), accumulate=True),
        (ROW, torch.tensor([1, 1, 0])),
        None,
    ),
    (
        "index_put by a mask",
        lambda x: torch.index_put(x, (x > 0,), torch.tensor(9.0)),
        (ROW,),
        ["Greater", "Where"],
    ),
    ("assignment", lambda x: _assigned(x), (ROW,), None),
    ("masked_scatter", lambda x, m, s: x.masked_scatter(m, s), (ROW, FLAGS, seeded(24)), None),
    ("index_add", lambda x, s: x.index_add(0, torch.tensor([2, 0]), s), (ROW, seeded(2, 8)), None),
    ("index_copy", lambda x, s: x.index_copy(0, torch.tensor([2, 0]), s), (ROW, seeded(2, 8)), None),
]

REDUCTIONS: list[Line] = [
    ("sum", lambda x: x.sum(), (A,), ["ReduceSum"]),
    ("sum of axes", lambda x: x.sum((1, -1)), (A,), ["ReduceSum"]),
    ("sum of truth values", lambda x: (x > 0).sum(1), (ROW,), ["Greater", "Cast", "ReduceSum"]),
    ("mean", lambda x: x.mean(), (A,), ["ReduceMean"]),
    ("mean of integers", lambda x: x.mean(1, dtype=torch.float32), (IDS,), ["Cast", "ReduceMean"]),
    ("prod", lambda x: x.prod(1), (ROW,), ["ReduceProd"]),
    ("amax", lambda x: x.amax((2, 3), keepdim=True), (A,), ["ReduceMax"]),
    ("amin", lambda x: x.amin(1), (A,), ["ReduceMin"]),
    ("max of all", lambda x: x.max(), (A,), ["ReduceMax"]),
    ("aminmax", lambda x: torch.aminmax(x, dim=1), (ROW,), ["ReduceMin", "ReduceMax"]),
    ("any", lambda x: (x > 1).any(1), (ROW,), None),
    ("all", lambda x: (x > -1).all(), (ROW,), None),
    ("var", lambda x: x.var(1), (ROW,), None),
    ("var without correction", lambda x: x.var((2, 3), correction=0, keepdim=True), (A,), None),
    ("std", lambda x: x.std(), (ROW,), None),
    ("var_mean", lambda x: torch.var_mean(x, 1), (ROW,), None),
    ("logsumexp", lambda x: x.logsumexp(1), (ROW,), ["ReduceLogSumExp"]),
    ("norm", lambda x: x.norm(dim=1, keepdim=True), (ROW,), ["ReduceL2"]),
    ("norm 1", lambda x: torch.linalg.vector_norm(x, 1, 1), (ROW,), ["ReduceL1"]),
    ("norm 3", lambda x: torch.linalg.vector_norm(x, 3, 1), (ROW,), ["Abs", "Pow", "ReduceSum", "Pow"]),
    ("norm inf", lambda x: torch.linalg.vector_norm(x, torch.inf), (ROW,), ["Abs", "ReduceMax"]),
    ("norm 0", lambda x: torch.linalg.vector_norm(x.relu(), 0, 1), (ROW,), None),
    ("sum of a scalar", lambda x: x.sum().sum(), (ROW,), ["ReduceSum"]),
]

ORDERS: list[Line] = [
    ("argmax", lambda x: x.argmax(1), (TIES,), ["ArgMax"]),
    ("argmax kept", lambda x: x.argmax(0, keepdim=True), (TIES,), ["ArgMax"]),
    ("argmax of all", lambda x: x.argmax(), (ROW,), ["Reshape", "ArgMax"]),
    ("argmin", lambda x: x.argmin(-1), (TIES,), ["ArgMin"]),
    ("max of an axis", lambda x: x.max(1), (TIES,), ["ReduceMax", "ArgMax"]),
    ("min of an axis", lambda x: x.min(1, keepdim=True), (TIES,), ["ReduceMin", "ArgMin"]),
    ("topk", lambda x: x.topk(3), (ROW,), ["TopK"]),
    ("smallest", lambda x: x.topk(2, 0, largest=False), (ROW,), ["TopK"]),
    ("sort", lambda x: x.sort(), (ROW,), ["TopK"]),
    ("stable sort", lambda x: torch.sort(x, stable=True, descending=True), (TIES,), ["TopK"]),
    ("argsort", lambda x: x.argsort(0), (ROW,), ["TopK"]),
    ("kthvalue", lambda x: x.kthvalue(3, 1), (ROW,), None),
    ("median", lambda x: x.median(1), (ROW,), None),
    ("cumsum", lambda x: x.cumsum(1), (ROW,), ["CumSum"]),
    ("cumsum of truth values", lambda x: (x > 0).cumsum(1), (ROW,), ["Greater", "Cast", "CumSum"]),
    ("cumprod", lambda x: x.cumprod(1), (ROW,), ["Reshape", "Where", "ReduceProd"]),
    ("cummax", lambda x: x.cummax(1), (TIES,), None),
    ("logcumsumexp", lambda x: x.logcumsumexp(0), (ROW,), None),
    ("bucketize", lambda x: torch.bucketize(x, torch.tensor([-1.0, 0, 1])), (ROW,), None),
    ("searchsorted", lambda x: torch.searchsorted(x.sort(1)[0], x, side="right"), (ROW,), None),
]


def _behind(x: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[:, torch.tensor([0, 2])] = values
    return y


def _assigned(x: torch.Tensor) -> torch.Tensor:
    y = x * 1
    y[:, 2] = 0
    y[1, 3:5] = x[0, :2]
    y[y > 1] = -1.0
    return y


@pytest.mark.parametrize(
    ("function", "inputs", "expected"),
    lines({"read": READS, "write": WRITES, "reduction": REDUCTIONS, "order": ORDERS}),
)
def test_function_computes_what_pytorch_does(
    function: Any, inputs: tuple[torch.Tensor, ...], expected: list[str] | None
) -> None:
    check_line(function, inputs, expected)
