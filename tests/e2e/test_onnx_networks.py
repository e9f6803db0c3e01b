"""From PyTorch to ONNX, by PyTorch's own exporter, to Caffe: real Caffe computes what PyTorch does."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from caffeforge.generated.bvlc import export
from tests.e2e.networks import RESNET18, images
from tests.real_caffe.witness import Witness

LIMIT = 1e-4  # of the logits' scale


@pytest.mark.parametrize("opset", [9, 17])
def test_resnet18_through_onnx_in_real_caffe(opset: int, caffe: Witness, tmp_path: Path) -> None:
    model, x = RESNET18.build(), images(2, (64, 64), seed=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this exporter is the old one
        torch.onnx.export(
            model, (x,), str(tmp_path / "net.onnx"), dynamo=False, opset_version=opset, input_names=["data"]
        )
    result = export(tmp_path / "net.onnx", None, tmp_path / "net")
    assert result.verification is not None and result.verification.passed
    (found,) = caffe.run(result.prototxt, result.caffemodel, {"data": x.numpy()}).values()
    with torch.no_grad():
        expected = model(x).numpy()
    scale = np.abs(expected).max()
    assert np.abs(expected[0] - expected[1]).max() > 0.05 * scale
    assert np.abs(found - expected).max() < LIMIT * scale
