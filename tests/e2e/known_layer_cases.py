"""What layers of schemas/known_layers.yaml compute, said by PyTorch, NumPy, or a loop from the definition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torchvision
from torch.nn import functional

from tests.e2e.known_formulas import (
    CHANNELS,
    CUT,
    KERNEL,
    MATRICES,
    PLACES,
    PLANES,
    ROIS,
    SIDES,
    VALUES,
    A,
    C,
    Floats,
    T,
    X,
    aligned_nearest,
    blocks,
    darknet_reorg,
    norm,
    padded,
    pool,
    resized,
    unit_length,
)


@dataclass(frozen=True)
class Case:
    """A layer: its text, what it reads, its weights, and what it gives."""

    id: str
    layer: str
    bottoms: Sequence[Floats]
    expected: Floats
    blobs: Sequence[Floats] = ()


CASES = [
    Case("axpy", 'type: "Axpy"', (A, X, X[::-1].copy()), A * X + X[::-1]),
    Case("batch_matmul", 'type: "BatchMatMul"', MATRICES, MATRICES[0] @ MATRICES[1]),
    Case(
        "batch_matmul",
        'type: "BatchMatMul" batch_matmul_param { adj_x1: true adj_x2: true }',
        [m.transpose(0, 2, 1).copy() for m in MATRICES],
        MATRICES[0] @ MATRICES[1],
    ),
    Case(
        "bilinear_interpolate",
        'type: "BilinearInterpolate" bilinear_interpolate_param { dst_h: 7 dst_w: 3 align_corners: false }',
        (X,),
        resized(X, 7, 3, aligned=False),
    ),
    Case(
        "bilinear_interpolate",
        'type: "BilinearInterpolate" bilinear_interpolate_param { scale_factor: 1.5 }',
        (X,),
        resized(X, 6, 9),
    ),
    Case("bn.nart", 'type: "BN" bn_param { moving_average: true }', (X,), norm(X, 1e-10), CHANNELS),
    Case("bn.pspnet", 'type: "BN" bn_param { eps: 0.5 }', (X,), norm(X, 0.5), CHANNELS),
    Case(
        "bn.segnet",
        'type: "BN" bn_param { bn_mode: INFERENCE }',
        (X,),
        X * CHANNELS[0] + CHANNELS[1],
        CHANNELS[:2],
    ),
    Case(
        "channel_shuffle",
        'type: "ChannelShuffle" channel_shuffle_param { group: 4 }',
        (X,),
        functional.channel_shuffle(T(X), 4).numpy(),
    ),
    Case("dropout.scale_train", 'type: "Dropout" dropout_param { dropout_ratio: 0.2 }', (X,), X),
    Case(
        "dropout.scale_train",
        'type: "Dropout" dropout_param { dropout_ratio: 0.2 scale_train: false }',
        (X,),
        np.float32(0.8) * X,
    ),
    Case(
        "shuffle_channel",
        'type: "ShuffleChannel" shuffle_channel_param { group: 2 }',
        (X,),
        functional.channel_shuffle(T(X), 2).numpy(),
    ),
    Case("clip", 'type: "Clip" clip_param { min: -2 max: 3 }', (X,), X.clip(-2, 3)),
    Case(
        "continuation_indicator",
        'type: "ContinuationIndicator" continuation_indicator_param { time_step: 3 batch_size: 2 }',
        (),
        np.array([[0, 0], [1, 1], [1, 1]], np.float32),
    ),
    Case(
        "depth_to_space",
        'type: "DepthToSpace" depth_to_space_param { block_size: 2 data_format: "NCHW" }',
        (blocks(X, 2, 2),),
        X,
    ),
    Case(
        "depthwise",
        'type: "ConvolutionDepthwise" convolution_param { num_output: 8 kernel_size: [3, 2] stride: 2 }',
        (X,),
        functional.conv2d(T(X), T(KERNEL), T(C[0]), stride=2, groups=8).numpy(),
        (KERNEL, C[0]),
    ),
    Case(
        "group_norm.nart",
        'type: "GroupNorm" group_norm_param { group_num: 4 }',
        (X,),
        functional.group_norm(T(X), 4).numpy(),
    ),
    Case(
        "hard_sigmoid",
        'type: "HardSigmoid" hard_sigmoid_param { alpha: 0.1 }',
        (X,),
        (X * np.float32(0.1) + np.float32(0.5)).clip(0, 1),
    ),
    Case("hard_sigmoid.nart", 'type: "HSigmoid"', (X,), functional.hardsigmoid(T(X)).numpy()),
    Case("hard_swish", 'type: "HardSwish"', (X,), functional.hardswish(T(X)).numpy()),
    Case(
        "instance_norm",
        'type: "InstanceNorm" instance_norm_param { num_features: 8 affine: true }',
        (X,),
        functional.instance_norm(T(X), weight=T(C[0]), bias=T(C[1])).numpy(),
        C[:2],
    ),
    Case("interp", 'type: "Interp" interp_param { height: 7 width: 3 }', (X,), resized(X, 7, 3)),
    Case("interp", 'type: "Interp" interp_param { zoom_factor: 2 }', (X,), resized(X, 7, 11)),
    Case(
        "interp",
        'type: "Interp" interp_param { shrink_factor: 2 height: 9 width: 9 }',
        (X,),
        resized(X, 2, 3),
    ),
    Case("interp", 'type: "Interp" interp_param { shrink_factor: 2 zoom_factor: 3 }', (X,), resized(X, 4, 7)),
    Case(
        "interp",
        'type: "Interp" interp_param { zoom_factor: 2 pad_beg: -1 pad_end: -1 }',
        (X,),
        resized(CUT.copy(), 3, 7),
    ),
    Case("interp.sized", 'type: "Interp" interp_param { height: 7 width: 3 }', (X,), resized(X, 7, 3)),
    Case(
        "layer_norm",
        'type: "LayerNorm" layer_norm_param { elementwise_affine: false }',
        (X,),
        functional.layer_norm(T(X), X.shape[1:]).numpy(),
    ),
    Case(
        "matmul.mode",
        'type: "MatMul" matmul_param { mode: TN }',
        (MATRICES[0][0].T.copy(), MATRICES[1][0]),
        MATRICES[0][0] @ MATRICES[1][0],
    ),
    Case(
        "matmul.sizes",
        'type: "MatMul" matmul_param { dim_1: 2 dim_2: 4 dim_3: 5 }',
        (MATRICES[0][0], MATRICES[1][0].T.copy()),
        MATRICES[0][0] @ MATRICES[1][0],
    ),
    Case(
        "matmul.transpose",
        'type: "MatMul" matmul_param { transpose_b: true }',
        (MATRICES[0], MATRICES[1].transpose(0, 2, 1).copy()),
        MATRICES[0] @ MATRICES[1],
    ),
    Case("max_unpool", 'type: "MaxUnPool" max_unpool_param { dst_h: 4 dst_w: 6 }', (VALUES, PLACES), PLANES),
    Case("mish", 'type: "Mish"', (X,), functional.mish(T(X)).numpy()),
    Case(
        "nn_interp",
        'type: "NNInterp" nninterp_param { height: 7 width: 4 }',
        (X,),
        resized(X, 7, 4, mode="nearest", aligned=None),
    ),
    Case("normalize", 'type: "Normalize"', (X,), unit_length(X, (1, 2, 3), C[0][:1]), [C[0][:1]]),
    Case(
        "normalize",
        'type: "Normalize" norm_param { across_spatial: false channel_shared: false }',
        (X,),
        unit_length(X, (1,), CHANNELS[0]),
        [C[0]],
    ),
    Case(
        "pad.brocolli",
        'type: "Pad" pad_param { pad_u: 1 pad_d: 2 pad_l: 3 pad_value: 0.5 }',
        (X,),
        padded(X, SIDES, "constant", 0.5),
    ),
    Case(
        "pad.brocolli",
        'type: "Pad" pad_param { pad_u: 1 pad_d: 2 pad_l: 3 pad_type: REPLICATE }',
        (X,),
        padded(X, SIDES, "edge"),
    ),
    Case(
        "pad.onnx",
        'type: "Pad" pad_param { mode: "reflect" pads: [0, 0, 1, 3, 0, 0, 2, 0] }',
        (X,),
        padded(X, SIDES, "reflect"),
    ),
    Case(
        "pad.pairs",
        'type: "Pad" pad_param { paddings: [0, 0, 0, 0, 1, 2, 3, 0] constant_values: 0.5 }',
        (X,),
        padded(X, SIDES, "constant", 0.5),
    ),
    Case(
        "pad.reflection",
        'type: "ReflectionPad" pad_param { pad_h: 1 pad_w: 2 }',
        (X,),
        padded(X, ((0, 0), (0, 0), (1, 1), (2, 2)), "reflect"),
    ),
    Case(
        "padding",
        'type: "Padding" padding_param { pad_t: 1 pad_b: 2 pad_l: 3 pad_value: 2 }',
        (X,),
        padded(X, SIDES, "constant", 2.0),
    ),
    Case(
        "pass_through",
        'type: "PassThrough" pass_through_param { block_height: 2 block_width: 3 }',
        (X,),
        blocks(X, 2, 3),
    ),
    Case(
        "permute",
        'type: "Permute" permute_param { order: 0 order: 2 order: 3 order: 1 }',
        (X,),
        X.transpose(0, 2, 3, 1),
    ),
    Case("permute", 'type: "Permute" permute_param { order: 2 order: 0 }', (X,), X.transpose(2, 0, 1, 3)),
    Case(
        "pixel_shuffle",
        'type: "PixelShuffle" pixelshuffle_param { upscale_factor: 2 }',
        (X,),
        functional.pixel_shuffle(T(X), 2).numpy(),
    ),
    Case(
        "pooling.avg_include_pad",
        'type: "Pooling" pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 avg_include_pad: false }',
        (X,),
        pool(X, average=True, kernel_size=3, stride=2, padding=1, ceil_mode=True, count_include_pad=False),
    ),
    Case(
        "pooling.rounding",
        'type: "Pooling" pooling_param { pool: MAX kernel_size: 3 stride: 2 round_mode: FLOOR }',
        (X,),
        pool(X, kernel_size=3, stride=2),
    ),
    Case(
        "pooling.rounding",
        'type: "Pooling" pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 ceil_mode: false }',
        (X,),
        pool(X, average=True, kernel_size=3, stride=2, padding=1),
    ),
    Case(
        "pooling.rounding",
        'type: "Pooling" pooling_param { pool: MAX kernel_size: 3 stride: 2 ceil_mode: true }',
        (X,),
        pool(X, kernel_size=3, stride=2, ceil_mode=True),
    ),
    Case("reduce_max", 'type: "ReduceMax" reduce_max_param { axis: [1, 3] }', (X,), X.max((1, 3))),
    Case(
        "reduce_mean",
        'type: "ReduceMean" reduce_mean_param { axis: -1 keepdims: true }',
        (X,),
        X.mean(3, keepdims=True),
    ),
    Case("reduce_min", 'type: "ReduceMin" reduce_min_param { axis: 1 }', (X,), X.min(1)),
    Case("reduce_prod", 'type: "ReduceProd" reduce_prod_param { axis: 2 }', (X,), X.prod(2)),
    Case("reduce_sum", 'type: "ReduceSum" reduce_sum_param { axis: [0, 2] }', (X,), X.sum((0, 2))),
    Case("relu6", 'type: "ReLU6"', (X,), functional.relu6(T(X)).numpy()),
    Case("relu6.openvino", 'type: "ReLU6" relu6_param { n: 4 }', (X,), X.clip(0, 4)),
    Case("reorg.darknet", 'type: "Reorg" reorg_param { stride: 2 }', (X,), darknet_reorg(X, 2)),
    Case("reorg.space_to_depth", 'type: "Reorg" reorg_param { stride: 2 }', (X,), blocks(X, 2, 2)),
    Case("reverse", 'type: "Reverse" reverse_param { axis: 1 }', (X,), np.flip(X, 1)),
    Case("reverse.axes", 'type: "Reverse" reverse_param { axis: [0, 3] }', (X,), np.flip(X, (0, 3))),
    Case(
        "roi_align",
        'type: "ROIAlign" roi_align_param { pooled_h: 2 pooled_w: 3 spatial_scale: 0.25 sampling_ratio: 2 }',
        (X, ROIS),
        torchvision.ops.roi_align(T(X), T(ROIS), (2, 3), 0.25, 2).numpy(),
    ),
    Case(
        "roi_pooling",
        'type: "ROIPooling" roi_pooling_param { pooled_h: 2 pooled_w: 3 spatial_scale: 0.25 }',
        (X, ROIS),
        torchvision.ops.roi_pool(T(X), T(ROIS), (2, 3), 0.25).numpy(),
    ),
    Case(
        "space_to_depth",
        'type: "SpaceToDepth" space_to_depth_param { block_size: 2 data_format: "NCHW" }',
        (X,),
        blocks(X, 2, 2),
    ),
    Case(
        "subpixel_up",
        'type: "SubpixelUp" subpixel_up_param { upsample: 2 mode: pytorch }',
        (X,),
        functional.pixel_shuffle(T(X), 2).numpy(),
    ),
    Case("swish", 'type: "Swish" swish_param { beta: 1.5 }', (X,), X / (1 + np.exp(-np.float32(1.5) * X))),
    Case(
        "transpose", 'type: "Transpose" transpose_param { dim: [3, 0, 2, 1] }', (X,), X.transpose(3, 0, 2, 1)
    ),
    Case("unsqueeze", 'type: "Unsqueeze" unsqueeze_param { dim: -1 }', (C[0],), C[0][:, None]),
    Case(
        "upsample.aligned",
        'type: "Upsample" upsample_param { upsample_h: 7 upsample_w: 11 nearestneighbor_mode: true }',
        (X,),
        aligned_nearest(X, 7, 11),
    ),
    Case(
        "upsample.darknet",
        'type: "UpsampleDarknet" upsample_darknet_param { stride: 2 }',
        (X,),
        X.repeat(2, 2).repeat(2, 3),
    ),
    Case(
        "upsample.nearest", 'type: "Upsample" upsample_param { scale: 3 }', (X,), X.repeat(3, 2).repeat(3, 3)
    ),
    Case(
        "upsample.sophgo", 'type: "Upsample" upsample_param { scale: 3 }', (X,), X.repeat(3, 2).repeat(3, 3)
    ),
    Case(
        "upsample.sophgo",
        'type: "Upsample" upsample_param { scale_h: 2 scale_w: 2 }',
        (VALUES, PLACES),
        PLANES,
    ),
    Case(
        "upsample.sized",
        'type: "Upsample" upsample_param { height_scale: 2 width_scale: 3 mode: NEAREST }',
        (X,),
        X.repeat(2, 2).repeat(3, 3),
    ),
    Case("upsample.sized", 'type: "Upsample" upsample_param { height: 7 width: 9 }', (X,), resized(X, 7, 9)),
    Case("upsample.unpool", 'type: "Upsample"', (VALUES, PLACES), PLANES),
]
