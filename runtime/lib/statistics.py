"""Normalization by known statistics as a factor and an offset for each channel."""

from __future__ import annotations

import numpy as np

from caffeforge.runtime.array import Array, Dense, NDArray
from caffeforge.runtime.lib.weights import Const, array


def norm_factor(scale: Const, variance: Const, epsilon: float) -> Array:
    """Return what a batch normalization multiplies each channel by, float32."""
    return Dense((_numbers(scale) / np.sqrt(_numbers(variance) + epsilon)).astype(np.float32))


def norm_offset(scale: Const, shift: Const, mean: Const, variance: Const, epsilon: float) -> Array:
    """Return what a batch normalization then adds to each channel, float32."""
    factor = _numbers(scale) / np.sqrt(_numbers(variance) + epsilon)
    return Dense((_numbers(shift) - _numbers(mean) * factor).astype(np.float32))


def _numbers(source: Const) -> NDArray:
    """Return one number for each channel, float64."""
    return array(source).numpy().astype(np.float64).reshape(-1)
