"""Formulas of known layers by PyTorch, NumPy, or a loop from the definition, and numbers to try them on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

Floats = npt.NDArray[np.float32]
T = torch.from_numpy


def noise(*shape: int, seed: int = 0) -> Floats:
    """Return random numbers around 0 that reach beyond the bends of activations."""
    return np.random.default_rng(seed).uniform(-9, 9, shape).astype(np.float32)


def positive(*shape: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape).astype(np.float32)


X = noise(2, 8, 4, 6)
MATRICES = (noise(3, 2, 4, seed=1), noise(3, 4, 5, seed=2))
C = [positive(8, seed=n) for n in range(4)]
CHANNELS = [c.reshape(1, 8, 1, 1) for c in C]
ROIS = np.array([[0, 1, 2, 21, 14], [1, 0, 0, 9, 9], [1, 5.4, 3.3, 5.9, 4.1]], np.float32)


def resized(x: Floats, *size: int, mode: str = "bilinear", aligned: bool | None = True) -> Floats:
    found = functional.interpolate(T(x), size, mode=mode, align_corners=aligned)
    return np.asarray(found.numpy())


def norm(x: Floats, epsilon: float) -> Floats:
    scale, shift, mean, variance = map(T, C)
    return np.asarray(functional.batch_norm(T(x), mean, variance, scale, shift, eps=epsilon).numpy())


def blocks(x: Floats, height: int, width: int) -> Floats:
    """Return blocks as channels: one channel group for each place in the block, row by row."""
    parts = [x[:, :, row::height, column::width] for row in range(height) for column in range(width)]
    return np.concatenate(parts, axis=1)


def aligned_nearest(x: Floats, height: int, width: int) -> Floats:
    out = np.empty((*x.shape[:2], height, width), np.float32)
    for row, column in np.ndindex(height, width):
        source = [
            int(np.floor(place * (size - 1) / (new - 1) + 0.5))
            for place, size, new in ((row, x.shape[2], height), (column, x.shape[3], width))
        ]
        out[:, :, row, column] = x[:, :, source[0], source[1]]
    return out


def unpooled() -> tuple[Floats, Floats, Floats]:
    """Return maxima, their places in each plane, and the planes with nothing else in them."""
    values, places = functional.max_pool2d(T(X), 2, return_indices=True)
    planes = functional.max_unpool2d(values, places, (2, 2))
    return values.numpy(), places.numpy().astype(np.float32), planes.numpy()


def darknet_reorg(x: Floats, stride: int) -> Floats:
    """Return darknet's reorganisation, element by element over the sizes of the input."""
    batch, channels, height, width = x.shape
    fewer = channels // stride**2
    out = np.zeros(x.shape, np.float32).reshape(batch, -1)
    for b, c, h, w in np.ndindex(*x.shape):
        offset, inner = divmod(c, fewer)
        row, column = h * stride + offset // stride, w * stride + offset % stride
        source = (inner * height * stride + row) * width * stride + column
        out[b, (c * height + h) * width + w] = x[b].ravel()[source]
    return out.reshape(batch, channels * stride**2, height // stride, width // stride)


def unit_length(x: Floats, axes: tuple[int, ...], factor: Floats) -> Floats:
    return np.asarray(x / np.sqrt((x * x).sum(axes, keepdims=True) + 1e-10) * factor, np.float32)


VALUES, PLACES, PLANES = unpooled()
A = positive(2, 8, 1, 1, seed=5)
KERNEL = noise(8, 1, 3, 2, seed=6)
CUT = X[:, :, 1:-1, 1:-1]
SIDES = ((0, 0), (0, 0), (1, 2), (3, 0))


def padded(x: Floats, sides: Sequence[tuple[int, int]], mode: str, value: float = 0.0) -> Floats:
    if mode == "constant":
        return np.pad(x, sides, constant_values=value)
    by_mode: dict[str, Callable[[], Floats]] = {
        "edge": lambda: np.pad(x, sides, mode="edge"),
        "reflect": lambda: np.pad(x, sides, mode="reflect"),
    }
    return by_mode[mode]()


def pool(x: Floats, *, average: bool = False, **options: Any) -> Floats:
    function: Any = functional.avg_pool2d if average else functional.max_pool2d
    return np.asarray(function(T(x), **options).numpy())
