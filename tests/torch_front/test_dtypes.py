"""Element types: promotion, truth values, whole numbers, half precision, and devices that hold nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from caffeforge.runtime.errors import FrontEndError, UsageError
from caffeforge.runtime.torch_front import trace
from tests.torch_front.checking import checked, seeded

WHOLE = torch.arange(12).reshape(3, 4)
X = seeded(3, 4)

CASES: list[tuple[str, Any, tuple[torch.Tensor, ...]]] = [
    ("whole and float", lambda a, b: a + b, (WHOLE, X)),
    ("true division", lambda a: a / 2, (WHOLE,)),
    ("floor division", lambda a: (a // 3, (-a) % 5), (WHOLE,)),
    ("two sizes of integers", lambda a, b: a * b, (WHOLE.int(), WHOLE)),
    ("short and float", lambda a: a * 2 + a.float(), (WHOLE.short(),)),
    ("bytes", lambda a: ((a / 255).sum(), a + 1), (WHOLE.byte(),)),
    ("signed bytes", lambda a: a + 1, (WHOLE.to(torch.int8),)),
    ("truth and float", lambda a, b: (a > 0) * b, (X, X + 1)),
    ("mask", lambda a, m: (a.masked_fill(m, -1.0), a * m, torch.where(m, a, 0)), (X, WHOLE > 4)),
    (
        "logic",
        lambda a, b: ((a > 1) & (b < 9) | (a == b), (a > 3).sum(1), (a > 3).any(0)),
        (WHOLE, WHOLE * 2),
    ),
    ("where of two kinds", lambda a: torch.where(a > 3, a, 0.5), (WHOLE,)),
    ("powers", lambda a: (a**2, a.float() ** 2), (WHOLE,)),
    ("float and double", lambda a, b: (a + b, a.double().sum()), (X, X.double())),
    ("double without axes", lambda a: a * torch.tensor(2.5, dtype=torch.float64), (X,)),
    ("embedding by int32", nn.Embedding(20, 3), (WHOLE.int(),)),
]


@pytest.mark.parametrize(("model", "inputs"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_equal_to_pytorch_in_value_and_type(model: Any, inputs: tuple[torch.Tensor, ...]) -> None:
    checked(model, *inputs)


@pytest.mark.parametrize("model", [nn.Linear(4, 3), nn.Conv1d(3, 2, 2)], ids=["linear", "conv"])
def test_half_precision(model: nn.Module) -> None:
    # PyTorch sums in half precision, eleven bits a number; the graph sums in single precision.
    checked(model.half(), X.half()[None], rtol=1e-2, atol=1e-2)
    source = trace(model.bfloat16().eval(), X.bfloat16()[None])
    assert source.graph.outputs[0].dtype == "float32"
    assert any("bfloat16" in note for note in source.notes)


def test_a_model_without_elements_is_refused() -> None:
    with torch.device("meta"):
        model = nn.Linear(3, 2)
    with pytest.raises(FrontEndError, match="weight lies on the meta device") as caught:
        trace(model.eval(), seeded(1, 3))
    assert "to_empty" in caught.value.hint
    with pytest.raises(UsageError, match="example input 0 lies on the meta device"):
        trace(nn.ReLU().eval(), torch.empty(2, device="meta"))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_here() -> None:
    class Moves(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.cuda() * 2

    source = trace(Moves().eval(), X)
    with pytest.raises(FrontEndError, match="the model cannot be run: "):
        source.reference(source.example)
