"""What a user would write: export a model, load the files, run them. Runs in an environment of its own."""

import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

import caffeforge
from caffeforge.generated.bvlc import export
from caffeforge.runtime import load


class Net(nn.Module):
    """One layer of each common kind, with weights that a mistake would show in."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2)
        self.flatten = nn.Flatten()
        self.linear = nn.Linear(8 * 5 * 6, 10)
        for tensor in (self.norm.weight, self.norm.bias, self.norm.running_mean, self.norm.running_var):
            assert tensor is not None
            nn.init.uniform_(tensor, 0.5, 2.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return ten numbers for each image of 10 x 12."""
        features = self.pool(self.relu(self.norm(self.conv(x))))
        result: torch.Tensor = self.linear(self.flatten(features))
        return result


def main() -> None:
    """Export into ``out`` and compare; fail unless caffeforge comes from this environment alone."""
    (found,) = caffeforge.__path__
    assert Path(found).is_relative_to(sys.prefix), f"caffeforge comes from {found}"

    torch.manual_seed(0)
    model, x = Net().eval(), torch.randn(2, 3, 10, 12)
    export(model, (x,), "out/net")
    prototxt, caffemodel = Path("out/net.prototxt"), Path("out/net.caffemodel")
    assert prototxt.is_file() and caffemodel.is_file()

    blobs = load(prototxt, caffemodel, dialect="bvlc").run({"x": x.numpy()})
    assert list(blobs) == ["linear"]
    with torch.no_grad():
        np.testing.assert_allclose(blobs["linear"], model(x).numpy(), rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    main()
