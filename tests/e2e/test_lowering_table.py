"""Operators of a list of lowerings that was worked out by hand, each exported and run by real Caffe."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from caffeforge.generated.bvlc import export
from tests.e2e.layer_cases import worst
from tests.e2e.lowering_table import TABLE, Entry
from tests.real_caffe.witness import Witness


class Together(nn.Module):
    """Functions beside each other, each of its own inputs."""

    def __init__(self, entries: list[Entry]) -> None:
        super().__init__()
        self.functions = [function for function, _ in entries]
        self.modules_ = nn.ModuleList(f for f in self.functions if isinstance(f, nn.Module))
        self.counts = [len(shapes) for _, shapes in entries]

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        given = iter(inputs)
        pairs = zip(self.functions, self.counts, strict=True)
        return tuple(function(*(next(given) for _ in range(count))) for function, count in pairs)


@pytest.mark.parametrize("subject", TABLE)
def test_operators_of_pytorch_in_caffe(subject: str, caffe: Witness, tmp_path: Path) -> None:
    entries = TABLE[subject]
    generator = torch.Generator().manual_seed(5)
    shapes = [shape for _, shapes in entries.values() for shape in shapes]
    inputs = tuple(torch.randn(shape, generator=generator) for shape in shapes)
    model = Together(list(entries.values())).eval()
    names = [f"x{index}" for index in range(len(inputs))]
    outputs = [f"y{index}" for index in range(len(entries))]
    result = export(
        model,
        inputs,
        tmp_path / "net",
        input_names=names,
        output_names=outputs,
        verify=False,
        approximate=subject == "pairs",
    )
    feed = {name: x.numpy() for name, x in zip(names, inputs, strict=True)}
    found = caffe.run(result.prototxt, result.caffemodel, feed, outputs)
    with torch.no_grad():
        due = dict(zip(outputs, model(*inputs), strict=True))
    errors = {}
    for name, output in zip(entries, outputs, strict=True):
        errors[name] = error(found[output], due[output].numpy())
    worst(errors)


def error(found: Any, due: Any) -> float:
    """Return the largest error as a part of the scale."""
    assert due.std() > 0 and found.shape == due.shape
    return float(np.abs(found - due.astype(np.float64)).max() / np.abs(due).max())
