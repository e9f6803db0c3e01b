"""FlowNet's ways to another size: matrices of weights that only the places tell."""

from __future__ import annotations

import numpy as np

from caffeforge.runtime.array import Array, Dense, NDArray
from caffeforge.runtime.refusal import Refused

_WIDTHS = {"LINEAR": 2, "CUBIC": 4}


def resample_matrix(size: int, out: int, shift: float, kind: str, smooth: bool) -> Array:
    """Return the matrix (out, size) of FlowNet's Resample along one axis, float32.

    `shift`: elements by which the other axis's places are apart; `smooth`: windows grow with the factor.
    """
    factor = np.float32(size) / np.float32(out)
    at = np.arange(out, dtype=np.float32) * factor + np.float32(shift) / 2 - np.float32(0.5)
    nearest = np.sign(at) * np.floor(np.abs(at) + np.float32(0.5))
    places = np.arange(size, dtype=np.float32)
    if kind == "NEAREST":
        return Dense((places == nearest[:, None]).astype(np.float32))
    if kind not in _WIDTHS:
        raise Refused(f"resampling by {kind} is not known")
    narrow = 1 / factor if smooth else np.float32(1)
    reach = 2 if factor < 1 else np.ceil(_WIDTHS[kind] / narrow)
    weights = (_cubic if kind == "CUBIC" else _tent)(np.abs(at[:, None] - places) * narrow)
    weights = np.where(np.abs(places - nearest[:, None]) <= reach, weights, 0)
    total = weights.sum(1, keepdims=True)
    return Dense(np.divide(weights, total, out=np.zeros_like(weights), where=total != 0).astype(np.float32))


def downsample_matrix(size: int, out: int) -> Array:
    """Return the matrix (out, size) of FlowNet's Downsample along one axis, corners aligned, float32."""
    scale = np.float32(size - 1) / np.float32(out - 1)
    at = np.arange(out, dtype=np.float32) / np.float32(out - 1) * np.float32(size - 1)
    weights = _tent(np.abs(at[:, None] - np.arange(size)) / scale)
    return Dense((weights / weights.sum(1, keepdims=True)).astype(np.float32))


def _tent(apart: NDArray) -> NDArray:
    return np.asarray(np.maximum(0, 1 - apart))


def _cubic(apart: NDArray) -> NDArray:
    """Return Keys's cubic of distances, of parameter -0.5."""
    inner = (1.5 * apart - 2.5) * apart * apart + 1
    outer = ((-0.5 * apart + 2.5) * apart - 4) * apart + 2
    return np.where(apart <= 1, inner, np.where(apart < 2, outer, 0))
