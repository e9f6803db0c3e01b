"""Weights that a model uses several times stand once in the caffemodel, and real Caffe finds them."""

from pathlib import Path

import numpy as np
import torch
from torch import nn

from caffeforge.generated import bvlc
from caffeforge.runtime.report import ExportResult
from tests.e2e.layer_cases import difference
from tests.real_caffe.witness import Witness


class Siamese(nn.Module):
    """One branch for two images."""

    def __init__(self) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.PReLU(16), nn.Flatten(), nn.Linear(16 * 20, 32)
        )

    def forward(self, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.branch(x), self.branch(z)], 1)


class Steps(nn.Module):
    """A GRU of seven steps."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(5, 64, bidirectional=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        every: torch.Tensor = self.gru(x)[0]
        return every


def exported(model: nn.Module, inputs: dict[str, torch.Tensor], folder: Path) -> ExportResult:
    torch.manual_seed(0)
    return bvlc.export(model.eval(), tuple(inputs.values()), folder / "net", input_names=list(inputs))


def check(
    model: nn.Module, inputs: dict[str, torch.Tensor], witness: Witness, folder: Path
) -> tuple[str, ExportResult]:
    """Compare with PyTorch in Caffe and in our own run; return the text and the files."""
    files = exported(model, inputs, folder)
    prototxt, caffemodel, _ = files.files
    fed = {name: tensor.numpy() for name, tensor in inputs.items()}
    with torch.no_grad():
        due = model(*inputs.values()).numpy()
    again = bvlc.load(prototxt, caffemodel)
    (output,) = again.outputs
    assert difference(again.run(fed)[output], due) < 1e-5
    assert difference(witness.run(prototxt, caffemodel, fed, [output])[output], due) < 1e-5
    weights = 4 * sum(parameter.numel() for parameter in model.parameters())
    assert files.weights_bytes <= weights
    assert caffemodel.stat().st_size < weights + 20_000  # names of layers
    return prototxt.read_text(), files


def test_branches_of_one_module_share_all_weights(caffe: Witness, tmp_path: Path) -> None:
    model = Siamese()
    inputs = {"x": torch.randn(1, 3, 4, 5), "z": torch.randn(1, 3, 4, 5)}
    text, files = check(model, inputs, caffe, tmp_path)
    assert text.count("param { name:") == 2 * 5
    assert files.weights_bytes == 4 * sum(parameter.numel() for parameter in model.parameters())


def test_steps_of_a_gru_share_the_recurrent_weights(caffe: Witness, tmp_path: Path) -> None:
    check(Steps(), {"x": torch.randn(7, 2, 5)}, caffe, tmp_path)


def test_second_caffe_agrees(kendryte: Witness, tmp_path: Path) -> None:
    check(Steps(), {"x": torch.randn(7, 2, 5)}, kendryte, tmp_path)


def test_equal_weights_of_two_modules_stay_apart(tmp_path: Path) -> None:
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    second.load_state_dict(first.state_dict())
    files = exported(nn.Sequential(first, second), {"x": torch.randn(2, 4)}, tmp_path)
    assert "param { name:" not in files.files[0].read_text()
    assert np.isclose(files.weights_bytes, 4 * 2 * 20)
