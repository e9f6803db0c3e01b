"""Small models that other converters got wrong, exported beside each other in one net for real Caffe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from caffeforge.generated.bvlc import export, load
from caffeforge.runtime.net import Layer
from caffeforge.runtime.report import ExportResult
from tests.e2e.layer_cases import difference, worst
from tests.real_caffe.witness import Witness

Model = Callable[..., torch.Tensor | tuple[torch.Tensor, ...]]


@dataclass(frozen=True)
class Case:
    """A model with its inputs; `name` begins the names of its layers."""

    name: str
    model: Model
    inputs: tuple[torch.Tensor, ...]

    def expected(self) -> tuple[torch.Tensor, ...]:
        """Return what PyTorch computes."""
        with torch.no_grad():
            found = self.model(*self.inputs)
        return found if isinstance(found, tuple) else (found,)


class Plain(nn.Module):
    """A function as a module, so that its layers have its name."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, ...]:
        return self.model(*inputs)


class Together(nn.Module):
    """Models side by side: the inputs and outputs of the first, then those of the next, and so on."""

    def __init__(self, cases: tuple[Case, ...]) -> None:
        super().__init__()
        self.cases = cases
        for case in cases:
            self.add_module(case.name, case.model if isinstance(case.model, nn.Module) else Plain(case.model))

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        made: list[torch.Tensor] = []
        for case in self.cases:
            own, inputs = inputs[: len(case.inputs)], inputs[len(case.inputs) :]
            found = self.get_submodule(case.name)(*own)
            made.extend(found if isinstance(found, tuple) else (found,))
        return tuple(made)


@dataclass(frozen=True)
class Checked:
    """What cases became, all of them found to be right by real Caffe."""

    result: ExportResult
    layers: dict[str, list[Layer]]

    def types(self, name: str) -> list[str]:
        """Return the types of a case's layers in order."""
        return [layer.type for layer in self.layers[name]]

    def params(self, name: str) -> list[Any]:
        """Return the parameters of a case's layers in order, of a class for each type."""
        return [layer.param for layer in self.layers[name]]


def check(cases: tuple[Case, ...], witness: Witness, folder: Path) -> Checked:
    """Export all cases as one net, run it in Caffe and compare each output with PyTorch's."""
    model = Together(cases).eval()
    inputs = [x for case in cases for x in case.inputs]
    names = [f"{case.name}_in{place}" for case in cases for place in range(len(case.inputs))]
    due = [case.expected() for case in cases]
    outputs = [f"{case.name}_out{p}" for case, made in zip(cases, due, strict=True) for p in range(len(made))]
    result = export(model, tuple(inputs), folder / "net", input_names=names, output_names=outputs)
    fed = {name: x.numpy() for name, x in zip(names, inputs, strict=True)}
    found = witness.run(result.prototxt, result.caffemodel, fed, outputs)
    expected = [y.numpy() for made in due for y in made]
    worst({name: difference(found[name], y) for name, y in zip(outputs, expected, strict=True)})
    for name, y in zip(outputs, expected, strict=True):
        assert y.std() > 0, f"{name}: all results are alike"
    layers = [layer for layer in load(result.prototxt, result.caffemodel).net.layers if layer.bottoms]
    return Checked(
        result, {c.name: [layer for layer in layers if belongs(layer.name, c.name)] for c in cases}
    )


def belongs(layer: str, case: str) -> bool:
    """Tell whether a layer is one of a case's, whose names end the same way or go on after a mark."""
    return layer == case or layer.startswith((f"{case}.", f"{case}/"))


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    """Return normally distributed numbers, always the same."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))
