"""Layers of NART's and PPQ's Caffe: what they compute, said by PyTorch or by loops from NART's kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torchvision
from torch.nn import functional

from tests.e2e.known_formulas import CHANNELS, MATRICES, ROIS, C, Floats, T, X, noise, norm, positive
from tests.e2e.known_layer_cases import Case

DEEP = noise(2, 8, 5, 7, 6, seed=1)
WINDOW = noise(6, 4, 3, 2, 3, seed=2)
STATISTICS = [positive(1, 8, 1, 1, seed=n) for n in range(4)]
KERNELS, SLID = noise(2, 3, 2, 3, seed=4), noise(2, 3, 6, 5, seed=5)
MANY = noise(2, 12, 2, 3, seed=6)  # four kernels of three channels for each image
LEFT, RIGHT = noise(2, 3, 4, 9, seed=7), noise(2, 3, 4, 9, seed=8)
MAPS = noise(2, 5, 6, 7, seed=9)


def pooled(x: Floats, *, average: bool = False, **options: Any) -> Floats:
    function: Any = functional.avg_pool3d if average else functional.max_pool3d
    return np.asarray(function(T(x), **options).numpy())


def normed(x: Floats, epsilon: float) -> Floats:
    scale, shift, mean, variance = (T(s.ravel()) for s in STATISTICS)
    return np.asarray(functional.batch_norm(T(x), mean, variance, scale, shift, eps=epsilon).numpy())


def slid(kernels: Floats, images: Floats, *, each: bool) -> Floats:
    """Return what each image gives under its own kernels, `each` of them over one channel."""
    channels = images.shape[1]
    found = []
    for own, image in zip(kernels, images, strict=True):
        weights = own[:, None] if each else own.reshape(-1, channels, *own.shape[1:])
        groups = channels if each else 1
        found.append(functional.conv2d(T(image[None]), T(np.ascontiguousarray(weights)), groups=groups)[0])
    return np.asarray(torch.stack(found).numpy())


def row_products(left: Floats, right: Floats, most: int) -> Floats:
    """Return the mean products over channels as NART's loop has them: the last channel is the next pixel."""
    images, channels, height, width = left.shape
    out = np.zeros((images, most + 1, height, width), np.float32)
    for n, d, y in np.ndindex(images, most + 1, height):
        for x in range(d + 1, width):
            out[n, most - d, y, x] = (left[n, :, y, x] * right[n, :, y, x - d - 1]).sum() / channels
    return out


def coordinates(maps: Floats, height: int, width: int, *, moved: bool) -> Floats:
    """Return (x, y, score) of each map's maximum as NART's loop has them, a quarter towards a neighbour."""
    images, channels, rows, columns = maps.shape
    out = np.empty((images, channels, 3), np.float32)
    for n, c in np.ndindex(images, channels):
        plane = maps[n, c]
        y, x = divmod(int(plane.argmax()), columns)
        fine_y, fine_x = float(y), float(x)
        if moved and 0 < y < rows - 1:
            fine_y += 0.25 * float(np.sign(plane[y + 1, x] - plane[y - 1, x]))
        if moved and 0 < x < columns - 1:
            fine_x += 0.25 * float(np.sign(plane[y, x + 1] - plane[y, x - 1]))
        out[n, c] = (fine_x + 0.5) * width / columns, (fine_y + 0.5) * height / rows, plane[y, x]
    joined: Floats = out.reshape(images, -1)
    return joined


def with_maxima_at_the_edge(maps: Floats) -> Floats:
    edged: Floats = maps.copy()
    edged[0, 0, 0, 3] = edged[0, 1, 5, 0] = edged[0, 2, 2, 6] = edged[1, 0, 0, 0] = 20
    edged[1, 1, 3, 3], edged[1, 1, 2, 3], edged[1, 1, 4, 3] = 30, 5, 5  # neighbours alike: not moved
    return edged


def aligned(x: Floats, rois: Floats, samples: int) -> Floats:
    return np.asarray(torchvision.ops.roi_align(T(x), T(rois), (3, 2), 0.25, samples).numpy())


