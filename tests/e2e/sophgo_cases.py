"""Random settings of the layers that Sophgo's Caffe has beside those of bvlc, or computes in its own way."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tests.e2e.dialect_cases import Maker, Single
from tests.e2e.layer_cases import Random


def axpy(r: Random) -> Single:
    image = _image(r)
    factors = r.normal(*image[:2], *r.pick(((), (1, 1))))
    return Single("Axpy", "", (factors, r.normal(*image), r.normal(*image)))


def bn(r: Random) -> Single:
    n, c, h, w = _image(r)
    channels = [r.normal(1, c, 1, 1), r.normal(1, c, 1, 1)]
    if r.pick((False, True)):
        return Single("BN", "bn_param { bn_mode: INFERENCE }", (r.normal(n, c, h, w),), channels)
    text = f"bn_param {{ eps: {r.pick((1e-5, 1e-3, 0.1))} }}"
    return Single(
        "BN", text, (r.normal(n, c, h, w),), [*channels, r.normal(1, c, 1, 1), r.positive(1, c, 1, 1)]
    )


def clip(r: Random) -> Single:
    low = r.pick((-1, -0.5, 0))
    return Single("Clip", f"clip_param {{ min: {low} max: {low + r.pick((0.25, 1, 6))} }}", (_blob(r),))


def convolution(r: Random) -> Single:
    """With hints of Intel's Caffe, which this one takes no notice of."""
    n, c, h, w = _image(r)
    hints = (
        "quantization_param { bw_layer_in: 8 bw_params: 4 fl_params: 2 scale_in: 2 scale_params: 3 }",
        "mn_grad_compress_param { param_grad_compress_enable: true }",
    )
    text = f"convolution_param {{ num_output: 3 kernel_size: 2 pad: 1 }} {r.pick(hints)}"
    return Single("Convolution", text, (r.normal(n, c, h, w),), (r.normal(3, c, 2, 2), r.normal(3)))


def continuation(r: Random) -> Single:
    text = f"continuation_indicator_param {{ time_step: {r.size(2, 7)} batch_size: {r.size(1, 4)} }}"
    return Single("ContinuationIndicator", text)


def interp(r: Random) -> Single:
    n, c, h, w = _image(r)
    texts = (
        f"height: {r.size(1, 12)} width: {r.size(2, 12)}",
        f"zoom_factor: {r.size(1, 3)}",
        f"shrink_factor: {r.size(1, 3)}",
        f"zoom_factor: {r.size(1, 3)} shrink_factor: {r.size(1, 3)}",
        f"zoom_factor: 2 pad_beg: -{r.size(0, 1)}",
    )
    return Single("Interp", f"interp_param {{ {r.pick(texts)} }}", (r.normal(n, c, h, w),))


def matmul(r: Random) -> Single:
    m, k, n = r.size(1, 5), r.size(1, 5), r.size(2, 5)
    text = f"matmul_param {{ dim_1: {m} dim_2: {k} dim_3: {n} }}"
    return Single("MatMul", text, (r.normal(m, k), r.normal(n, k)))


def mish(r: Random) -> Single:
    return Single("Mish", "", (4 * _blob(r),))


def lstm(r: Random) -> Single:
    size, width = r.size(1, 4), r.size(1, 4)
    blobs = r.normal(4 * size, width), r.normal(4 * size, size), r.normal(4 * size)
    return Single("Lstm", f"lstm_param {{ num_output: {size} }}", (r.normal(r.size(2, 6), 1, width),), blobs)


def normalize(r: Random) -> Single:
    n, c, h, w = _image(r)
    shared, across = r.pick((False, True)), r.pick((False, True))
    text = f"norm_param {{ across_spatial: {_word(across)} channel_shared: {_word(shared)} }}"
    return Single("Normalize", text, (r.normal(n, c, h, w),), [r.normal(*(() if shared else (c,)))])


def padding(r: Random) -> Single:
    sides = " ".join(f"pad_{side}: {r.size(0, 3)}" for side in "lrtb")
    text = f"padding_param {{ {sides} pad_value: {r.pick((0, 1, -3))} }}"
    return Single("Padding", text, (r.normal(*_image(r)),))


def permute(r: Random) -> Single:
    order = " ".join(f"order: {axis}" for axis in r.generator.permutation(4)[: r.size(1, 4)])
    return Single("Permute", f"permute_param {{ {order} }}", (r.normal(*_image(r)),))


def pooling(r: Random) -> Single:
    """Averages over windows that reach beyond the padding, and sizes rounded down in either of two ways."""
    kernel, stride = r.size(2, 4), r.size(1, 3)
    pad = r.size(0, kernel - 1)
    rounding = r.pick(("", "round_mode: FLOOR", "ceil_mode: false", "ceil_mode: true"))
    text = (
        f"pool: {r.pick(('AVE', 'AVE', 'MAX'))} kernel_size: {kernel} stride: {stride} pad: {pad} {rounding}"
    )
    n, c = r.size(1, 3), r.size(1, 3)
    return Single("Pooling", f"pooling_param {{ {text} }}", (r.normal(n, c, r.size(5, 9), r.size(6, 9)),))


