"""Models of PyTorch 1.13, written by its own exporter (TorchScript) in old opsets; it needs torch 1.x."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from tests.onnx_front.exporters.fixture import write

export: Any = torch.onnx.export  # PyTorch 2 has another signature


class Function(nn.Module):
    """A function as a network without weights."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


class Recurrent(nn.Module):
    """LSTM in both directions, then GRU; the last step counts."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 3, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(6, 3)

    def forward(self, x: Any) -> Any:
        y, _ = self.lstm(x)
        y, _ = self.gru(y.transpose(0, 1))
        return y[-1]


class Attention(nn.Module):
    """A layer of a transformer, whose sizes the exporter computes from the input's shape."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2)
        self.norm = nn.LayerNorm(8)

    def forward(self, x: Any) -> Any:
        y, _ = self.attention(x, x, x)
        return functional.gelu(self.norm(x + y))


class Decided(nn.Module):
    """Scripted parts, which the exporter writes as If and Loop."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = torch.jit.script(_steps)

    def forward(self, x: Any) -> Any:
        return self.steps(x, 3)


def _steps(x: torch.Tensor, count: int) -> torch.Tensor:
    if x.size(1) > 2:
        x = x * 2
    for _ in range(count):
        x = torch.relu(x - 0.1)
    return x


def convolutions() -> Any:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU6(),
        nn.Conv2d(4, 4, 3, padding=2, dilation=2, groups=2),
        nn.Hardswish(),
        nn.MaxPool2d(3, 2, 1, ceil_mode=True),
        nn.AvgPool2d(2, 1, 1, count_include_pad=False),
        nn.ConvTranspose2d(4, 6, 3, 2, 1, output_padding=1),
        nn.PReLU(6),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(),
        nn.Linear(6, 5),
        nn.LogSoftmax(1),
    )


def flattened(x: Any) -> Any:
    """The shapes are computed by nodes, as the batch is open."""
    y = x.view(x.size(0), -1, x.size(2) * x.size(3)).permute(0, 2, 1).contiguous()
    return y.view(x.shape[0], 2, -1)[:, :, 1:-1].mean(-1, keepdim=True)


def resized(x: Any) -> Any:
    y = functional.interpolate(x, scale_factor=2, mode="nearest")
    y = functional.interpolate(y, scale_factor=1.5, mode="bilinear", align_corners=False)
    return functional.interpolate(y, size=(7, 9), mode="nearest")


def nearest(x: Any) -> Any:
    y = functional.interpolate(x, scale_factor=2, mode="nearest")
    return functional.interpolate(y, size=(7, 10), mode="nearest")


def shrunk(x: Any) -> Any:
    return functional.interpolate(x, size=(3, 5), mode="nearest")


def bilinear(x: Any) -> Any:
    """Before opset 11 ONNX cannot say where PyTorch takes its places: the file computes something else."""
    return functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)


def aligned(x: Any) -> Any:
    """A scale that gives no whole size: PyTorch rounds it before it aligns corners."""
    y = functional.interpolate(x, scale_factor=1.5, mode="bilinear", align_corners=True)
    return functional.interpolate(y, scale_factor=1.8, mode="bilinear", align_corners=False)


def mixed(x: Any) -> Any:
    a, b = torch.chunk(x, 2, 1)
    y = torch.cat([functional.elu(a), functional.leaky_relu(b, 0.2)], 1).clamp(-1, 1)
    y = functional.pixel_shuffle(functional.pad(y, (1, 0, 2, 1)), 2)
    y = functional.pad(y, (1, 1, 1, 1), mode="reflect")
    return functional.softmax(y.squeeze(1), dim=1) + torch.stack([y, y], 1).max(1)[0].squeeze(1)


def normalized(x: Any) -> Any:
    y = functional.instance_norm(x) + functional.group_norm(x, 2)
    return functional.normalize(y, dim=1) * torch.rsqrt(x.pow(2).mean((2, 3), keepdim=True) + 1e-6)


def chosen(x: Any) -> Any:
    values, places = torch.topk(x, 2, dim=1)
    y = torch.where(x > 0, x, x.exp()).masked_fill(x > 1, 0.5)
    return torch.gather(y, 1, places) + values


MODELS: dict[str, tuple[Callable[[], Any], tuple[int, ...], tuple[int, ...]]] = {
    "convolutions": (convolutions, (1, 3, 13, 15), (7, 9, 10, 11, 12, 13, 16)),
    "flattened": (lambda: Function(flattened), (2, 4, 3, 2), (9, 11, 13)),
    "resized": (lambda: Function(resized), (1, 2, 3, 4), (11, 16)),
    "nearest": (lambda: Function(nearest), (1, 2, 3, 4), (9, 10, 11)),
    "shrunk": (lambda: Function(shrunk), (1, 2, 8, 10), (10, 11)),
    "bilinear": (lambda: Function(bilinear), (1, 2, 3, 4), (9, 10)),
    "aligned": (lambda: Function(aligned), (1, 2, 5, 7), (11, 14)),
    "mixed": (lambda: Function(mixed), (1, 4, 4, 5), (9, 11, 13)),
    "normalized": (lambda: Function(normalized), (1, 4, 3, 5), (9, 13)),
    "chosen": (lambda: Function(chosen), (2, 5, 3), (9, 11)),
    "recurrent": (Recurrent, (1, 5, 4), (9, 14)),
    "attention": (Attention, (5, 1, 8), (9, 12, 14)),
    "decided": (Decided, (1, 3, 4), (11, 13)),
}


def main() -> None:
    """Write every model; sizes of the batch stay open where the model does not fix them."""
    torch.manual_seed(0)
    for name, (make, shape, opsets) in MODELS.items():
        network = make()
        for layer in network.modules():
            if isinstance(layer, nn.BatchNorm2d):
                assert layer.running_mean is not None and layer.running_var is not None
                nn.init.uniform_(layer.running_mean, -0.5, 0.5)
                nn.init.uniform_(layer.running_var, 0.5, 1.5)
        network.eval()
        x = torch.from_numpy(np.random.default_rng(0).standard_normal(shape).astype(np.float32))
        with torch.no_grad():
            y = network(x).numpy()
        for opset in opsets:
            file = io.BytesIO()
            axes = {"x": {0: "batch"}} if name in ("convolutions", "flattened", "mixed") else None
            more = {"keep_initializers_as_inputs": True} if opset < 10 else {}
            export(network, x, file, opset_version=opset, input_names=["x"], dynamic_axes=axes, **more)
            write("torch1", f"{name}-{opset}", file.getvalue(), [x.numpy()], [y])


if __name__ == "__main__":
    main()
