"""Networks of torchvision with random weights under which the logits depend on the image, and images.

torchvision's own initialisation, or statistics of batch normalization drawn at random, makes the logits
of a deep network nearly the same for every image: a comparison of such logits proves little.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torchvision
from torch import nn


@dataclass(frozen=True)
class Network:
    """A network of torchvision.

    Attributes:
        size: height and width of the images it was made for.
        small: a smaller size, oblong where the network takes one, for batches.
        options: arguments of its constructor.
    """

    name: str
    size: tuple[int, int] = (224, 224)
    small: tuple[int, int] = (128, 160)
    options: Mapping[str, Any] = field(default_factory=dict)

    def build(self) -> nn.Module:
        """Return the network with random weights, in evaluation mode; always the same."""
        torch.manual_seed(0)
        model: nn.Module = getattr(torchvision.models, self.name)(weights=None, **self.options)
        randomize(model.eval(), images(4, self.small, seed=99))
        return model


RESNET18 = Network("resnet18")
GOOGLENET = Network("googlenet", options={"init_weights": False})
NETWORKS = (
    Network("alexnet", small=(224, 224)),  # its adaptive pooling divides only where it is the identity
    Network("vgg11_bn", small=(224, 224)),
    RESNET18,
    Network("resnet50"),
    Network("resnext50_32x4d"),
    Network("squeezenet1_1"),
    Network("densenet121"),
    GOOGLENET,
    Network("inception_v3", size=(299, 299), small=(171, 203), options={"init_weights": False}),
)


def images(count: int, size: tuple[int, int], seed: int) -> torch.Tensor:
    """Return images (count, 3, height, width) of about unit variance: blurred spots and noise."""
    generator = torch.Generator().manual_seed(seed)
    result = 0.3 * torch.randn(count, 3, *size, generator=generator)
    for cells in (2, 5, 13):
        spots = torch.randn(count, 3, cells, cells, generator=generator)
        result += 0.6 * nn.functional.interpolate(spots, size, mode="bilinear", align_corners=True)
    return result


@torch.no_grad()
def randomize(model: nn.Module, example: torch.Tensor) -> None:
    """Give all layers random weights that keep the scale of what passes through them.

    Each normalization gets the statistics of its own inputs for the example, changed at random: the mean by
    about a third of the standard deviation, the variance by a factor of 0.5 to 1.5.
    """
    norms = []
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            if module.bias is not None:
                nn.init.normal_(module.bias, std=0.1)
        elif isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, std=0.3)
            norms.append(module)
    hooks = [norm.register_forward_pre_hook(_take_statistics) for norm in norms]
    model(example)
    for hook in hooks:
        hook.remove()


def _take_statistics(norm: nn.Module, inputs: tuple[torch.Tensor]) -> None:
    assert isinstance(norm, nn.BatchNorm2d)
    assert norm.running_mean is not None and norm.running_var is not None
    variance, mean = torch.var_mean(inputs[0], dim=(0, 2, 3))
    norm.running_mean.copy_(mean + 0.3 * variance.sqrt() * torch.randn_like(mean))
    norm.running_var.copy_(variance * torch.empty_like(variance).uniform_(0.5, 1.5))
