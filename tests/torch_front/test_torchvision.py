"""Whole networks of torchvision: every value is PyTorch's, and tracing costs little beyond the export."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from caffeforge.runtime.executor import Executor
from caffeforge.runtime.torch_front import trace
from tests.torch_front.checking import seeded

torchvision = pytest.importorskip("torchvision")

NETWORKS = {
    "alexnet": ({}, 224, 19),
    "vgg11_bn": ({}, 224, 35),
    "resnet18": ({}, 64, 69),
    "resnext50_32x4d": ({}, 64, 175),
    "squeezenet1_1": ({}, 64, 65),
    "densenet121": ({}, 64, 427),
    "googlenet": ({"init_weights": False}, 64, 196),
    "inception_v3": ({"init_weights": False}, 96, 313),
}


def shaken(model: torch.nn.Module) -> torch.nn.Module:
    """Give batch norms statistics, and activations a size, that let every layer show."""
    generator = torch.Generator().manual_seed(1)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            statistics = dict(module.named_buffers())
            statistics["running_mean"].uniform_(-0.1, 0.1, generator=generator)
            statistics["running_var"].uniform_(0.5, 1.5, generator=generator)
        elif isinstance(module, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(module.weight, generator=generator)
    return model.eval()


@pytest.mark.parametrize("name", NETWORKS)
def test_network_computes_what_torch_computes(name: str) -> None:
    options: dict[str, Any]
    options, size, count = NETWORKS[name]
    torch.manual_seed(0)
    model = shaken(getattr(torchvision.models, name)(**options))
    source = trace(model, seeded(1, 3, size, size))
    assert len(source.graph.nodes) == count
    assert source.notes == []
    reference = source.reference(source.example)
    values = [node.outputs[0].name for node in source.graph.nodes]
    assert set(reference) == set(values)
    for value, array in Executor(source.graph).run(source.example, values).items():
        scale = np.abs(reference[value]).max()
        assert reference[value].std() > 1e-3 * scale > 0, f"{value} shows nothing"
        assert np.abs(array - reference[value]).max() < 2e-5 * scale, value
