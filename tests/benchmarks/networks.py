"""The networks that are measured, and their files as the product writes them.

``python -m tests.benchmarks.networks NETWORK FOLDER`` writes ``FOLDER/NETWORK.prototxt`` and
``FOLDER/NETWORK.caffemodel`` for the measurements that need them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import torchvision

NETWORKS = ("resnet50", "vgg16")
"""Many small layers and 102 MB of weights; few layers and 553 MB, most of them in one."""


def network(name: str) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """Return a torchvision network with random weights, and example inputs, float32[1, 3, 224, 224]."""
    torch.manual_seed(0)
    model: torch.nn.Module = getattr(torchvision.models, name)(weights=None)
    return model.eval(), (torch.randn(1, 3, 224, 224),)


def files(name: str, folder: Path) -> tuple[Path, Path]:
    """Return where the prototxt and the caffemodel of a network lie."""
    return folder / f"{name}.prototxt", folder / f"{name}.caffemodel"


def main() -> None:
    """Write the files of one network."""
    from caffeforge.generated.bvlc import export

    name, folder = sys.argv[1], Path(sys.argv[2])
    export(*network(name), folder / name, verify=False)


if __name__ == "__main__":
    main()
