"""Random settings of the layers that the Caffe of inisis has beside those of SSD."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tests.e2e.dialect_cases import Maker, Single
from tests.e2e.layer_cases import Random


def batch_norm(r: Random) -> Single:
    channels, own = r.size(1, 4), r.pick((True, False))
    stored = r.pick(("", "use_global_stats: true", "use_global_stats: false"))
    text = f"eps: {r.pick((0.00001, 0.01))} use_alpha_beta: {str(own).lower()} {stored}"
    shape = (r.size(2, 3), channels, *(r.size(2, 5) for _ in range(r.pick((0, 1, 2)))))
    factor = np.array([r.pick((0, 1, 0.5))], np.float32)
    blobs = [r.normal(channels), np.abs(r.normal(channels)), factor]
    blobs += [r.normal(channels), r.normal(channels)] if own else []
    return Single("BatchNormKyle", f"batch_norm_param {{ {text} }}", (r.normal(*shape),), blobs)


def bilinear(r: Random) -> Single:
    image = r.normal(r.size(1, 3), r.size(1, 4), r.size(2, 6), r.size(2, 6))
    aligned = r.pick(("", "align_corners: false", "align_corners: true"))
    size = r.pick((f"dst_h: {r.size(2, 12)} dst_w: {r.size(2, 12)}", f"scale_factor: {r.pick((1.5, 2, 3))}"))
    return Single("BilinearInterpolate", f"bilinear_interpolate_param {{ {size} {aligned} }}", (image,))


def convolution(r: Random) -> Single:
    """Strides given once: the schema's default of stride_h is not what the layer computes with."""
    kind = r.pick(("Convolution", "Deconvolution"))
    kernel, stride = r.size(1, 3), r.size(1, 3)
    text = f"num_output: 3 kernel_size: {kernel} stride: {stride} bias_term: false"
    shape = (3, 2, kernel, kernel) if kind == "Convolution" else (2, 3, kernel, kernel)
    image = r.normal(r.size(1, 2), 2, 7, 6)
    return Single(kind, f"convolution_param {{ {text} }}", (image,), (r.normal(*shape),))


def hard_sigmoid(r: Random) -> Single:
    text = r.pick(("", f"hardsigmoid_param {{ alpha: {r.pick((0.1, 0.25))} beta: {r.pick((0.3, 0.6))} }}"))
    return Single("HardSigmoid", text, (3 * r.normal(3, r.size(2, 5), 4),))


def hard_swish(r: Random) -> Single:
    return Single("HardSwish", "", (3 * r.normal(3, r.size(2, 5), 4),))


def pad(r: Random) -> Single:
    kind = r.pick(("CONSTANT", "REPLICATE", "REFLECT"))
    value = f"pad_value: {r.pick((0, 1.5, -2))}" if kind == "CONSTANT" else ""
    sides = " ".join(f"pad_{side}: {r.size(0, 2)}" for side in "udlr")
    image = r.normal(r.size(1, 3), r.size(1, 4), r.size(3, 6), r.size(3, 6))
    return Single("Pad", f"pad_param {{ pad_type: {kind} {sides} {value} }}", (image,))


def pixel_shuffle(r: Random) -> Single:
    factor = r.size(1, 3)
    image = r.normal(r.size(1, 3), factor * factor * r.size(1, 3), r.size(2, 4), r.size(2, 4))
    return Single("PixelShuffle", f"pixelshuffle_param {{ upscale_factor: {factor} }}", (image,))


def pooling(r: Random) -> Single:
    kernel = r.size(2, 3)
    window = f"kernel_size: {kernel} stride: {r.size(1, 3)} pad: {r.size(0, kernel - 1)}"
    text = f"pool: {r.pick(('AVE', 'MAX'))} {window}"
    image = r.normal(r.size(1, 3), r.size(1, 3), r.size(5, 9), r.size(6, 9))
    return Single("Pooling", f"pooling_param {{ {text} ceil_mode: {r.pick(('true', 'false'))} }}", (image,))


def relu6(r: Random) -> Single:
    text = r.pick(("", "relu6_param { threshold: 3 }"))
    return Single("ReLU6", text, (5 * r.normal(3, r.size(2, 5), 4),))


def resize(r: Random) -> Single:
    image = r.normal(r.size(1, 3), r.size(1, 4), r.size(1, 9), r.size(1, 9))
    scales = f"out_height_scale: {r.pick((1, 1.7, 2))} out_width_scale: {r.pick((1.3, 3))}"
    size = f"height: {r.size(1, 20)} width: {r.size(1, 20)}"
    text = r.pick((size, f"is_pyramid_test: true {scales}"))
    return Single("Resize", f"resize_param {{ {text} }}", (image,))


def unpooling(r: Random) -> Single:
    n, c, h, w = r.size(1, 3), r.size(1, 4), r.size(2, 5), r.size(2, 5)
    rows, columns = np.mgrid[:h, :w]
    corner = r.whole(2, n, c, h, w) * 2 * w + r.whole(2, n, c, h, w)
    places = (rows * 4 * w + columns * 2 + corner).astype(np.float32)
    text = f"max_unpool_param {{ dst_h: {2 * h} dst_w: {2 * w} }}"
    return Single("MaxUnPool", text, (r.normal(n, c, h, w), places))


def unsqueeze(r: Random) -> Single:
    return Single("Unsqueeze", f"unsqueeze_param {{ dim: {r.size(0, 3)} }}", (r.normal(2, r.size(2, 5), 4),))


def upsample(r: Random) -> Single:
    image = r.normal(r.size(1, 3), r.size(1, 4), r.size(2, 5), r.size(2, 5))
    return Single("Upsample", f"upsample_param {{ scale: {r.size(1, 4)} }}", (image,))


MAKERS: Mapping[str, Maker] = {
    make.__name__: make
    for make in (
        batch_norm, bilinear, convolution, hard_sigmoid, hard_swish, pad, pixel_shuffle, pooling, relu6,
        resize, unpooling, unsqueeze, upsample,
    )
}  # fmt: skip
