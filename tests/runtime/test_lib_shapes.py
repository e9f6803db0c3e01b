"""Functions of expressions about broadcasting, slicing, padding and windows, against NumPy."""

import itertools

import numpy as np
import pytest

from caffeforge.runtime import lib
from caffeforge.runtime.array import Dense
from caffeforge.runtime.refusal import Refused


def test_each_gives_one_for_all_or_one_for_each() -> None:
    assert lib.each((3,), 2) == (3, 3)
    assert lib.each((3, 4), 2) == (3, 4)
    assert lib.each((), 2, 7) == (7, 7)
    for values in ((), (1, 2, 3)):
        with pytest.raises(Refused, match="it stands once or 2 times"):
            lib.each(values, 2)


@pytest.mark.parametrize("operand", [(3, 1), (4,), (1, 4), (2, 3, 4), (2, 1, 1), (1, 1, 1), (), (1, 3, 1)])
def test_span_covers_all_along_which_an_operand_varies(operand: tuple[int, ...]) -> None:
    shape = (2, 3, 4)
    values = np.arange(np.prod(operand, dtype=int), dtype=np.float32).reshape(operand)
    start, stop = lib.span_of(shape, operand)
    part = lib.expand(Dense(values), shape, (start, stop)).numpy()
    assert part.shape == shape[start:stop]
    whole = np.broadcast_to(part.reshape(part.shape + (1,) * (3 - stop)), shape)
    np.testing.assert_array_equal(whole, np.broadcast_to(values, shape))


def test_sizes_are_scaled_in_float32() -> None:
    scaled = [int(np.float32(n) * np.float32(f)) for n, f in ((25, 1.16), (50, 1.06), (10, 0.7))]
    assert list(lib.scaled_sizes((25, 50, 10), (1.16, 1.06, 0.7))) == scaled == [29, 52, 7]


def test_an_operand_that_does_not_broadcast_is_refused() -> None:
    for operand in ((2,), (2, 3, 4, 1), (2, 4)):
        with pytest.raises(Refused, match="does not broadcast into"):
            lib.span_of((2, 3, 4), operand)


@pytest.mark.parametrize(
    ("operand", "axis", "shape"),
    [
        ((2, 3, 1, 1), 0, (0, 3)),
        ((1, 3, 1, 1), 1, (3,)),
        ((4, 5), 2, (4, 5)),
        ((3, 1, 1), 1, (3,)),
        ((2, 1, 1, 1), 0, (0,)),
        ((1,), 0, ()),
        ((2, 1, 4, 5), -1, None),
        ((2, 3, 1, 5), -1, None),
    ],
)
def test_run_of_a_computed_operand(
    operand: tuple[int, ...], axis: int, shape: tuple[int, ...] | None
) -> None:
    assert lib.run_axis((2, 3, 4, 5), operand) == axis
    if shape is not None:
        assert lib.run_shape((2, 3, 4, 5), operand) == shape


def test_a_batch_of_one_counts_as_batch() -> None:
    assert lib.run_axis((1, 3, 4, 5), (1, 3, 1, 1)) == 0
    assert lib.run_shape((1, 3, 4, 5), (1, 3, 1, 1)) == (0, 3)
    assert lib.run_axis((1, 3, 4, 5), (1, 1, 4, 5)) == -1  # with another batch it would be no run


def test_filling_gaps_makes_a_run() -> None:
    for operand in ((2, 1, 4, 5), (2, 3, 1, 5), (2, 1, 4, 1), (1, 3, 1, 5), (1, 1, 4, 5), (3, 1, 5)):
        filled = lib.without_gaps((2, 3, 4, 5), operand)
        assert len(filled) == len(operand)
        assert np.broadcast_shapes(filled, operand) == filled
        assert lib.run_axis((2, 3, 4, 5), filled) >= 0


def test_slice_range_is_pythons() -> None:
    for size, start, end, step in itertools.product(
        (1, 5, 8), (-9, -2, 0, 3, 9), (-9, -1, 2, 7, 99), (1, 2, -1, -3)
    ):
        # ONNX has no way to name the place before the first but a number below -size.
        expected = list(range(size))[start : (None if step < 0 and end < -size else end) : step]
        if expected:
            assert list(lib.slice_range(size, start, end, step)) == expected
        else:
            with pytest.raises(Refused, match="cut to nothing"):
                lib.slice_range(size, start, end, step)


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_padded_places_are_numpys(mode: str) -> None:
    for pair in ((0, 2), (3, 1), (4, 4)):
        expected = np.pad(np.arange(5), pair, mode)  # type: ignore[call-overload]
        assert list(lib.pad_places(mode, 5, pair)) == expected.tolist()


def test_reflected_padding_as_long_as_the_axis_is_refused() -> None:
    with pytest.raises(Refused, match="as long as the axis"):
        lib.pad_places("reflect", 3, (3, 0))


def test_pads_move_windows_by_whole_strides() -> None:
    for begin, end, stride in itertools.product(range(4), range(4), (1, 2, 3)):
        (pad,) = lib.pads_by_stride((begin,), (end,), (stride,))
        assert pad >= max(begin, end) or (pad == begin and end <= begin)
        assert (pad - begin) % stride == 0


def test_runs_are_maximal() -> None:
    assert lib.runs_of((3, 4, 5, 5, 0, 1)) == ((3, 6), (5, 6), (0, 2))


def test_last_run_of_axes() -> None:
    assert lib.last_run((0, 2, 3)) == (2, 3)
    assert lib.last_run((1,)) == (1,)
    assert lib.is_run((1, 2, 3)) and not lib.is_run((0, 2))


def test_pyramid_windows_cover_the_input() -> None:
    """Caffe's rule: as many windows along each axis as the level has bins."""
    for size in range(4, 40):
        for level, (window, pad) in enumerate(lib.pyramid_windows((size, size), 3)):
            assert window[0] * 2**level + 0 >= size
            assert 0 <= 2 * pad[0] - (window[0] * 2**level - size) <= 1


def test_constants_computed_element_by_element() -> None:
    given = np.array([[1.0, -2.0], [4.0, 0.5]], np.float32)
    np.testing.assert_array_equal(lib.negative(Dense(given)).numpy(), -given)
    np.testing.assert_array_equal(lib.inverse(Dense(given)).numpy(), 1 / given)
    np.testing.assert_array_equal(lib.times(Dense(given), 3.0).numpy(), 3 * given)
    with pytest.raises(Refused, match="the divisor holds a zero"):
        lib.inverse(Dense(np.zeros(2, np.float32)))


def test_logarithm_of_what_has_none_is_refused() -> None:
    with pytest.raises(Refused, match="has no logarithm"):
        lib.log(-1.0)
