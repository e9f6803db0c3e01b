"""What detectors do beside computing: they store anchors on themselves, and read numbers out of buffers."""

from __future__ import annotations

import torch
from torch import nn

from caffeforge.runtime.torch_front import trace
from tests.torch_front.checking import checked, seeded, types

X = seeded(1, 3, 4, 5)


class Anchored(nn.Module):
    """Makes its anchors anew for another size, and keeps them."""

    shape: torch.Size | None = None

    def __init__(self) -> None:
        super().__init__()
        self.anchors = torch.empty(0)
        self.stride = nn.Buffer(torch.tensor([8.0, 16.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.shape != x.shape:
            self.shape = x.shape
            places = torch.arange(x.shape[3], dtype=x.dtype) + 0.5
            self.anchors = places * torch.full((x.shape[3],), self.stride[1].item())
            self.last = x
        return x + self.anchors


def test_what_a_model_stores_on_itself_is_no_trace_of_the_trace() -> None:
    model = Anchored().eval()
    before = model.anchors
    source = trace(model, X)
    assert model.anchors is before
    assert model.shape is None and "shape" not in vars(model) and not hasattr(model, "last")
    assert types(source.graph) == ["Add"]
    name = source.graph.outputs[0].name
    assert torch.equal(torch.from_numpy(source.reference(source.example)[name]), model(X))


def test_number_out_of_a_buffer_is_a_constant() -> None:
    assert types(checked(Anchored(), X).graph) == ["Add"]

    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.factor = nn.Buffer(torch.tensor([2.0, 3.0]))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.factor[1].item()

    assert types(checked(Scaled(), X).graph) == ["Mul"]
