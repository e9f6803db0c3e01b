"""Rockchip's simulator reads what we write and computes the same, as far as half precision goes."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
import torch
from torch import nn

from caffeforge.generated.bvlc import export
from caffeforge.runtime.compare import Tolerance
from caffeforge.runtime.sides import compare_sides, input_sets, open_pair
from caffeforge.runtime.sides.opened import Opening
from caffeforge.runtime.sides.runner_side import RunnerSide
from tests.real_caffe.witness import cache_directory
from tests.runners import rknn

PYTHON = cache_directory() / "rknn" / "bin" / "python"
HALF = 1e-2  # of scale: eleven bits a number, over the layers of a small net


@pytest.fixture(scope="module")
def simulator() -> Path:
    """The interpreter that has the toolkit; where it is missing the test is skipped."""
    command = [str(PYTHON), "-I", "-c", "import rknn.api"]
    if not PYTHON.exists() or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("rknn-toolkit2 is not installed; tests/runners/rknn.sh installs it")
    return PYTHON


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.wide = nn.Sequential(nn.Conv2d(8, 8, 3, stride=2, padding=1, groups=8), nn.Hardswish())
        self.head = nn.Linear(8 * 8 * 8, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(torch.flatten(self.wide(self.stem(image)), 1))
        return logits


def test_the_simulator_of_an_npu_computes_what_the_model_does(simulator: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Net().eval()
    result = export(model, (torch.randn(1, 3, 16, 16),), tmp_path / "net", output_names=["logits"])
    torch.export.save(torch.export.export(model, (torch.randn(1, 3, 16, 16),)), tmp_path / "net.pt2")
    words = [str(simulator), "-I", rknn.__file__, str(result.prototxt), str(result.caffemodel)]
    command = f"{shlex.join(words)} {{inputs}} {{outputs}} logits"
    opening = Opening("bvlc", "bvlc", None)
    source, net = open_pair(str(tmp_path / "net.pt2"), str(result.prototxt), opening)
    target = RunnerSide(command, net.inputs, net.outputs)
    sets = list(input_sets.random_sets(source.inputs, 1, 0))
    found = compare_sides(source, target, sets, accepted=Tolerance(HALF))
    assert found.passed, found.table()
    # It takes a text for weights without a word, and computes something else: that is what comparing is for.
    other = RunnerSide(command.replace(".caffemodel", ".prototxt"), net.inputs, net.outputs)
    assert not compare_sides(source, other, sets, accepted=Tolerance(HALF)).passed
