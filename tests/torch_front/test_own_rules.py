"""Operators that are said by others: every value equal to PyTorch's."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from caffeforge.runtime.torch_front.own_rules import RULES
from caffeforge.runtime.torch_front.registry import HANDLERS
from tests.torch_front.checking import checked, seeded

X = seeded(3, 4, 5)
WHOLE = torch.arange(12).reshape(3, 4)
ZEROS = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.0])
ODD = X.clone()
ODD[0, 1, 2] = ODD[1, 0, 0] = ODD[1, 1, 0] = math.nan
GAMMAS = torch.cat([X.flatten() * 8, torch.tensor([1.0, 2.0, 0.5, 1e-3, 50.0, 1.5, 3.0, -0.5, -2.5, 100.0])])

CASES: list[tuple[str, Any, tuple[torch.Tensor, ...]]] = [
    (
        "addbmm",
        lambda x, a, b: torch.addbmm(x, a, b, beta=0.5, alpha=2),
        (seeded(4, 3), seeded(2, 4, 6), seeded(2, 6, 3)),
    ),
    ("copysign", torch.copysign, (X, seeded(3, 4, 5, seed=2))),
    ("copysign of zeros", lambda x, y: torch.copysign(x, y), (X, ZEROS)),
    ("copysign by number", lambda x: torch.copysign(x, -0.0), (X,)),
    ("lgamma", torch.lgamma, (GAMMAS,)),
    ("shift left", lambda x: x << 2, (WHOLE,)),
    ("shift right", lambda x: (-x) >> 1, (WHOLE,)),
    ("shift by elements", torch.bitwise_left_shift, (WHOLE, WHOLE % 3)),
    ("median of numbers", torch.nanmedian, (ODD,)),
    ("median of numbers, axis", lambda x: torch.nanmedian(x, 1), (ODD,)),
    ("median of numbers, kept", lambda x: torch.nanmedian(x, 0, True)[0], (ODD,)),
    ("quantile", lambda x: torch.quantile(x, 0.3), (X,)),
    ("quantiles", lambda x: torch.quantile(x, torch.tensor([0.1, 0.5, 0.9]), 1), (X,)),
    (
        "quantile, nearest",
        lambda x: torch.quantile(x, torch.tensor([0.1, 0.5]), 2, True, interpolation="nearest"),
        (X,),
    ),
    ("quantile, NaN", lambda x: torch.quantile(x, 0.4, -1, interpolation="midpoint"), (ODD,)),
    ("quantile, kept", lambda x: torch.quantile(x, 0.4, keepdim=True, interpolation="higher"), (X,)),
    ("LSTM that projects", nn.LSTM(5, 6, 2, proj_size=3, batch_first=True), (X,)),
    ("LSTM that projects, both ways", nn.LSTM(5, 6, 1, proj_size=3, bidirectional=True, bias=False), (X,)),
    ("norm by the batch", nn.BatchNorm2d(4, track_running_stats=False), (seeded(3, 4, 5, 5),)),
    ("norm by the batch, plain", lambda x: F.batch_norm(x, None, None, training=True), (X,)),
]


@pytest.mark.parametrize(("model", "inputs"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_equal_to_pytorch(model: Any, inputs: tuple[torch.Tensor, ...]) -> None:
    checked(model, *inputs)


def test_no_operator_has_both_a_rule_and_a_handler() -> None:
    assert not set(RULES) & set(HANDLERS)
