"""Networks beyond plain convolution, exported to bvlc: real Caffe computes what PyTorch does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from torch import nn

from caffeforge.generated.bvlc import export, load
from tests.e2e import models
from tests.e2e.networks import images, randomize
from tests.real_caffe.witness import Witness

LIMIT = 1e-4  # of the output's scale
SEGMENTATION = {"weights": None, "weights_backbone": None}


@dataclass(frozen=True)
class Case:
    """A network, how to build it, and the size of its images, small so that Caffe is quick."""

    name: str
    size: tuple[int, int] = (64, 96)
    options: Mapping[str, Any] = field(default_factory=lambda: {"weights": None})

    def build(self) -> nn.Module:
        torch.manual_seed(0)
        homes = (models, torchvision.models.segmentation, torchvision.models)
        maker: Callable[..., nn.Module] = next(getattr(h, self.name) for h in homes if hasattr(h, self.name))
        options = {} if hasattr(models, self.name) else self.options
        model = maker(**options).eval()
        randomize(model, images(4, self.size, seed=99))
        return model


CASES = (
    Case("mobilenet_v2"),
    Case("mobilenet_v3_small"),
    Case("mobilenet_v3_large"),
    Case("mnasnet0_5"),
    Case("shufflenet_v2_x0_5"),
    Case("efficientnet_b0"),
    Case("regnet_y_400mf"),
    Case("regnet_x_400mf"),
    Case("fcn_resnet50", options=SEGMENTATION),
    Case("deeplabv3_mobilenet_v3_large", options=SEGMENTATION),
    Case("lraspp_mobilenet_v3_large", options=SEGMENTATION),
    Case("convnext_tiny"),
    Case("swin_t"),
    Case("vit_b_16", (64, 64), {"weights": None, "image_size": 64}),
    Case("UNet", (24, 40)),
    Case("Fsrcnn", (13, 17)),
    Case("PixelShuffleNet", (13, 17)),
    Case("Crnn", (16, 38)),
    Case("BiGru", (15, 24)),
)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_caffe_computes_what_pytorch_does(case: Case, batch: int, caffe: Witness, tmp_path: Path) -> None:
    model, x = case.build(), images(batch, case.size, seed=batch)
    result = export(model, (x,), tmp_path / "net", verify=False)
    net = load(result.prototxt, result.caffemodel)
    (name,) = net.inputs
    (output,) = net.outputs
    with torch.no_grad():
        given = model(x)
        expected = (given["out"] if isinstance(given, dict) else given).numpy()
    found = caffe.run(result.prototxt, result.caffemodel, {name: x.numpy()}, [output])[output]
    assert found.shape == expected.shape
    scale = np.abs(expected).max()
    assert expected.std() > 0.02 * scale, "the output hardly varies"
    assert np.abs(found - expected).max() < LIMIT * scale
    ours = net.run({name: x.numpy()})[output]
    assert np.abs(ours - expected).max() < LIMIT * scale
