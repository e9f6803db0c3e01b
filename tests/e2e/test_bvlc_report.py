"""What a report says is true: printed errors of approximations, costs, and whether the batch is fixed."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from caffeforge.generated.bvlc import export
from caffeforge.runtime.report import ExportResult
from tests.real_caffe.witness import Witness, WitnessError

GRID = torch.linspace(-12.0, 12.0, 24001).reshape(1, 1, -1)
ANGLES = torch.linspace(-900.0, 900.0, 90001).reshape(1, 1, -1)


class Function(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def printed(result: ExportResult) -> float:
    """Return the error that the report prints."""
    found = re.findall(r"within (\d\S*?e-\d+)", "\n".join(result.notes))
    assert len(found) == 1, result.notes
    return float(found[0])


def measured(witness: Witness, result: ExportResult, x: Tensor, exact: Any) -> float:
    """Return the largest absolute error in Caffe."""
    ((_, found),) = witness.run(result.prototxt, result.caffemodel, {"x": x.numpy()}).items()
    return float(np.abs(found - exact).max())


@pytest.mark.parametrize(
    ("function", "points", "approximate"),
    [
        (nn.functional.gelu, GRID, False),
        (nn.functional.gelu, GRID, True),
        (torch.erf, GRID, False),
        (torch.sin, ANGLES, False),
        (torch.cos, ANGLES, False),
    ],
    ids=["gelu", "gelu, approximate", "erf", "sin", "cos"],
)
def test_the_printed_error_is_the_largest_one(
    function: Callable[[Tensor], Tensor], points: Tensor, approximate: bool, caffe: Witness, tmp_path: Path
) -> None:
    model = Function(function).eval()
    result = export(model, (points,), tmp_path / "net", approximate=approximate)
    exact = function(points.double()).numpy()
    error = measured(caffe, result, points, exact)
    print(f"{result.layers - 1} layers, error {error:.2e}, printed {printed(result):.1e}")
    assert 0.3 * printed(result) < error <= 1.02 * printed(result)


def test_an_approximation_is_taken_only_where_it_is_allowed(tmp_path: Path) -> None:
    x = torch.randn(1, 2, 50)
    fine = export(nn.GELU().eval(), (x,), tmp_path / "fine")
    coarse = export(nn.GELU().eval(), (x,), tmp_path / "coarse", approximate=True)
    assert coarse.layers < fine.layers
    assert printed(coarse) > 100 * printed(fine)


class Assigned(nn.Module):
    """Writes at other places of each item."""

    def forward(self, x: Tensor) -> Tensor:
        places = torch.arange(x.shape[0] * 3).reshape(x.shape[0], 3) % 4
        return x.scatter(1, places, x[:, :3] * 2)


def told(result: ExportResult) -> bool:
    return any("the batch is fixed at 2" in note for note in result.notes)


def test_a_fixed_batch_is_told(caffe: Witness, tmp_path: Path) -> None:
    x = torch.randn(2, 4, generator=torch.Generator().manual_seed(0))
    result = export(Assigned().eval(), (x,), tmp_path / "net")
    assert told(result)
    more = {"x": np.concatenate([x.numpy(), x.numpy()[:1]])}
    try:
        ((_, found),) = caffe.run(result.prototxt, result.caffemodel, more).items()
    except WitnessError:
        return
    assert found.shape[0] == 2  # not of three items


def test_a_net_that_takes_any_batch_is_not_said_to_be_fixed(caffe: Witness, tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU6(), nn.Flatten(), nn.Linear(168, 2))
    result = export(model.eval(), (torch.randn(2, 3, 8, 9),), tmp_path / "net", input_names=["x"])
    assert not told(result)
    more = {"x": np.zeros((3, 3, 8, 9), np.float32)}
    ((_, found),) = caffe.run(result.prototxt, result.caffemodel, more).items()
    assert found.shape == (3, 2)


def test_the_cost_of_lowerings_is_told(tmp_path: Path) -> None:
    result = export(nn.Hardswish().eval(), (torch.randn(1, 2, 9),), tmp_path / "net")
    assert any("written as 5 layers each: 2 Power, 2 ReLU, Eltwise" in note for note in result.notes), (
        result.notes
    )
