"""Matrices and kernels that say linear operators: resizing an axis, sub-pixel order, running sums."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from caffeforge.runtime.array import Array, Dense, NDArray
from caffeforge.runtime.refusal import Refused

_ROUNDING = 1e-4  # how far a product of a size and a float32 scale may be from the number that is meant


def resize_matrix(
    size: int,
    out: int,
    scale: float,
    mode: str,
    coordinates: str,
    nearest: str,
    cubic: float,
    exclude_outside: int,
    antialias: int,
) -> Array:
    """Return the matrix (out, size) by which ONNX's Resize maps one axis, float32.

    Args:
        size: the axis before resizing.
        out: the axis after it.
        scale: out / size as the op was given it; 0 where it was given sizes.
        mode: nearest, linear or cubic.
        coordinates: ONNX's coordinate_transformation_mode.
        nearest: ONNX's nearest_mode.
        cubic: cubic_coeff_a.
        exclude_outside: weights outside the axis count as 0 and the rest is scaled up.
        antialias: widen the filter when sizes shrink.
    """
    scale = scale or out / size
    centres = np.array([_coordinate(i, size, out, scale, coordinates) for i in range(out)])
    if mode == "nearest":
        matrix = _nearest(centres, size, nearest)
    elif mode in ("linear", "cubic"):
        matrix = _filtered(
            centres, size, min(1.0, scale) if antialias else 1.0, mode, cubic, bool(exclude_outside)
        )
    else:
        raise Refused(f"resizing by mode {mode} is not known")
    return Dense(np.ascontiguousarray(matrix, "float32"))


def _coordinate(index: int, size: int, out: int, scale: float, mode: str) -> float:
    """Return where an output place lies on the input axis; formulas of ONNX's Resize."""
    if mode == "asymmetric":
        return index / scale
    resized = size * scale  # `out` before it is rounded down
    if mode == "align_corners":
        return index * (size - 1) / (resized - 1) if out > 1 else 0.0
    if mode == "half_pixel":
        return (index + 0.5) / scale - 0.5
    if mode == "pytorch_half_pixel":
        return (index + 0.5) / scale - 0.5 if resized > 1 + _ROUNDING else 0.0
    if mode == "half_pixel_symmetric":
        adjustment = out / (scale * size)
        return size / 2 * (1 - adjustment) + (index + 0.5) / scale - 0.5
    raise Refused(f"coordinates by {mode} are not known")


def _nearest(centres: NDArray, size: int, mode: str) -> NDArray:
    rounding = {
        "round_prefer_floor": lambda x: math.ceil(x - 0.5),
        "round_prefer_ceil": lambda x: math.floor(x + 0.5),
        "floor": math.floor,
        "ceil": math.ceil,
    }
    if mode not in rounding:
        raise Refused(f"rounding by {mode} is not known")
    matrix = np.zeros((len(centres), size))
    for row, centre in enumerate(centres):
        matrix[row, min(max(rounding[mode](float(centre)), 0), size - 1)] = 1
    return matrix


def _filtered(
    centres: NDArray, size: int, shrink: float, mode: str, cubic: float, exclude_outside: bool
) -> NDArray:
    """Return rows of filter weights; places beyond the axis count for its border, or not at all."""
    reach = (1 if mode == "linear" else 2) / shrink
    matrix = np.zeros((len(centres), size))
    for row, centre in enumerate(centres):
        places = np.arange(math.floor(centre - reach) + 1, math.ceil(centre + reach) + 1)
        distance = np.abs(places - centre) * shrink
        weights = np.clip(1 - distance, 0, None) if mode == "linear" else _cubic(distance, cubic)
        if exclude_outside:
            weights = np.where((places >= 0) & (places < size), weights, 0)
        weights = weights / weights.sum()
        np.add.at(matrix[row], np.clip(places, 0, size - 1), weights)
    return matrix


def _cubic(distance: NDArray, a: float) -> NDArray:
    """Return the cubic convolution kernel (Keys, 1981) at these distances."""
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((distance - 5) * distance + 8) * a * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0))


def sub_pixel_kernel(channels: int, block: int) -> Array:
    """Return weights (channels * block², 1, block, block) by which ConvTranspose is DepthToSpace CRD."""
    taps = np.eye(block * block, dtype="float32").reshape(block * block, 1, block, block)
    return Dense(np.tile(taps, (channels, 1, 1, 1)))


def band(channels: int, size: int) -> Array:
    """Return the square matrix that takes the mean over ONNX's LRN window of `size` channels."""
    away = np.arange(channels)[None, :] - np.arange(channels)[:, None]
    inside = (away >= -((size - 1) // 2)) & (away <= size // 2)
    return Dense((inside / size).astype(np.float32))


def triangle(size: int, exclusive: int, reverse: int) -> Array:
    """Return the matrix (size, size) by which x @ matrix is the running sum of x, float32."""
    matrix = np.triu(np.ones((size, size), "float32"), 1 if exclusive else 0)
    return Dense(np.ascontiguousarray(matrix[::-1, ::-1] if reverse else matrix))


def resized(shape: Sequence[int], sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the axes whose size differs."""
    return tuple(axis for axis, (old, new) in enumerate(zip(shape, sizes, strict=True)) if old != new)


def whole_factors(sizes: Sequence[int], outs: Sequence[int]) -> bool:
    """Tell whether each size divides its output size."""
    return all(out % size == 0 for size, out in zip(sizes, outs, strict=True))


def by_sizes(shape: Sequence[int], out: Sequence[int], scales: Sequence[float] | None) -> bool:
    """Tell whether the sizes alone give the scales of a Resize of all axes, as they do where it has none."""
    if scales is None or len(scales) != len(shape):
        return scales is None
    return all(size * scale == new for size, new, scale in zip(shape, out, scales, strict=True))


def scaled_sizes(sizes: Sequence[int], factors: Sequence[float]) -> tuple[int, ...]:
    """Return sizes times factors, multiplied in float32 as C++ does, without what is behind the point."""
    return tuple(int(np.float32(n) * np.float32(f)) for n, f in zip(sizes, factors, strict=True))


def repeats_whole(coordinates: str, nearest: str) -> bool:
    """Tell whether nearest resizing by whole factors repeats each element as often as any other."""
    if coordinates in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric"):
        return nearest in ("round_prefer_floor", "round_prefer_ceil")
    return coordinates == "asymmetric" and nearest == "floor"