def deformed(x: Floats, offsets: Floats, weights: Floats, step: int, pad: int, hole: int) -> Floats:
    """Return Deformable ConvNets' first convolution, tap by tap; all channels are one group."""
    images, _, height, width = x.shape
    out = np.zeros((images, len(weights), *offsets.shape[2:]), np.float64)
    for n, row, column in np.ndindex(images, *offsets.shape[2:]):
        for tap, (i, j) in enumerate(np.ndindex(*weights.shape[2:])):
            down, right = offsets[n, 2 * tap : 2 * tap + 2, row, column]
            y, x_ = row * step - pad + i * hole + down, column * step - pad + j * hole + right
            if 0 <= y < height and 0 <= x_ < width:
                y, x_ = min(y, height - 1), min(x_, width - 1)
                top, left = int(y), int(x_)
                bottom, other = min(top + 1, height - 1), min(left + 1, width - 1)
                upper = x[n, :, top, left] * (1 - x_ + left) + x[n, :, top, other] * (x_ - left)
                lower = x[n, :, bottom, left] * (1 - x_ + left) + x[n, :, bottom, other] * (x_ - left)
                out[n, :, row, column] += weights[:, :, i, j] @ (upper * (1 - y + top) + lower * (y - top))
    return out.astype(np.float32)


def region_means(x: Floats, rois: Floats, bins: int, scale: float, region: float, bin_: float) -> Floats:
    """Return the means of PSROIMaskPooling as NART's loop has them, in float32 as there."""
    f = np.float32
    kinds = x.shape[1] // bins**2
    out = np.zeros((len(rois), kinds, bins, bins), f)
    for n, (image, *corners) in enumerate(rois):
        edges = []  # of bins, down and right
        for first, last, limit in (
            (corners[1], corners[3], x.shape[2]),
            (corners[0], corners[2], x.shape[3]),
        ):
            middle, half = (first + last) * f(0.5), (last - first) * f(region) * f(0.5)
            begin, end = (f(np.sign(v) * np.floor(abs(v) + f(0.5))) for v in (middle - half, middle + half))
            begin, end = begin * f(scale), (end + f(1)) * f(scale)
            size = max(end - begin, f(0.1)) / f(bins)
            more = (size * f(bin_) - size) * f(0.5)
            starts = [max(int(np.floor(f(b) * size + begin - more)), 0) for b in range(bins)]
            ends = [min(int(np.ceil(f(b + 1) * size + begin + more)), limit) for b in range(bins)]
            edges.append([range(a, b) for a, b in zip(starts, ends, strict=True)])
        for c, i, j in np.ndindex(kinds, bins, bins):
            plane = x[int(image), (c * bins + i) * bins + j]
            inside = [plane[y, x_] for y in edges[0][i] for x_ in edges[1][j]]
            out[n, c, i, j] = np.mean(inside) if inside else 0
    return out


EDGED = with_maxima_at_the_edge(MAPS)
SIZES = "kernel_d: 3 kernel_h: 2 kernel_w: 3"
STEPS = "stride_d: 1 stride_h: 2 stride_w: 2"
ROW = "kernel_size: 1 max_displacement: 3 pad: 3 single_direction: -1"

MOVED = np.asarray(noise(2, 12, 2, 2, seed=11) / 3, np.float32)  # by up to three pixels, some out of the blob
TAPS = noise(4, 8, 2, 3, seed=12)
SCORES = noise(2, 2 * 9, 12, 15, seed=13)
WIDE = np.concatenate([np.array([[0], [1], [0], [1]]), noise(4, 4, seed=14) * 3], 1).astype(np.float32)
WIDE[:, 3:] += 60
REGIONS = "spatial_scale: 0.125 output_dim: 2 group_size: 3"


def sequence(kind: str, order: Sequence[int]) -> tuple[Floats, list[Floats]]:
    """Return what PyTorch's cell gives of SEQUENCE, and its weights as NART stacks them."""
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        cell = getattr(torch.nn, kind)(3, 4)
        found: Floats = cell(T(SEQUENCE))[0].numpy()
        row, state, offset, second = (
            torch.cat([p.chunk(len(order))[g] for g in order]) for p in cell.parameters()
        )
    return found, [state.numpy(), torch.cat([offset, second]).numpy(), row.numpy()]


