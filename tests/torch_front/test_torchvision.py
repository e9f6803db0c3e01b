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

# Options, the size of the image, and the number of hub nodes.
NETWORKS: dict[str, tuple[dict[str, Any], int, int]] = {
    "alexnet": ({}, 224, 19),
    "resnet18": ({}, 64, 69),
    "resnext50_32x4d": ({}, 64, 175),
    "squeezenet1_1": ({}, 64, 65),
    "densenet121": ({}, 32, 427),
    "googlenet": ({"init_weights": False}, 64, 196),
    "mobilenet_v2": ({}, 64, 152),
    "mobilenet_v3_small": ({}, 64, 156),
    "efficientnet_b0": ({}, 64, 239),
    "shufflenet_v2_x0_5": ({}, 64, 229),
    "regnet_y_400mf": ({}, 64, 270),
    "convnext_tiny": ({}, 64, 220),
    "swin_t": ({}, 64, 527),
    "vit_b_16": ({"image_size": 64}, 64, 501),
    "fcn_resnet50": ({"weights_backbone": None}, 64, 177),
    "deeplabv3_mobilenet_v3_large": ({"weights_backbone": None}, 64, 207),
    "lraspp_mobilenet_v3_large": ({"weights_backbone": None}, 64, 193),
}


def shaken(model: torch.nn.Module) -> torch.nn.Module:
    """Give batch norms statistics, and activations and weights a size, that let every layer show."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.abs().max() < 1e-3:  # heads and layer scales begin as nothing
                parameter.normal_(0, 0.1, generator=generator)
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
    options, size, count = NETWORKS[name]
    torch.manual_seed(0)
    model = shaken(torchvision.models.get_model(name, weights=None, **options))
    source = trace(model, seeded(1, 3, size, size))
    assert len(source.graph.nodes) == count
    assert source.notes == []
    reference = source.reference(source.example)
    outputs = [value.name for value in source.graph.outputs]
    named = [node.outputs[0].name for node in source.graph.nodes if node.origin.value]
    values = list(dict.fromkeys([*named, *outputs]))
    assert set(reference) >= set(values) and len(values) > 0.4 * count
    for value, array in Executor(source.graph).run(source.example, values).items():
        scale = max(np.abs(reference[value]).max(), 1e-3)
        assert np.abs(array - reference[value]).max() < 1e-4 * scale, value
    for output in outputs:
        assert reference[output].std() > 1e-3 * np.abs(reference[output]).max() > 0, f"{output} shows nothing"
