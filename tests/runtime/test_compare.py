"""The measures of a difference, against NumPy's own formulas, and what they say of odd values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from caffeforge.runtime.compare import Tolerance, compare, tolerance
from caffeforge.runtime.errors import CaffeforgeError

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("size", [1000, (1 << 20) * 2 + 7], ids=["one block", "three blocks"])
def test_measures_are_those_of_numpy(size: int) -> None:
    r = RNG.standard_normal(size).astype(np.float32)
    s = (r + 1e-3 * RNG.standard_normal(size)).astype(np.float32)
    d = compare(r, s)
    r64, s64 = r.astype(np.float64), s.astype(np.float64)
    error, scale = np.abs(s64 - r64), np.abs(r64).max()
    assert d.elements == size and d.varies
    assert d.scale == scale and d.max_abs == error.max()
    assert d.relative == pytest.approx(error.max() / scale, rel=1e-12)
    assert d.max_rel == pytest.approx((error / np.maximum(np.abs(r64), scale / 1000)).max(), rel=1e-12)
    cosine = (r64 @ s64) / (np.linalg.norm(r64) * np.linalg.norm(s64))
    assert d.cosine == pytest.approx(cosine, rel=1e-12)
    assert d.snr_db == pytest.approx(10 * np.log10((r64**2).sum() / (error**2).sum()), rel=1e-9)


def test_equal_arrays_have_no_error() -> None:
    r = RNG.standard_normal((3, 4)).astype(np.float32)
    d = compare(r, r.copy())
    assert (d.max_abs, d.max_rel, d.relative, d.snr_db) == (0, 0, 0, math.inf)
    assert d.cosine == pytest.approx(1, abs=1e-15)


def test_another_direction_shows_in_the_cosine() -> None:
    r = RNG.standard_normal(50)
    assert compare(r, -r).cosine == pytest.approx(-1)
    assert compare(np.array([1.0, 0.0]), np.array([0.0, 1.0])).cosine == 0


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_finite_on_one_side_only_is_an_infinite_error(odd: float) -> None:
    finite, other = np.array([1.0, 2.0, 3.0]), np.array([1.0, odd, 3.0])
    for d in (compare(finite, other), compare(other, finite)):
        assert d.max_abs == d.max_rel == d.relative == math.inf and d.snr_db == -math.inf
        assert not Tolerance(1e9).accepts(d)


def test_infinities_of_other_sign_differ_and_equal_ones_do_not() -> None:
    r = np.array([1.0, math.inf, math.nan, -math.inf])
    assert compare(r, r.copy()).max_abs == 0
    assert compare(r, np.array([1.0, -math.inf, math.nan, -math.inf])).max_abs == math.inf


def test_non_finite_elements_do_not_hide_errors_elsewhere() -> None:
    d = compare(np.array([4.0, math.nan, 2.0]), np.array([4.0, math.nan, 3.0]))
    assert (d.max_abs, d.scale) == (1, 4)


@pytest.mark.parametrize(
    ("reference", "varies"),
    [
        (np.full(100, 3.0), False),
        (np.zeros(100), False),
        (np.full(100, 3.0) + 1e-7 * np.arange(100) / 100, False),
        (1e6 + RNG.standard_normal(100) * 10, True),
        (np.array([5.0]), False),
        (np.eye(4), True),
        (np.array([0, 1]) == 1, True),
        (np.zeros(0), False),
    ],
)
def test_whether_the_reference_varies_with_position(reference: np.ndarray, varies: bool) -> None:
    assert compare(reference, reference).varies is varies


def test_a_zero_reference_takes_no_error() -> None:
    d = compare(np.zeros(3), np.array([0.0, 1e-9, 0.0]))
    assert d.relative == d.max_rel == math.inf and d.snr_db == -math.inf and d.cosine == 0


def test_shapes_must_be_equal() -> None:
    with pytest.raises(CaffeforgeError, match=r"the result has shape \[4\], the reference \[2, 2\]"):
        compare(np.zeros((2, 2)), np.zeros(4))


def test_integers_and_booleans_are_compared_exactly() -> None:
    r = np.array([1, 2, 300])
    assert compare(r, np.array([1, 2, 299])).max_abs == 1
    assert compare(np.array([True, False]), np.array([True, True])).max_abs == 1
    assert tolerance("int64", "float32") == tolerance("bool", "bool") == Tolerance(0)


def test_the_coarser_element_type_gives_the_tolerance() -> None:
    assert tolerance("float32", "float32").relative == 1e-4
    assert tolerance("float64", "float32").relative == 1e-4
    assert tolerance("float16", "float32").relative > 1e-4


def test_the_tolerance_is_a_part_of_the_scale() -> None:
    r = np.array([1000.0, 1.0], np.float32)
    assert tolerance("float32", "float32").accepts(compare(r, r + np.float32(0.0625)))
    assert not tolerance("float32", "float32").accepts(compare(r, r + np.float32(0.125)))