def pooling_yolo(r: Random) -> Single:
    """One window more at the end of each axis; strides up to half of a window."""
    kernel = r.size(2, 5)
    stride, pad = r.size(1, kernel // 2), r.pick((0, 0, r.size(1, kernel // 2)))
    rounding = r.pick(("", "round_mode: FLOOR", "ceil_mode: false"))
    text = f"pool: MAX kernel_size: {kernel} stride: {stride} pad: {pad} {rounding} yolo: true"
    image = r.normal(r.size(1, 3), r.size(1, 3), r.size(5, 9), r.size(6, 9))
    return Single("Pooling", f"pooling_param {{ {text} }}", (image,))


def prior_box(r: Random) -> Single:
    least = r.size(4, 20)
    largest = r.pick(("", f"max_size: {least + r.size(1, 9)}"))
    ratios = " ".join(f"aspect_ratio: {ratio}" for ratio in (2, 3)[: r.size(0, 2)])
    variance = r.pick(("variance: 0.1", "variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2", ""))
    step = r.pick(("", "step: 8", "step_h: 7 step_w: 9"))
    flags = f"flip: {_word(r.pick((False, True)))} clip: {_word(r.pick((False, True)))}"
    text = f"min_size: {least} {largest} {ratios} {variance} {step} {flags} offset: {r.pick((0.5, 0.25))}"
    image = r.normal(1, 3, r.size(30, 60), r.size(30, 60))
    return Single(
        "PriorBox", f"prior_box_param {{ {text} }}", (r.normal(1, 2, r.size(1, 5), r.size(1, 5)), image)
    )


def relu6(r: Random) -> Single:
    return Single("ReLU6", "", (5 * _blob(r),))


def reorg(r: Random) -> Single:
    stride = r.size(1, 3)
    n, c, h, w = _image(r)
    return Single("Reorg", f"reorg_param {{ stride: {stride} }}", (r.normal(n, c, h * stride, w * stride),))


def reverse(r: Random) -> Single:
    return Single("Reverse", f"reverse_param {{ axis: {r.size(0, 3)} }}", (r.normal(*_image(r)),))


def roi_pooling(r: Random) -> Single:
    """A block of regions for each image, of any image."""
    images = r.size(1, 3)
    corners = r.whole(12, images, 1, r.size(1, 4), 2)
    image = r.whole(images, *corners.shape[:-1], 1)
    rois = np.concatenate([image, corners, corners + r.whole(9, *corners.shape)], axis=-1)
    text = f"pooled_h: {r.size(1, 3)} pooled_w: {r.size(1, 4)} spatial_scale: 0.5"
    bottoms = r.normal(images, r.size(1, 3), 9, 10), rois
    return Single("ROIPooling", f"roi_pooling_param {{ {text} }}", bottoms)


def shuffle(r: Random) -> Single:
    group = r.size(1, 4)
    n, c, h, w = _image(r)
    return Single(
        "ShuffleChannel", f"shuffle_channel_param {{ group: {group} }}", (r.normal(n, c * group, h, w),)
    )


def swish(r: Random) -> Single:
    return Single("Swish", r.pick(("", f"swish_param {{ beta: {r.pick((0.5, 1.5, -1))} }}")), (_blob(r),))


def upsample(r: Random) -> Single:
    scale = r.size(2, 4)
    return Single("Upsample", f"upsample_param {{ scale: {scale} }}", (r.normal(*_image(r)),))


def unpooling(r: Random) -> Single:
    """Values and the places that a pool would have given: one in each cell of two by two."""
    n, c, h, w = _image(r)
    rows, columns = np.mgrid[:h, :w]
    corner = r.whole(2, n, c, h, w) * 2 * w + r.whole(2, n, c, h, w)
    places = (rows * 4 * w + columns * 2 + corner).astype(np.float32)
    text = r.pick(("scale: 2", f"upsample_h: {2 * h} upsample_w: {2 * w}", "scale_h: 2 scale_w: 2"))
    return Single("Upsample", f"upsample_param {{ {text} }}", (r.normal(n, c, h, w), places))


MAKERS: Mapping[str, Maker] = {
    make.__name__: make
    for make in (
        axpy, bn, clip, convolution, continuation, interp, lstm, matmul, mish, normalize, padding, permute,
        pooling, pooling_yolo, prior_box, relu6, reorg, reverse, roi_pooling, shuffle, swish, upsample,
        unpooling,
    )
}  # fmt: skip


def _image(r: Random) -> tuple[int, int, int, int]:
    return r.size(1, 3), r.size(1, 4), r.size(2, 6), r.size(2, 6)


def _blob(r: Random) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Return numbers of one to four axes, more than one of them."""
    return r.normal(*(r.size(3, 5) for _ in range(r.size(2, 4))))


def _word(flag: bool) -> str:
    return "true" if flag else "false"
