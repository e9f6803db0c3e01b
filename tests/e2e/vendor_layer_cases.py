"""Further layers of schemas/known_layers.yaml: what single vendors' layers compute, said independently."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from tests.e2e.known_formulas import (
    CHANNELS,
    KERNEL,
    PLACES,
    PLANES,
    VALUES,
    C,
    Floats,
    T,
    X,
    blocks,
    noise,
    norm,
    padded,
    positive,
    resized,
)
from tests.e2e.known_layer_cases import Case

ROWS = noise(5, 7, seed=3)
HALVES = np.arange(-4, 4, 0.5, dtype=np.float32)[None]
SMALL = np.asarray(X / 9, np.float32)  # where exponentials do not overflow
BOTH = [positive(*X.shape[1:], seed=8), noise(*X.shape[1:], seed=9)]
DENSE = noise(6, 4, 3, 2, seed=10)
HOLES = functional.conv2d(T(X), T(DENSE), T(C[0][:6]), dilation=(1, 2), groups=2).numpy()
STEPS, STATES = 5, 4


def sampled(x: Floats, height: int, width: int, offset: float, *, nearest: bool) -> Floats:
    """Return TensorFlow's resizing, element by element: pixels are at places + `offset`."""
    out = np.empty((*x.shape[:2], height, width), np.float32)
    for row, column in np.ndindex(height, width):
        places = [
            (at + offset) * size / new - (0 if nearest else offset)
            for at, size, new in ((row, x.shape[2], height), (column, x.shape[3], width))
        ]
        low = [max(int(np.floor(place)), 0) for place in places]
        if nearest:
            out[:, :, row, column] = x[:, :, low[0], low[1]]
            continue
        high = [min(int(np.ceil(p)), n - 1) for p, n in zip(places, x.shape[2:], strict=True)]
        down, right = (place - np.floor(place) for place in places)
        top = x[:, :, low[0], low[1]] * (1 - right) + x[:, :, low[0], high[1]] * right
        bottom = x[:, :, high[0], low[1]] * (1 - right) + x[:, :, high[0], high[1]] * right
        out[:, :, row, column] = top * (1 - down) + bottom * down
    return out


def unshuffled(x: Floats, block: int) -> Floats:
    return np.asarray(functional.pixel_unshuffle(T(x), block).numpy())


