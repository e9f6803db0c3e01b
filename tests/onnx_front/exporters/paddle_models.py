"""Models of PaddlePaddle, written by paddle2onnx; it needs paddlepaddle and paddle2onnx."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tests.onnx_front.exporters.fixture import write

paddle: Any = import_module("paddle")
paddle2onnx: Any = import_module("paddle2onnx")
nn: Any = paddle.nn
functional: Any = paddle.nn.functional


class Function(nn.Layer):  # type: ignore[misc]
    """A function as a network without weights."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


class Recurrent(nn.Layer):  # type: ignore[misc]
    """An LSTM in both directions, of which the last step is taken."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 3, direction="bidirect")
        self.head = nn.Linear(6, 2)

    def forward(self, x: Any) -> Any:
        y, _ = self.lstm(x)
        return self.head(y[:, -1])


class Attention(nn.Layer):  # type: ignore[misc]
    """One head, written out as Paddle's models do."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.all = nn.Linear(8, 24)

    def forward(self, x: Any) -> Any:
        shape = paddle.shape(x)
        y = self.all(self.norm(x)).reshape([shape[0], -1, 3, 2, 4]).transpose([2, 0, 3, 1, 4])
        q, k, v = y[0] * 4**-0.5, y[1], y[2]
        weights = functional.softmax(q.matmul(k.transpose([0, 1, 3, 2])))
        return x + weights.matmul(v).transpose([0, 2, 1, 3]).reshape([shape[0], -1, 8])


class Switched(nn.Layer):  # type: ignore[misc]
    """A branch on a size, which the exporter writes as If."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2D(3, 4, 3, padding=1)

    def forward(self, x: Any) -> Any:
        y = self.conv(x)
        if paddle.shape(y)[2] > 4:
            y = functional.max_pool2d(y, 2)
        return functional.relu(y)


def convolutions() -> Any:
    return nn.Sequential(
        nn.Conv2D(3, 4, 3, stride=2, padding=1, bias_attr=False),
        nn.BatchNorm2D(4),
        nn.ReLU6(),
        nn.Conv2D(4, 4, 3, padding=[0, 1, 1, 0], groups=2),
        nn.Hardswish(),
        nn.MaxPool2D(3, stride=2, padding=1, ceil_mode=True),
        nn.Conv2D(4, 4, 3, padding="SAME", stride=2),
        nn.Conv2D(4, 6, 3, padding=2, dilation=2),
        nn.Swish(),
        nn.AdaptiveAvgPool2D(1),
        nn.Flatten(),
        nn.Linear(6, 5),
        nn.Dropout(0.5),
    )


def pools() -> Any:
    return nn.Sequential(
        nn.AvgPool2D(3, stride=2, padding=1, exclusive=True),
        nn.AvgPool2D(2, stride=1, padding=1, exclusive=False),
        nn.AdaptiveAvgPool2D((2, 3)),
    )


def decoder() -> Any:
    return nn.Sequential(
        nn.Conv2DTranspose(3, 4, 3, stride=2, padding=1, output_padding=1),
        nn.InstanceNorm2D(4),
        nn.PReLU(4, init=0.2),
        nn.Upsample(size=[16, 16], mode="nearest"),
        nn.Conv2D(4, 4, 1),
        nn.GroupNorm(2, 4),
        nn.Upsample(size=[24, 24], mode="bilinear", align_corners=True),
        nn.Hardsigmoid(),
        nn.Upsample(size=[27, 31], mode="bilinear", align_mode=1),
    )


def mixed(x: Any) -> Any:
    a, b = paddle.split(x, 2, axis=1)
    y = paddle.concat([functional.gelu(a), functional.elu(b)], axis=1)
    y = functional.pad(y, [1, 2, 0, 1], mode="reflect")
    y = functional.pixel_shuffle(y, 2)
    y = paddle.clip(paddle.squeeze(y, 1), -0.5, 0.5)
    return paddle.scale(y, scale=2.0, bias=1.0) + paddle.mean(y, axis=[1, 2], keepdim=True)


def indexed(x: Any) -> Any:
    y = paddle.stack([x, x * 2], axis=1)[:, :, ::2]
    y = paddle.max(y, axis=1)
    return paddle.tile(paddle.unsqueeze(y, 1), [1, 2, 1, 1]) / paddle.norm(
        y, axis=-1, keepdim=True
    ).unsqueeze(1)


MODELS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "convolutions": (convolutions, (1, 3, 13, 15)),
    "pools": (pools, (1, 2, 9, 11)),
    "decoder": (decoder, (1, 3, 4, 4)),
    "mixed": (lambda: Function(mixed), (2, 4, 5, 6)),
    "indexed": (lambda: Function(indexed), (2, 4, 5)),
    "recurrent": (Recurrent, (2, 5, 4)),
    "attention": (Attention, (1, 5, 8)),
    "switched": (Switched, (1, 3, 6, 6)),
}
OPSETS = {"convolutions": (9, 11, 13, 16), "decoder": (11, 15)}


def main() -> None:
    """Write every model."""
    paddle.seed(0)
    for name, (make, shape) in MODELS.items():
        network = make()
        for layer in network.sublayers():
            if isinstance(layer, nn.BatchNorm2D):
                layer._mean.set_value(paddle.uniform(layer._mean.shape, min=-0.5, max=0.5))
                layer._variance.set_value(paddle.uniform(layer._variance.shape, min=0.5, max=1.5))
        network.eval()
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        y = network(paddle.to_tensor(x)).numpy()
        for opset in OPSETS.get(name, (14,)):
            write("paddle2onnx", f"{name}-{opset}", exported(network, shape, opset), [x], [y])


def exported(network: Any, shape: tuple[int, ...], opset: int) -> bytes:
    """Return the file that paddle2onnx writes; the batch stays open."""
    spec = [paddle.static.InputSpec([-1, *shape[1:]], "float32", "x")]
    with tempfile.TemporaryDirectory() as folder:
        stem = Path(folder, "net")
        paddle.jit.save(network, str(stem), input_spec=spec)
        program = next(p for p in (stem.with_suffix(".json"), stem.with_suffix(".pdmodel")) if p.exists())
        weights, out = stem.with_suffix(".pdiparams"), stem.with_suffix(".onnx")
        paddle2onnx.export(str(program), str(weights), str(out), opset_version=opset, optimize_tool="None")
        return out.read_bytes()


if __name__ == "__main__":
    main()
