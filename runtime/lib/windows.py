"""Windows of convolution and pooling: sizes by Caffe's rules, what they cover, and kernels that move."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as _product

import numpy as np

from caffeforge.runtime.array import Array, Dense, Expanded
from caffeforge.runtime.lib.numbers import product
from caffeforge.runtime.refusal import Refused

Ints = Sequence[int]


def spatial(each: Ints | int, height: int, width: int, default: int, axes: int) -> tuple[int, ...]:
    """Return a window size by Caffe's rule: `height`/`width` if given, else `each` once or per axis.

    Args:
        each: the repeated (or scalar) field; empty or 0 if it is absent.
        height: the ``_h`` field, 0 if absent; it stands for 2-D only.
        width: the ``_w`` field, likewise.
        default: the size where nothing is given.
        axes: how many spatial axes the bottom has.
    """
    if height or width:
        if each and not isinstance(each, int):
            raise Refused("one size for all axes is given and one for each")
        return (height or default, width or default)
    values = (each,) * bool(each) if isinstance(each, int) else tuple(each)
    if len(values) not in (0, 1, axes):
        raise Refused(f"{len(values)} sizes are given for {axes} spatial axes")
    return values if len(values) == axes else (values or (default,)) * axes


def caffe_pool_size(sizes: Ints, kernel: Ints, stride: Ints, pad: Ints) -> tuple[int, ...]:
    """Return the output sizes of Caffe's Pooling: ceil, then its clip rule.

    Where any pad is set, a last window that would begin beyond the input and its front padding is dropped.
    """
    outs = [-((k - s - 2 * p) // t) + 1 for s, k, t, p in zip(sizes, kernel, stride, pad, strict=True)]
    if any(pad):
        outs = [o - ((o - 1) * t >= s + p) for o, s, t, p in zip(outs, sizes, stride, pad, strict=True)]
    return tuple(outs)


def caffe_overhang(sizes: Ints, kernel: Ints, stride: Ints, pad: Ints) -> tuple[int, ...]:
    """Return how far Caffe's last pooling window reaches beyond the input and its end padding."""
    axes = zip(caffe_pool_size(sizes, kernel, stride, pad), sizes, kernel, stride, pad, strict=True)
    return tuple(max(0, (o - 1) * t + k - s - 2 * p) for o, s, k, t, p in axes)


def caffe_windows_inside(sizes: Ints, kernel: Ints, stride: Ints, pad: Ints) -> bool:
    """Tell whether each of Caffe's pooling windows holds at least one element of the input."""
    axes = zip(caffe_pool_size(sizes, kernel, stride, pad), sizes, kernel, stride, pad, strict=True)
    return all(p < k and (o - 1) * t - p < s for o, s, k, t, p in axes)


def window_count(sizes: Ints, kernel: Ints, stride: Ints, pad: Ints, dilation: Ints) -> tuple[int, ...]:
    """Return how many whole windows fit along each axis, with `pad` on both sides."""
    axes = zip(sizes, kernel, stride, pad, dilation, strict=True)
    return tuple((s + 2 * p - d * (k - 1) - 1) // t + 1 for s, k, t, p, d in axes)


def taps(kernel: Ints, dilation: Ints) -> tuple[tuple[int, ...], ...]:
    """Return where each tap of a window stands, row-major, counted from the window's first place."""
    return tuple(_product(*(range(0, k * d, d) for k, d in zip(kernel, dilation, strict=True))))


def pyramid_windows(sizes: Ints, height: int) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """Return (window, pad) of each level of Caffe's SPP; level n has 2**n bins along each axis."""
    levels = []
    for bins in (2**level for level in range(height)):
        window = tuple(-(-size // bins) for size in sizes)
        levels.append(
            (window, tuple((k * bins - size + 1) // 2 for k, size in zip(window, sizes, strict=True)))
        )
    return tuple(levels)


def pads_by_stride(begins: Ints, ends: Ints, stride: Ints) -> tuple[int, ...]:
    """Return symmetric pads, no smaller than the ends, that move windows of `begins` by whole strides."""
    axes = zip(begins, ends, stride, strict=True)
    return tuple(b + -(-max(0, e - b) // t) * t for b, e, t in axes)


def shift_kernel(channels: int, pairs: Sequence[tuple[int, int]]) -> Array:
    """Return the depthwise kernel (channels, 1, ...) that pads by (begin, end), together with shift_pads."""
    kernel = np.zeros((1, 1, *kernel_sizes(pairs)), np.float32)
    place = (0, 0, *(max(pair) - pair[0] for pair in pairs))
    kernel[place] = 1
    return Expanded(Dense(kernel), (channels, *kernel.shape[1:]))


def shift_pads(pairs: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """Return the symmetric pads of the convolution with shift_kernel."""
    return tuple(max(pair) for pair in pairs) * 2


def padding_share(sizes: Ints, kernel: Ints, stride: Ints, dilation: Ints, pads: Ints, out: Ints) -> Array:
    """Return, for each window, its elements divided by those that lie in the input and not in the padding.

    The mean over all of a window times this is the mean without the padding. Two axes are due.
    """
    shares = []
    begins = pads[: len(sizes)]
    for s, k, t, d, p, o in zip(sizes, kernel, stride, dilation, begins, out, strict=True):
        inside = [sum(0 <= i * t - p + j * d < s for j in range(k)) for i in range(o)]
        if not all(inside):
            raise Refused("a window lies in the padding alone")
        shares.append(k / np.array(inside))
    whole_window = shares[0]
    for share in shares[1:]:
        whole_window = np.multiply.outer(whole_window, share)
    return Dense(whole_window.astype(np.float32))


def kernel_sizes(pairs: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """Return the sizes of shift_kernel."""
    return tuple(1 + 2 * max(pair) - sum(pair) for pair in pairs)


def fold_kernel(channels: int, kernel: Ints) -> Array:
    """Return the depthwise kernels (channels * taps, 1, ...) that each put one channel at one tap."""
    count = product(kernel)
    one = np.eye(count, dtype=np.float32).reshape(count, 1, *kernel)
    return Dense(np.tile(one, (channels, *(1 for _ in one.shape[1:]))))


def tap_places(out: Ints, kernel: Ints, stride: Ints, pad: Ints, dilation: Ints) -> Array:
    """Return where each tap of each window stands: float32 (taps, axes, ...out), taps row-major."""
    taps = np.stack(np.meshgrid(*map(np.arange, kernel), indexing="ij"), -1).reshape(-1, len(kernel))
    windows = np.stack(np.meshgrid(*map(np.arange, out), indexing="ij"))
    begins = windows * np.reshape(stride, (-1, *(1 for _ in out))) - np.reshape(pad, (-1, *(1 for _ in out)))
    inside = (taps * np.asarray(dilation)).reshape(*taps.shape, *(1 for _ in out))
    return Dense((begins + inside).astype(np.float32))
