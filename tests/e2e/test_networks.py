"""Networks of torchvision, exported to bvlc: real Caffe computes from the files what PyTorch does."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import nn

from caffeforge.generated.bvlc import export
from caffeforge.runtime.report import ExportResult
from tests.e2e import vendor
from tests.e2e.networks import GOOGLENET, NETWORKS, RESNET18, Network, images
from tests.real_caffe.witness import Witness

LIMIT = 1e-4  # of the logits' scale


@dataclass(frozen=True)
class Exported:
    """A network exported twice: for one image of its own size, and for two smaller ones."""

    network: Network
    model: nn.Module
    one: ExportResult
    two: ExportResult


@pytest.fixture(scope="module", params=NETWORKS, ids=lambda network: network.name)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exported]:
    """Each network in turn; its files, up to 1 GB, are removed afterwards."""
    network: Network = request.param
    folder = tmp_path_factory.mktemp(network.name)
    model = network.build()
    one = export(model, (images(1, network.size, seed=1),), folder / "one")
    two = export(model, (images(2, network.small, seed=2),), folder / "two")
    yield Exported(network, model, one, two)
    shutil.rmtree(folder)


def logits(model: nn.Module, x: torch.Tensor) -> npt.NDArray[np.float32]:
    """Return what PyTorch computes for several images, which must differ enough to prove something."""
    with torch.no_grad():
        result: npt.NDArray[np.float32] = model(x).numpy()
    scale = np.abs(result).max()
    assert result.std(axis=1).min() > 0.1 * scale, "the logits hardly vary"
    assert np.abs(result[0] - result[1]).max() > 0.05 * scale, "the logits hardly depend on the image"
    return result


def run(witness: Witness, files: ExportResult, x: torch.Tensor) -> npt.NDArray[np.float32]:
    """Return the net's only output."""
    (result,) = witness.run(files.prototxt, files.caffemodel, {"x": x.numpy()}).values()
    return result


def assert_logits(given: npt.NDArray[Any], expected: npt.NDArray[Any]) -> None:
    assert given.shape == expected.shape
    error = np.abs(given - expected).max() / np.abs(expected).max()
    print(f"error: {error:.1e} of the scale")
    assert error < LIMIT


def test_caffe_agrees_on_one_image_and_when_reshaped_to_two(exported: Exported, caffe: Witness) -> None:
    x = images(3, exported.network.size, seed=3)
    expected = logits(exported.model, x)
    assert_logits(run(caffe, exported.one, x[:1]), expected[:1])
    assert_logits(run(caffe, exported.one, x[1:]), expected[1:])


def test_caffe_agrees_on_a_batch_of_two(exported: Exported, caffe: Witness) -> None:
    x = images(2, exported.network.small, seed=4)
    assert_logits(run(caffe, exported.two, x), logits(exported.model, x))


def test_protobuf_reads_the_same_layers_from_both_files(exported: Exported) -> None:
    for files in (exported.one, exported.two):
        text, binary = vendor.parse(files.prototxt.read_text()), vendor.net_parameter()()
        binary.ParseFromString(files.caffemodel.read_bytes())
        assert files.weights_bytes == 4 * sum(
            len(blob.data) for layer in binary.layer for blob in layer.blobs
        )
        for layer in binary.layer:
            layer.ClearField("blobs")
        assert list(text.layer) == list(binary.layer)
        assert text.name == binary.name


@pytest.mark.parametrize("network", [RESNET18, GOOGLENET], ids=lambda network: network.name)
def test_second_witness_agrees(network: Network, kendryte: Witness, tmp_path: Path) -> None:
    model, x = network.build(), images(2, network.small, seed=5)
    assert_logits(run(kendryte, export(model, (x,), tmp_path / "net", verify=False), x), logits(model, x))
