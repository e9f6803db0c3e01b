"""Ascend's own layers, held to NumPy and to loops from what Huawei publishes, and those that are refused."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from caffeforge.runtime.backends import find
from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.loaded import load
from tests.e2e.dialect_cases import Single, written
from tests.e2e.known_formulas import Floats
from tests.e2e.layer_cases import Random

BACKEND = find("ascend")


def found(case: Single, folder: Path) -> Floats:
    prototxt, caffemodel, inputs = written([case], "ascend", folder)
    (result,) = load(prototxt, caffemodel, BACKEND).run(inputs).values()
    return result


@pytest.mark.parametrize("adjoint", [False, True])
def test_a_matrix_inverse_is_numpy_s(adjoint: bool, tmp_path: Path) -> None:
    matrices = Random(1).normal(2, 3, 4, 4) + 4 * np.eye(4, dtype=np.float32)
    text = f"matrix_inverse_param {{ adjoint: {str(adjoint).lower()} }}"
    expected = np.linalg.inv(matrices.swapaxes(-1, -2) if adjoint else matrices)
    result = found(Single("MatrixInverse", text, (matrices,)), tmp_path)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_a_matrix_without_inverse_is_named(tmp_path: Path) -> None:
    with pytest.raises(CaffeforgeError, match="a matrix has no inverse"):
        found(Single("MatrixInverse", "", (np.ones((1, 1, 3, 3), np.float32),)), tmp_path)


def transformed(images: Floats, thetas: Floats, high: int, wide: int) -> Floats:
    """Return what the sampler gives: each place of the output maps to one between four pixels, or none."""
    n, c, rows, columns = images.shape
    result = np.zeros((n, c, high, wide), np.float64)
    for b, i, j in np.ndindex(n, high, wide):
        place = np.array([2 * i / high - 1, 2 * j / wide - 1, 1])
        row, column = (thetas[b].reshape(2, 3) @ place + 1) / 2 * (rows, columns)
        for r, s in itertools.product(*((math.floor(v), math.floor(v) + 1) for v in (row, column))):
            if 0 <= r < rows and 0 <= s < columns:
                result[b, :, i, j] += (1 - abs(row - r)) * (1 - abs(column - s)) * images[b, :, r, s]
    return result.astype(np.float32)


@pytest.mark.parametrize(
    ("set_", "size"),
    [
        ({}, "output_H: 6 output_W: 3"),
        ({1: 0.25, 3: -0.5}, ""),
        ({0: 1.5, 2: 0.1, 4: 0.75, 5: 0.3}, "output_W: 9"),
    ],
)
def test_a_spatial_transformer_samples_as_huawei_s_kernel(
    set_: dict[int, float], size: str, tmp_path: Path
) -> None:
    r, names = Random(2), ("1_1", "1_2", "1_3", "2_1", "2_2", "2_3")
    images = r.normal(2, 3, 5, 7)
    thetas = np.array([[1, 0, 0, 0, 1, 0]], np.float32) + 0.3 * r.normal(2, 6)
    given = np.delete(thetas, list(set_), 1)
    for index, value in set_.items():
        thetas[:, index] = value
    text = " ".join(f"theta_{names[index]}: {value}" for index, value in set_.items())
    case = Single("SpatialTransformer", f"st_param {{ {size} {text} to_compute_dU: false }}", (images, given))
    high, wide = 6 if "H" in size else 5, 3 if "W: 3" in size else 9 if "W: 9" in size else 7
    expected = transformed(images, thetas, high, wide)
    assert (expected == 0).any() or set_
    np.testing.assert_allclose(found(case, tmp_path), expected, rtol=1e-4, atol=1e-5)


def test_matrices_of_another_number_of_images_are_refused(tmp_path: Path) -> None:
    r = Random(4)
    case = Single(
        "SpatialTransformer", "st_param { theta_1_2: 0 theta_2_1: 0 }", (r.normal(2, 1, 3, 3), r.normal(4, 2))
    )
    with pytest.raises(CaffeforgeError, match="the six theta for each image"):
        found(case, tmp_path)


def test_what_nobody_tells_is_refused_with_the_reason(tmp_path: Path) -> None:
    case = Single("YoloV3DetectionOutput", "", (Random(3).normal(1, 4, 8, 8),))
    with pytest.raises(CaffeforgeError, match=r"YoloV3DetectionOutput.*: its boxes are padded"):
        found(case, tmp_path)
