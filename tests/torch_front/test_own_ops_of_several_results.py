"""An op of a backend's own domain with several results: written as one layer, read back, compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from caffeforge.runtime.backend import Backend
from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.export import export
from caffeforge.runtime.leaf import leaf
from caffeforge.runtime.loaded import load
from tests.docs.backends import build
from tests.torch_front.checking import seeded

MAPPING = """
backend: vendort
extends: bvlc
types: {Halves: []}
custom:
  vendort.Halves:
    inputs: [X]
    outputs: [Upper, Mean]
    shape:
      Upper: ["X.shape[0]", "X.shape[1]", "X.shape[2] // 2", "X.shape[3]"]
      Mean: ["X.shape[0]", "X.shape[1]", "1", "1"]
    reference: |
      Upper = Slice(X, starts=[0], ends=[X.shape[2] // 2], axes=[2])
      Mean = ReduceMean(X, axes=[2, 3], keepdims=1)
ops:
  vendort.Halves: {layer: Halves}
layers:
  Halves: {rewrite: "tops[0], tops[1] = vendort.Halves(bottom)"}
"""


class Halves(nn.Module):
    """NumPy inside, which tracing cannot see."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        array = x.numpy()
        return (
            torch.from_numpy(array[:, :, : array.shape[2] // 2].copy()),
            torch.from_numpy(array.mean((2, 3), keepdims=True)),
        )


leaf(Halves, "vendort.Halves")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.halves = Halves()

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        upper, mean = self.halves(self.conv(image))
        result: torch.Tensor = torch.relu(upper) * mean
        return result


@pytest.fixture(scope="module")
def vendort(tmp_path_factory: pytest.TempPathFactory) -> Backend:
    return build(tmp_path_factory.mktemp("vendort"), MAPPING)


def test_both_results_are_read_back(vendort: Backend, tmp_path: Path) -> None:
    image = seeded(1, 3, 8, 6)
    result = export(vendort, Net().eval(), image, tmp_path / "net", in_place=False)
    assert result.verification is not None and result.verification.passed
    text = (tmp_path / "net.prototxt").read_text()
    layer = text[text.index('type: "Halves"') :].split("layer {")[0]
    assert layer.count("top:") == 2
    loaded = load(tmp_path / "net.prototxt", tmp_path / "net.caffemodel", vendort)
    tops = [line.split('"')[1] for line in layer.splitlines() if "top:" in line]
    found = loaded.run({"image": image.numpy()}, tops)
    blob = loaded.run({"image": image.numpy()}, ["conv"])["conv"]
    np.testing.assert_allclose(found[tops[0]], blob[:, :, :3], rtol=1e-6)
    np.testing.assert_allclose(found[tops[1]], blob.mean((2, 3), keepdims=True), rtol=1e-5, atol=1e-6)


def test_a_shape_that_is_not_pytorchs_is_refused(tmp_path: Path) -> None:
    backend = build(tmp_path / "wrong", MAPPING.replace('"1", "1"', '"1", "2"'))
    with pytest.raises(CaffeforgeError, match=r"as result 1, by the mapping vendort.Halves yields"):
        export(backend, Net().eval(), seeded(1, 3, 8, 6), tmp_path / "net")


def test_a_result_without_a_shape_cannot_be_read(tmp_path: Path) -> None:
    mapping = "\n".join(line for line in MAPPING.splitlines() if "Mean: [" not in line)
    backend = build(tmp_path / "less", mapping)
    with pytest.raises(CaffeforgeError, match="does not give the sizes of all 2 results"):
        export(backend, Net().eval(), seeded(1, 3, 8, 6), tmp_path / "net")


def test_a_shape_of_no_output_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="Mena"):
        build(tmp_path / "typo", MAPPING.replace("Mean: [", "Mena: ["))
