"""Operators that PyTorch does not take apart, or not into what the hub has, said by other operators.

Each function takes what its operator takes, is traced as PyTorch's own rules are, and yields the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch
from torch import Tensor
from torch._decomp import decomposition_table
from torch._ops import OpOverload
from torch.fx import Node

from caffeforge.runtime.torch_front.binding import bind

aten = torch.ops.aten

Rule = Callable[..., Any]

# Lanczos' approximation of the gamma function for g = 7: the error is below that of float32.
_LANCZOS: Final = (
    0.99999999999980993,
    676.5203681218851,
    -1259.1392167224028,
    771.32342877765313,
    -176.61502916214059,
    12.507343278686905,
    -0.13857109526572012,
    9.9843695780195716e-6,
    1.5056327351493116e-7,
)


def rule_of(node: Node) -> Rule | None:
    """Return the function that says an operator by others, None if it stays or PyTorch has the rule."""
    if node.target is aten.lstm.input and _projects(node):
        return decomposition_table[aten.lstm.input]
    return RULES.get(node.target) if isinstance(node.target, OpOverload) else None


def _projects(node: Node) -> bool:
    """Tell whether an LSTM projects its hidden states, which ONNX's does not: it runs step by step then."""
    given = bind(node.target, node.args, node.kwargs)  # type: ignore[arg-type]  # an overload
    layers = given["num_layers"] * (2 if given["bidirectional"] else 1)
    return len(given["params"]) // layers in (3, 5)


def _addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    product = (batch1 @ batch2).sum(0)
    product = product if alpha == 1 else product * alpha
    return product if beta == 0 else product + (self if beta == 1 else self * beta)


def _copysign(self: Tensor, other: Any) -> Tensor:
    size = self.abs()
    if not isinstance(other, Tensor):
        return -size if math.copysign(1, other) < 0 else size
    negative = (other < 0) | (other.reciprocal() < 0)  # which a negative zero's is
    return torch.where(negative, -size, size)


def _lgamma(self: Tensor) -> Tensor:
    """Return log |gamma|: by Lanczos for what is above one half, mirrored below.

    Near the zeros at one and two the sum of the logarithms would lose all digits, so float64 is used.
    """
    x = self.double()
    low = x < 0.5
    z = torch.where(low, 1 - x, x) - 1
    total = torch.full_like(z, _LANCZOS[0])
    for place, part in enumerate(_LANCZOS[1:], 1):
        total = total + part / (z + place)
    base = z + 7.5
    above = 0.5 * math.log(2 * math.pi) + (z + 0.5) * base.log() - base + torch.log(total)
    # The sine of what lies beyond the nearest whole number is exact.
    sine = torch.sin(math.pi * (x - x.round())).abs()
    below = math.log(math.pi) - sine.log() - above
    found = torch.where(low, below, above)
    return torch.where(self.isinf(), math.inf, found).to(self.dtype)


def _shifted_left(self: Any, other: Any) -> Tensor:
    result: Tensor = self * torch.pow(torch.full((), 2), other)
    return result.to(self.dtype) if isinstance(self, Tensor) else result


def _shifted_right(self: Any, other: Any) -> Tensor:
    result: Tensor = torch.floor_divide(self, torch.pow(torch.full((), 2), other))
    return result.to(self.dtype) if isinstance(self, Tensor) else result


def _nanmedian_dim(self: Tensor, dim: int, keepdim: bool = False) -> Sequence[Tensor]:
    """Take the lower one in the middle of the numbers, which are sorted to the front."""
    x = self if self.dim() else self.unsqueeze(0)
    odd = x.isnan()
    values, places = torch.where(odd, math.inf, x).sort(stable=True, dim=dim)
    count = x.shape[dim] - odd.sum(dim, keepdim=True)
    middle = ((count - 1).clamp(min=0) // 2).to(torch.int64)
    found = torch.where(count == 0, math.nan, values.gather(dim, middle))
    result = (found, places.gather(dim, middle))
    if not self.dim():
        return [part.squeeze(0) for part in result]
    return list(result) if keepdim else [part.squeeze(dim) for part in result]


def _nanmedian(self: Tensor) -> Tensor:
    return _nanmedian_dim(self.reshape(-1), 0)[0]


def _quantile(
    self: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """Sort, and take or mix the two elements between which the quantile lies; NaN yields NaN."""
    rank = self.dim()
    x = self.reshape(-1) if dim is None else self.movedim(dim, -1) if rank else self.reshape(1)
    q = q if isinstance(q, Tensor) else torch.full((), q, dtype=self.dtype)
    places = q.reshape(-1) * (x.shape[-1] - 1)
    ordered = x.sort(-1)[0]

    def at(index: Tensor) -> Tensor:
        return ordered.index_select(-1, index.to(torch.int64))

    if interpolation in ("lower", "higher", "nearest"):
        rounding = {"lower": torch.floor, "higher": torch.ceil, "nearest": torch.round}[interpolation]
        found = at(rounding(places))
    else:
        below = places.floor()
        weight = torch.full_like(places, 0.5) if interpolation == "midpoint" else places - below
        weight = torch.where(places == below, torch.zeros_like(weight), weight)
        found = torch.lerp(at(below), at(places.ceil()), weight)
    found = torch.where(x.isnan().any(-1, keepdim=True), math.nan, found).movedim(-1, 0)
    if keepdim:
        shape = [1] * rank if dim is None else [1 if i == dim % rank else s for i, s in enumerate(self.shape)]
        found = found.reshape(-1, *shape)
    elif dim is None:
        found = found.reshape(-1)
    return found if q.dim() else found.squeeze(0)


RULES: Final[Mapping[OpOverload, Rule]] = {
    aten.addbmm.default: _addbmm,
    aten.copysign.Tensor: _copysign,
    aten.copysign.Scalar: _copysign,
    aten.lgamma.default: _lgamma,
    aten.special_gammaln.default: _lgamma,
    aten.bitwise_left_shift.Tensor: _shifted_left,
    aten.bitwise_left_shift.Tensor_Scalar: _shifted_left,
    aten.bitwise_left_shift.Scalar_Tensor: _shifted_left,
    aten.bitwise_right_shift.Tensor: _shifted_right,
    aten.bitwise_right_shift.Tensor_Scalar: _shifted_right,
    aten.bitwise_right_shift.Scalar_Tensor: _shifted_right,
    aten.__lshift__.Scalar: _shifted_left,
    aten.__lshift__.Tensor: _shifted_left,
    aten.__rshift__.Scalar: _shifted_right,
    aten.__rshift__.Tensor: _shifted_right,
    aten.nanmedian.default: _nanmedian,
    aten.nanmedian.dim: _nanmedian_dim,
    aten.quantile.default: _quantile,
    aten.quantile.scalar: _quantile,
}