SEQUENCE = noise(5, 2, 3, seed=10)
LSTM, LSTM_WEIGHTS = sequence("LSTM", (0, 1, 3, 2))  # I F O G of PyTorch's i f g o
GRU, GRU_WEIGHTS = sequence("GRU", (1, 0, 2))  # Z R G of its r z n
CASES = [
    Case(
        "batch_norm_3d",
        'type: "BatchNorm3d" batchnorm3d_param { use_global_stats: true eps: 0.5 }',
        (DEEP,),
        normed(DEEP, 0.5),
        STATISTICS,
    ),
    Case(
        "convolution_3d",
        f'type: "Convolution3d" convolution3d_param {{ num_output: 6 group: 2 {SIZES} {STEPS} '
        "pad_d: 1 pad_h: 0 pad_w: 2 hole_d: 2 hole_h: 1 hole_w: 1 }",
        (DEEP,),
        functional.conv3d(
            T(DEEP), T(WINDOW), T(C[0][:6]), stride=(1, 2, 2), padding=(1, 0, 2), dilation=(2, 1, 1), groups=2
        ).numpy(),
        (WINDOW, C[0][:6]),
    ),
    Case(
        "convolution_3d",
        'type: "Convolution3d" convolution3d_param { num_output: 3 bias_term: false kernel_size: 2 stride: 2 '
        "pad: 1 hole: 2 }",
        (DEEP,),
        functional.conv3d(T(DEEP), T(noise(3, 8, 2, 2, 2, seed=3)), stride=2, padding=1, dilation=2).numpy(),
        (noise(3, 8, 2, 2, 2, seed=3),),
    ),
    Case(
        "correlation.kernels",
        'type: "Correlation"',
        (MANY, SLID),
        slid(MANY, SLID, each=False),
    ),
    Case(
        "correlation.kernels",
        'type: "Correlation" correlation_param { groups: 3 }',
        (KERNELS, SLID),
        slid(KERNELS, SLID, each=True),
    ),
    Case(
        "correlation.row",
        f'type: "Correlation1D" correlation_param {{ {ROW} }}',
        (LEFT, RIGHT),
        row_products(LEFT, RIGHT, 3),
    ),
    Case(
        "correlation.row_ppq",
        f'type: "Correlation1D" correlation_param {{ {ROW} }}',
        (LEFT, RIGHT),
        row_products(LEFT, RIGHT, 3),
    ),
    Case(
        "crop.middle",
        'type: "Crop" crop_param { crop_h: 2 crop_w: 6 }',
        (X,),
        X[:, :, 1:3],
    ),
    Case(
        "deformable_convolution",
        'type: "DeformableConvolution" deformable_convolution_param { num_output: 4 bias_term: false '
        "kernel_h: 2 kernel_w: 3 stride_h: 2 stride_w: 2 pad_h: 1 pad_w: 1 hole_h: 2 hole_w: 2 "
        "deformable_group: 1 }",
        (X, MOVED),
        deformed(X, MOVED, TAPS, 2, 1, 2),
        (TAPS,),
    ),
    Case(
        "deformable_convolution",
        'type: "DeformableConvolution" deformable_convolution_param { num_output: 4 group: 2 kernel_size: 2 '
        "deformable_group: 2 }",
        (X, np.zeros((2, 16, 3, 5), np.float32)),
        functional.conv2d(T(X), T(noise(4, 4, 2, 2, seed=3)), T(C[0][:4]), groups=2).numpy(),
        (noise(4, 4, 2, 2, seed=3), C[0][:4]),
    ),
    Case(
        "heatmap_to_coord",
        'type: "HeatMap2Coord" heatmap_param { coord_h: 64 coord_w: 48 }',
        (EDGED,),
        coordinates(EDGED, 64, 48, moved=False),
    ),
    Case(
        "heatmap_to_coord",
        'type: "HeatMap2Coord" heatmap_param { coord_h: 64 coord_w: 48 coord_reposition: true }',
        (EDGED,),
        coordinates(EDGED, 64, 48, moved=True),
    ),
    Case("bn.nart", 'type: "BN" bn_param { var_eps: 0.5 }', (X,), norm(X, 0.5), CHANNELS),
    Case("matmul.mode", 'type: "MatMul"', MATRICES, MATRICES[0] @ MATRICES[1]),
    Case(
        "matmul.mode",
        'type: "MatMul" matmul_param { mode: TT }',
        [m.transpose(0, 2, 1).copy() for m in MATRICES],
        MATRICES[0] @ MATRICES[1],
    ),
    Case(
        "parameter.sized",
        'type: "Parameter" parameter_param { m: 4 n: 6 }',
        (),
        X[0, 0],
        (X[0, 0].ravel(),),
    ),
    Case(
        "parameter.sized",
        'type: "Parameter" parameter_param { batch: 2 m: 4 n: 6 channel: -1 height: -1 width: -1 }',
        (),
        X[:, 0],
        (X[:, 0],),
    ),
    Case(
        "parameter.sized",
        'type: "Parameter" parameter_param { batch: 2 channel: 8 height: 4 width: 6 m: -1 n: -1 }',
        (),
        X,
        (X,),
    ),
    Case(
        "pooling_3d",
        f'type: "Pooling3d" pooling3d_param {{ {SIZES} {STEPS} pad_d: 1 pad_h: 0 pad_w: 1 }}',
        (DEEP,),
        pooled(DEEP, kernel_size=(3, 2, 3), stride=(1, 2, 2), padding=(1, 0, 1), ceil_mode=True),
    ),
    Case(
        "pooling_3d",
        f'type: "Pooling3d" pooling3d_param {{ {SIZES} {STEPS} ceil_mode: false }}',
        (DEEP,),
        pooled(DEEP, kernel_size=(3, 2, 3), stride=(1, 2, 2)),
    ),
    Case(
        "pooling_3d",
        'type: "Pooling3d" pooling3d_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 ceil_mode: false }',
        (DEEP,),
        pooled(DEEP, average=True, kernel_size=3, stride=2, padding=1),
    ),
    Case(
        "pooling_3d",
        'type: "Pooling3d" pooling3d_param { pool: AVE global_pooling: true }',
        (DEEP,),
        DEEP.mean((2, 3, 4), keepdims=True),
    ),
    Case(
        "psroi_mask_pooling",
        f'type: "PSROIMaskPooling" psroi_mask_pooling_param {{ {REGIONS} }}',
        (SCORES, WIDE),
        region_means(SCORES, WIDE, 3, 0.125, 1, 1),
    ),
    Case(
        "psroi_mask_pooling",
        f'type: "PSROIMaskPooling" psroi_mask_pooling_param {{ {REGIONS} roi_scale: 1.3 bin_scale: 1.5 }}',
        (SCORES, WIDE),
        region_means(SCORES, WIDE, 3, 0.125, 1.3, 1.5),
    ),
    Case("reduce.mode", 'type: "Reduce" reduce_param { axis: -2 }', (X,), X.mean(2, keepdims=True)),
    Case("reduce.operation", 'type: "Reduce"', (X,), X.sum(1, keepdims=True)),
    Case(
        "reduce.operation",
        'type: "Reduce" reduce_param { operation: MEAN axis: 3 }',
        (X,),
        X.mean(3, keepdims=True),
    ),
    Case(
        "roi_align.pod",
        'type: "PODROIAlignPooling" podroi_align_pooling_param { pooled_h: 3 pooled_w: 2 spatial_scale: 0.25 '
        "sample_num: 2 }",
        (X, ROIS),
        aligned(X, ROIS, 2),
    ),
    Case(
        "roi_align.pod",
        'type: "PODROIAlignPooling" podroi_align_pooling_param { pooled_h: 3 pooled_w: 2 spatial_scale: 0.25 '
        "sample_num: 0 }",
        (X, ROIS),
        aligned(X, ROIS, 0),
    ),
    Case("relu_3d", 'type: "ReLU3d"', (DEEP,), DEEP.clip(0)),
    Case(
        "relu_3d",
        'type: "ReLU3d" relu3d_param { negative_slope: 0.1 }',
        (DEEP,),
        functional.leaky_relu(T(DEEP), 0.1).numpy(),
    ),
    Case(
        "reshape_3d",
        'type: "Reshape3d" reshape3d_param { shape { dim: [0, 4, 2, -1, 3] } }',
        (DEEP,),
        DEEP.reshape(2, 4, 2, -1, 3),
    ),
]

# NART's own, of schemas/nart/mapping.yaml
NART = [
    Case(
        "recurrent",
        'type: "SLGRNN" recurrent_param { num_output: 4 hidden_bias: true }',
        (SEQUENCE,),
        GRU,
        GRU_WEIGHTS,
    ),
    Case(
        "recurrent",
        'type: "SLLSTM" recurrent_param { num_output: 4 hidden_bias: true }',
        (SEQUENCE,),
        LSTM,
        LSTM_WEIGHTS,
    ),
]
