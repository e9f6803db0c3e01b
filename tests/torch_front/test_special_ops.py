"""Special functions by approximations: equal over their whole range, or refused by name."""

from __future__ import annotations

import pytest
import torch

from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.torch_front import trace
from tests.torch_front.checking import Function, checked


def test_inverse_error_function() -> None:
    ends = torch.tensor([-1.0, 1.0, 0.9999999, -0.9999999, 1.5, -0.0])
    x = torch.cat([torch.linspace(-0.9999, 0.9999, 501), ends])
    checked(torch.erfinv, x, rtol=2e-6, atol=1e-7)
    checked(torch.special.ndtri, torch.linspace(0, 1, 65), rtol=1e-5, atol=1e-6)


def test_special_function_without_place_is_refused_with_the_reason() -> None:
    for function in (torch.digamma, torch.special.bessel_j0, torch.special.i1e):
        with pytest.raises(FrontEndError, match="no layer computes this special function"):
            trace(Function(function), torch.ones(3))
