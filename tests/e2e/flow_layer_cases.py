"""FlowNet's layers and the spatial transformer, which look from place to place, as loops over results."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch.nn import functional

from tests.e2e.known_formulas import Floats, T, noise
from tests.e2e.known_layer_cases import Case

IMAGE, OTHER = noise(2, 3, 9, 8, seed=1), noise(2, 3, 9, 8, seed=2)
FLOW = np.asarray(3 * noise(2, 2, 9, 8, seed=3), np.float32)
FLOW[0, :, 0, 0] = 0  # exactly the first place
FLOW[0, :, 8, 7] = 0.5  # within the last pixel's half behind its middle
FLOW[0, 0, 8, 6] = 2  # exactly outside
SMALL, LARGE = noise(2, 1, 3, 4, seed=4), noise(2, 2, 5, 7, seed=5)
THETA = np.array([[0.9, 0.2, 0.1, -0.3, 1.1, -0.2], [1, 0, 0, 0, 1, 0]], np.float32)


def correlated(
    pad: int, kernel: int, most: int, first: int = 1, second: int = 1, *, subtract: bool = False
) -> Floats:
    """Return what correlation_layer.cu computes, by its places in the padded blobs; strides are given."""
    a, b = (np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad))) for x in (IMAGE, OTHER))
    border, reach = most + (kernel - 1) // 2, most // second
    rows, columns = (math.ceil((n - 2 * border) / first) for n in a.shape[2:])
    around = range(-reach, reach + 1)
    out = np.empty((2, len(around) ** 2, rows, columns), np.float32)
    for y, x in np.ndindex(rows, columns):
        top, left = y * first + most, x * first + most
        own = a[:, :, top : top + kernel, left : left + kernel]
        for index, (down, right) in enumerate((p * second, q * second) for p in around for q in around):
            there = b[:, :, top + down : top + down + kernel, left + right : left + right + kernel]
            met = np.abs(own - there) if subtract else own * there
            out[:, index, y, x] = met.mean((1, 2, 3))
    return out


def warped() -> Floats:
    """Return what flow_warp_layer.cpp computes."""
    out = np.zeros_like(IMAGE)
    height, width = IMAGE.shape[2:]
    for n, y, x in np.ndindex(2, height, width):
        right, down = np.float32(x) + FLOW[n, 0, y, x], np.float32(y) + FLOW[n, 1, y, x]
        if not (0 <= right < width and 0 <= down < height):
            continue
        left, top = int(right), int(down)
        beside, below = min(left + 1, width - 1), min(top + 1, height - 1)
        alpha, beta = right - left, down - top
        image = IMAGE[n]
        upper = (1 - alpha) * image[:, top, left] + alpha * image[:, top, beside]
        lower = (1 - alpha) * image[:, below, left] + alpha * image[:, below, beside]
        out[n, :, y, x] = (1 - beta) * upper + beta * lower
    return out


def transformed(theta: Floats, rows: int, columns: int) -> Floats:
    """Return what st_layer.cu computes: `theta`, (N, 6), maps places of the result to those of the image."""
    out = np.zeros((2, 3, rows, columns), np.float32)
    height, width = IMAGE.shape[2:]
    for n, s, t in np.ndindex(2, rows, columns):
        place = theta[n].reshape(2, 3).astype(np.float64) @ [s / rows * 2 - 1, t / columns * 2 - 1, 1]
        x, y = (place[0] + 1) / 2 * height, (place[1] + 1) / 2 * width
        for row in (math.floor(x), math.floor(x) + 1):
            for column in (math.floor(y), math.floor(y) + 1):
                if 0 <= row < height and 0 <= column < width:
                    share = (1 - abs(x - row)) * (1 - abs(y - column))
                    out[n, :, s, t] += np.float32(share) * IMAGE[n, :, row, column]
    return out


def stretched(blobs: Sequence[Floats], *size: int) -> Floats:
    joined = [functional.interpolate(T(b), size, mode="bilinear", align_corners=True) for b in blobs]
    return np.asarray(torch.cat(joined, 1).numpy())


def correlation(fields: str, expected: Floats) -> Case:
    text = f'type: "Correlation" correlation_param {{ {fields} }}'
    return Case("correlation.flownet", text, (IMAGE, OTHER), expected)


def accum(fields: str, bottoms: Sequence[Floats], expected: Floats) -> Case:
    return Case("accum", f'type: "Accum" accum_param {{ {fields} }}', bottoms, expected)


def transformer(fields: str, theta: Floats, expected: Floats) -> Case:
    text = f'type: "SpatialTransformer" st_param {{ {fields} }}'
    return Case("spatial_transformer", text, (IMAGE, theta), expected)


CASES = [
    accum("", (SMALL, LARGE), stretched((SMALL, LARGE), 5, 7)),
    accum("top_height: 6 top_width: 9", (SMALL, LARGE), stretched((SMALL, LARGE), 6, 9)),
    accum("top_height: 6 top_width: 7", (SMALL, LARGE), stretched((SMALL, LARGE), 5, 7)),
    accum("size_divisible_by: 4", (SMALL, LARGE), stretched((SMALL, LARGE), 8, 8)),
    accum("size_divisible_by: 5", (SMALL, LARGE), stretched((SMALL, LARGE), 5, 7)),
    accum("have_reference: true", (LARGE, SMALL, IMAGE), stretched((LARGE, SMALL), 9, 8)),
    correlation("kernel_size: 1 max_displacement: 2 pad: 2", correlated(2, 1, 2)),
    correlation("kernel_size: 1 max_displacement: 4 pad: 4 stride_2: 2", correlated(4, 1, 4, 1, 2)),
    correlation(
        "kernel_size: 3 max_displacement: 3 pad: 4 stride_1: 2 stride_2: 2", correlated(4, 3, 3, 2, 2)
    ),
    correlation("kernel_size: 3 max_displacement: 1 stride_1: 3", correlated(0, 3, 1, 3)),
    correlation(
        "kernel_size: 3 max_displacement: 2 pad: 1 stride_1: 2 correlation_type: SUBTRACT",
        correlated(1, 3, 2, 2, subtract=True),
    ),
    Case("flow_warp", 'type: "FlowWarp"', (IMAGE, FLOW), warped()),
    transformer("", THETA, transformed(THETA, 9, 8)),
    transformer("output_H: 4 output_W: 11", THETA.reshape(2, 2, 3), transformed(THETA, 4, 11)),
    transformer(
        "output_H: 5 theta_1_2: 0.2 theta_2_1: -0.3 to_compute_dU: false",
        THETA[:, [0, 2, 4, 5]],
        transformed(np.where([0, 1, 0, 1, 0, 0], [0, 0.2, 0, -0.3, 0, 0], THETA).astype(np.float32), 5, 8),
    ),
]
