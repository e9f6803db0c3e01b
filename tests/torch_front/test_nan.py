"""Operators that pass NaN on as PyTorch does; docs/pytorch.md lists those that expect numbers."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from tests.torch_front.checking import checked, seeded

X = seeded(1, 3, 4, 4)
X[0, 0, 1, 2] = X[0, 2, 0, 0] = math.nan
Y = seeded(1, 3, 4, 4, seed=1)

CASES: dict[str, Any] = {
    "sums": lambda x: (x.sum(3), x.mean(1), x.prod(2), x.cumsum(3), x.logsumexp(3)),
    "norms": lambda x: (x.std(3), F.layer_norm(x, (4,)), x.softmax(1), x.log_softmax(3)),
    "clamps": lambda x: (
        x.clamp(-1, 1),
        x.clamp(min=0),
        x.clamp(Y, Y + 1),
        torch.maximum(x, Y),
        torch.minimum(Y, x),
    ),
    "one of two": lambda x: (torch.fmax(x, Y), torch.fmin(Y, x)),
    "activations": lambda x: (
        F.relu(x),
        F.relu6(x),
        F.hardswish(x),
        F.leaky_relu(x),
        F.gelu(x),
        F.silu(x),
        F.elu(x),
    ),
    "more activations": lambda x: (
        F.mish(x),
        F.softplus(x),
        F.hardsigmoid(x),
        F.logsigmoid(x),
        F.celu(x),
        F.selu(x),
    ),
    "comparisons": lambda x: (
        x != x,
        x == x,
        x > 0,
        x <= 0,
        torch.where(x > 0, x, 0),
        x.bool(),
        torch.isclose(x, x),
    ),
    "order": lambda x: (x.sort(3)[0], x.topk(2, 3)[0], x.topk(2, 3, largest=False)[0]),
    "rounding": lambda x: (x.round(), x.floor(), x.trunc(), x.frac(), x.remainder(2), x.fmod(2), x // 2),
    "of NaN": lambda x: (x.isnan(), x.nan_to_num(7), x.nanmean(3), x.nansum(3), x.isfinite(), x.nanmedian()),
    "powers": lambda x: (
        x**2,
        x**0,
        x.sqrt(),
        torch.hypot(x, Y),
        torch.logaddexp(x, Y),
        torch.lerp(x, Y, 0.3),
    ),
    "quantile": lambda x: (x.quantile(0.3, 3),),
    "pools": lambda x: (F.avg_pool2d(x, 2), F.interpolate(x, scale_factor=2.0, mode="bilinear")),
}


@pytest.mark.parametrize("model", CASES.values(), ids=CASES)
def test_nan_is_passed_on(model: Any) -> None:
    checked(model, X)