def recurrent() -> tuple[Floats, Floats, list[Floats]]:
    """Return a sequence, PyTorch's LSTM of it, and the weights in the order input, forget, output, new."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        cell = nn.LSTM(3, STATES)
        x = torch.randn(STEPS, 1, 3)
        y = cell(x)[0].detach().numpy()
    order = np.r_[0 : 2 * STATES, 3 * STATES : 4 * STATES, 2 * STATES : 3 * STATES]  # theirs: i, f, new, o
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    wx, wh, bx, bh = (cell.get_parameter(name).detach().numpy() for name in names)
    return x.numpy(), y, [np.ascontiguousarray(w[order]) for w in (wx, wh, bx + bh)]


SEQUENCE, STATE, WEIGHTS = recurrent()
NCHW = 'data_format: "NCHW"'
WINDOW = "num_output: 6 kernel_h: 3 kernel_w: 2 group: 2"
BETWEEN = "half_pixel_centers: true"
SIZE = "output_height: 7 output_width: 4"

CASES = [
    Case(
        "batch_norm.scale_bias",
        'type: "BatchNorm" batch_norm_param { scale_bias: true use_global_stats: true eps: 0.5 }',
        (X,),
        norm(X, 0.5),
        [C[2], C[3], np.ones(1, np.float32), C[0], C[1]],
    ),
    Case(
        "convolution.hole",
        f'type: "Convolution" convolution_param {{ {WINDOW} hole_h: 1 hole_w: 2 }}',
        (X,),
        HOLES,
        (DENSE, C[0][:6]),
    ),
    Case(
        "hole_convolution",
        f'type: "HoleConvolution" convolution_param {{ {WINDOW} hole_h: 1 hole_w: 2 }}',
        (X,),
        HOLES,
        (DENSE, C[0][:6]),
    ),
    Case(
        "hole_convolution",
        'type: "HoleConvolution" convolution_param { num_output: 8 kernel_h: 3 kernel_w: 2 group: 8 }',
        (X,),
        functional.conv2d(T(X), T(KERNEL), T(C[0]), groups=8).numpy(),
        (KERNEL, C[0]),
    ),
    Case(
        "crelu",
        'type: "CReLU" crelu_param { negative_slope: 0.5 concat_axis: -2 }',
        (X,),
        functional.leaky_relu(torch.cat([T(X), -T(X)], 2), 0.5).numpy(),
    ),
    Case(
        "expand_dims_nd",
        'type: "ExpandDimsND" expand_dims_nd_param { axis: [1, 1, -1] }',
        (ROWS,),
        ROWS.reshape(5, 1, 1, 7, 1),
    ),
    Case(
        "gather_v2",
        'type: "GatherV2" gather_v2_param { axis: 1 }',
        (X, np.array([[7, 0], [2, 2]], np.float32)),
        X[:, [[7, 0], [2, 2]]],
    ),
    Case(
        "gemm",
        'type: "Gemm" gemm_param { alpha: 0.5 beta: 2 transA: 1 }',
        (ROWS, noise(5, 3, seed=4), noise(1, 3, seed=5)),
        0.5 * ROWS.T @ noise(5, 3, seed=4) + 2 * noise(1, 3, seed=5),
    ),
    Case(
        "layer_norm",
        'type: "LayerNorm" layer_norm_param { eps: 0.5 }',
        (X,),
        functional.layer_norm(T(X), X.shape[1:], T(BOTH[0]), T(BOTH[1]), 0.5).numpy(),
        BOTH,
    ),
    Case("log_softmax", 'type: "LogSoftmax"', (X,), functional.log_softmax(T(X), 1).numpy()),
    Case(
        "lp_normalization",
        'type: "LpNormalization" lp_normalization_param { axis: 2 p: 1 }',
        (X,),
        functional.normalize(T(X), 1, 2).numpy(),
    ),
    Case("lstm.junhyuk", 'type: "Lstm" lstm_param { num_output: 4 }', (SEQUENCE,), STATE, WEIGHTS),
    Case(
        "mirror_pad",
        'type: "MirrorPad" mirror_pad_param { paddings: [0, 0, 0, 0, 1, 2, 3, 0] mode: "REFLECT" }',
        (X,),
        padded(X, ((0, 0), (0, 0), (1, 2), (3, 0)), "reflect"),
    ),
    Case(
        "mirror_pad",
        'type: "MirrorPad" mirror_pad_param { paddings: [0, 0, 0, 0, 1, 2, 3, 0] constant_values: 2 }',
        (X,),
        padded(X, ((0, 0), (0, 0), (1, 2), (3, 0)), "constant", 2.0),
    ),
    Case(
        "nn_upsample", 'type: "NNUpsample" nn_upsample_param { resize: 3 }', (X,), X.repeat(3, 2).repeat(3, 3)
    ),
    Case(
        "piece",
        'type: "Piece" piece_param { begin: [0, 1, 2, 0] size: [1, 3, -1, 2] }',
        (X,),
        X[:1, 1:4, 2:, :2],
    ),
    Case(
        "reduce_l1",
        'type: "ReduceL1" reduce_l1_param { axes: [1, -1] }',
        (X,),
        abs(X).sum((1, 3), keepdims=True),
    ),
    Case(
        "reduce_l2",
        'type: "ReduceL2" reduce_l2_param { axes: 2 keepdims: 0 }',
        (X,),
        torch.linalg.vector_norm(T(X), dim=2).numpy(),
    ),
    Case(
        "reduce_l2.ppq",
        'type: "ReduceL2" reducel2_param { axes: 1 }',
        (X,),
        torch.linalg.vector_norm(T(X), dim=1, keepdim=True).numpy(),
    ),
    Case(
        "reduce_logsumexp",
        'type: "ReduceLogsumexp" reduce_logsumexp_param { axis: [1, 3] keepdims: true }',
        (SMALL,),
        torch.logsumexp(T(SMALL), (1, 3), True).numpy(),
    ),
    Case("reorg.darknet", 'type: "Reorg" reorg_param { stride: 2 reverse: true }', (blocks(X, 2, 2),), X),
    Case("reorg.pass_through", 'type: "Reorg" reorg_param { stride: 2 }', (X,), blocks(X, 2, 2)),
    Case("reorg.pass_through", 'type: "Reorg" reorg_param { reverse: true }', (blocks(X, 2, 2),), X),
    Case("resize.nart", 'type: "Resize" resize_param { height: 7 width: 3 }', (X,), resized(X, 7, 3)),
    Case(
        "resize.nart",
        'type: "Resize" resize_param { height: 7 width: 4 interp_mode: 0 }',
        (X,),
        resized(X, 7, 4, mode="nearest", aligned=None),
    ),
    Case(
        "resize_bilinear",
        f'type: "ResizeBilinear" resize_bilinear_param {{ {NCHW} output_height: 7 scale_width: 1.5 }}',
        (X,),
        sampled(X, 7, 9, 0.0, nearest=False),
    ),
    Case(
        "resize_bilinear",
        f'type: "ResizeBilinear" resize_bilinear_param {{ {NCHW} {SIZE} align_corners: true }}',
        (X,),
        resized(X, 7, 4),
    ),
    Case(
        "resize_bilinear",
        f'type: "ResizeBilinear" resize_bilinear_param {{ {NCHW} scale_height: 2 half_pixel_centers: true }}',
        (X,),
        resized(X, 8, 6, aligned=False),
    ),
    Case(
        "resize_nearest",
        f'type: "ResizeNearestNeighbor" resize_nearest_neighbor_param {{ {NCHW} {SIZE} }}',
        (X,),
        sampled(X, 7, 4, 0.0, nearest=True),
    ),
    Case(
        "resize_nearest",
        f'type: "ResizeNearestNeighbor" resize_nearest_neighbor_param {{ {NCHW} {SIZE} {BETWEEN} }}',
        (X,),
        sampled(X, 7, 4, 0.5, nearest=True),
    ),
    Case(
        "resize_nearest",
        f'type: "ResizeNearestNeighbor" resize_nearest_neighbor_param {{ data_format: "NHWC" {SIZE} }}',
        (X.transpose(0, 2, 3, 1).copy(),),
        sampled(X, 7, 4, 0.0, nearest=True).transpose(0, 2, 3, 1),
    ),
    Case(
        "scaled_tanh",
        'type: "ScaledTanH" scaled_tanh_param { alpha: 3 beta: 0.25 }',
        (X,),
        3 * np.tanh(np.float32(0.25) * X),
    ),
    Case("scales", 'type: "Scales" scales_param { alpha: 3 beta: -1 }', (X,), 3 * X - 1),
    Case("selu", 'type: "SeLU"', (X,), functional.selu(T(X)).numpy()),
    Case(
        "squeeze",
        'type: "Squeeze" squeeze_param { axis: -1 axis: 0 }',
        (ROWS[None, :, :, None],),
        ROWS,
    ),
    Case("stack", 'type: "Stack" stack_param { axis: -1 }', (X, X[::-1].copy()), np.stack([X, X[::-1]], -1)),
    Case(
        "strided_slice",
        'type: "StridedSlice" strided_slice_param { begin: [1, 5] end: [7, -9] strides: [2,-2] axes: [1,3] }',
        (X,),
        X[:, 1:7:2, :, 5::-2],
    ),
    Case(
        "subpixel_down",
        'type: "SubpixelDown" subpixel_down_param { downsample: 2 }',
        (X,),
        unshuffled(X, 2),
    ),
    Case("subpixel_up.nart", 'type: "SubpixelUp" subpixel_up_param { upsample: 2 }', (unshuffled(X, 2),), X),
    Case(
        "thresholded_relu",
        'type: "ThresholdedReLU" thresholded_relu_param { alpha: 2 }',
        (X,),
        functional.threshold(T(X), 2, 0).numpy(),
    ),
    Case("unstack", 'top: "z" type: "Unstack"', (X,), X[0]),
    Case(
        "upsample.aligned",
        'type: "Upsample" upsample_param { scale: 2 }',
        (VALUES, PLACES),
        PLANES,
    ),
    Case(
        "upsample.stride",
        'type: "Upsample" upsample_param { stride_h: 2 stride_w: 3 }',
        (X,),
        X.repeat(2, 2).repeat(3, 3),
    ),
    Case(
        "upsample.stride", 'type: "Upsample" upsample_param { stride: 3 }', (X,), X.repeat(3, 2).repeat(3, 3)
    ),
    Case("bn.pspnet", 'type: "BN" bn_param { eps: 0.5 frozen: true }', (X,), norm(X, 0.5), CHANNELS),
    Case("add.broadcast", 'type: "Add"', (X, ROWS[:4, :6].copy()), X + ROWS[:4, :6]),
    Case("sub.broadcast", 'type: "Sub"', (ROWS[:4, :6].copy(), X), ROWS[:4, :6] - X),
    Case("mul.broadcast", 'type: "Mul"', (X, CHANNELS[0]), X * CHANNELS[0]),
    Case("div.broadcast", 'type: "Div"', (X, CHANNELS[0]), X / CHANNELS[0]),
    Case("maximum.broadcast", 'type: "Maximum"', (X, CHANNELS[0]), np.maximum(X, CHANNELS[0])),
    Case("minimum.broadcast", 'type: "Minimum"', (CHANNELS[0], X), np.minimum(X, CHANNELS[0])),
    Case("atan", 'type: "Atan"', (X,), np.arctan(X)),
    Case("ceil", 'type: "Ceil"', (X,), np.ceil(X)),
    Case("floor", 'type: "Floor"', (X,), np.floor(X)),
    Case("round", 'type: "Round"', (HALVES,), np.rint(HALVES)),
    Case("sin", 'type: "Sin"', (X,), np.sin(X)),
    Case("softplus", 'type: "Softplus"', (X,), functional.softplus(T(X)).numpy()),
    Case("softsign", 'type: "Softsign"', (X,), functional.softsign(T(X)).numpy()),
]
