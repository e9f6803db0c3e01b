"""Matrices for sampling at known places of a plane, and for Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caffeforge.runtime.array import Array, Dense, NDArray
from caffeforge.runtime.lib.weights import Const, array
from caffeforge.runtime.refusal import Refused

Ints = Sequence[int]
LIMIT = 2**26  # numbers of a matrix, 256 MB


def grid_matrix(grid: Const, sizes: Ints, mode: str, padding: str, align: int) -> Array:
    """Return the matrix (H * W, places) by which ONNX's GridSample maps a plane (H, W), float32.

    Refused if the grid, (N, height, width, 2), differs from one item of the batch to the next.
    """
    given = array(grid).numpy().astype(np.float64)
    if not (given == given[:1]).all():
        raise Refused("the places differ from one item of the batch to the next")
    if mode not in ("linear", "nearest") or padding not in ("zeros", "border"):
        raise Refused(f"sampling by mode {mode} with padding by {padding} is not known")
    height, width = sizes
    points = given[0].reshape(-1, 2)
    if len(points) * height * width > LIMIT:
        raise Refused(f"a matrix of {height * width} x {len(points)} numbers would be due")
    rows = _tents(points[:, 1], height, mode, padding, align)
    columns = _tents(points[:, 0], width, mode, padding, align)
    return Dense(np.einsum("ph,pw->hwp", rows, columns).reshape(height * width, -1).astype(np.float32))


def _tents(places: NDArray, size: int, mode: str, padding: str, align: int) -> NDArray:
    """Return for each place, from -1 to 1, the weight of each element of an axis."""
    at = (places + 1) / 2 * (size - 1) if align else ((places + 1) * size - 1) / 2
    if padding == "border":
        at = np.clip(at, 0, size - 1)
    if mode == "nearest":
        at = np.rint(at)
    weights: NDArray = np.clip(1 - np.abs(at[:, None] - np.arange(size)), 0, None)
    return weights


def affine_base(sizes: Ints, align: int) -> Array:
    """Return the matrix (axes + 1, places) of the places that ONNX's AffineGrid maps."""
    axes = [np.linspace(-1, 1, size) if align else (np.arange(size) * 2 + 1) / size - 1 for size in sizes]
    if align:
        axes = [axis if size > 1 else np.zeros(1) for axis, size in zip(axes, sizes, strict=True)]
    grid = np.meshgrid(*axes, indexing="ij")
    rows = [plane.reshape(-1) for plane in grid[::-1]]
    return Dense(np.stack([*rows, np.ones_like(rows[0])]).astype(np.float32))


def dft_matrix(size: int, length: int, bins: int, sine: bool, inverse: int) -> Array:
    """Return the real or imaginary part (size, bins) of a Fourier transform's matrix, float32.

    Args:
        size: elements that there are; beyond `length` they do not count.
        length: elements of the transform.
        bins: how many frequencies are due.
        sine: the imaginary part.
        inverse: divide by the length, and turn the other way.
    """
    turns = np.outer(np.arange(size), np.arange(bins)) % length * (2 * np.pi / length)
    part = (np.sin(turns) if inverse else -np.sin(turns)) if sine else np.cos(turns)
    part[length:] = 0
    return Dense((part / length if inverse else part).astype(np.float32))


def stft_kernel(window: Const | None, length: int, bins: int) -> Array:
    """Return the kernels (2 * bins, 1, length) of a short-time Fourier transform: real parts, then others."""
    weights = np.ones(length) if window is None else array(window).numpy().astype(np.float64)
    parts = [dft_matrix(length, length, bins, sine, 0).numpy().T for sine in (False, True)]
    return Dense((np.concatenate(parts) * weights)[:, None].astype(np.float32))


def window(kind: str, size: int, periodic: int) -> Array:
    """Return ONNX's window `kind` - Hann, Hamming or Blackman - of `size` elements, float32."""
    turns = np.arange(size) * (2 * np.pi / (size if periodic else max(1, size - 1)))
    terms = {"Hann": (0.5, 0.5, 0.0), "Hamming": (25 / 46, 21 / 46, 0.0), "Blackman": (0.42, 0.5, 0.08)}[kind]
    return Dense((terms[0] - terms[1] * np.cos(turns) + terms[2] * np.cos(2 * turns)).astype(np.float32))


def unit_matrix(rows: int, columns: int, offset: int) -> Array:
    """Return a float32 matrix of ones on its `offset`-th diagonal and zeros elsewhere."""
    return Dense(np.eye(rows, columns, offset, dtype=np.float32))
