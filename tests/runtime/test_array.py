"""Lazy arrays against NumPy, block by block, and how much memory that takes."""

import math
import tracemalloc
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from caffeforge.runtime import array as array_module
from caffeforge.runtime.array import (
    BLOCK_BYTES,
    Array,
    Dense,
    Elementwise,
    Full,
    NDArray,
    Reshaped,
    Transposed,
    reshape,
    transpose,
)
from caffeforge.runtime.errors import GraphError


def counting(*shape: int, dtype: str = "float32") -> NDArray:
    return (np.arange(math.prod(shape)) % 2039).astype(dtype).reshape(shape)


def halved(part: NDArray) -> NDArray:
    result: NDArray = part * np.float32(0.5) - np.float32(3)
    return result


class RowsOnly(Array):
    """An array as other modules define them: it knows nothing but its rows."""

    __slots__ = ("whole",)

    def __init__(self, whole: NDArray) -> None:
        super().__init__(whole.shape, whole.dtype.name)
        self.whole = whole

    def rows(self, start: int, stop: int) -> NDArray:
        return (self.whole if self.shape else self.whole.reshape(1))[start:stop]


WHOLE = counting(7, 5, 3, 4)
CASES: dict[str, tuple[Array, NDArray]] = {
    "dense": (Dense(WHOLE), WHOLE),
    "dense, a view": (Dense(WHOLE[::2, :, ::-1]), WHOLE[::2, :, ::-1]),
    "dense, 1-D": (Dense(WHOLE.reshape(-1)), WHOLE.reshape(-1)),
    "dense, 1-D, strided": (Dense(WHOLE.reshape(-1)[::3]), WHOLE.reshape(-1)[::3]),
    "scalar": (Dense(np.array(2.5, np.float32)), np.array(2.5, np.float32)),
    "one row": (Dense(WHOLE.reshape(1, -1)), WHOLE.reshape(1, -1)),
    "empty": (Dense(np.zeros((0, 3), np.float32)), np.zeros((0, 3), np.float32)),
    "empty, with rows": (Dense(np.zeros((3, 0), np.float32)), np.zeros((3, 0), np.float32)),
    "float16": (Dense(WHOLE.astype(np.float16)), WHOLE.astype(np.float16)),
    "float64": (Dense(WHOLE / 3.0), WHOLE / 3.0),
    "int64": (Dense(WHOLE.astype(np.int64)), WHOLE.astype(np.int64)),
    "big endian": (Dense(WHOLE.astype(">f4")), WHOLE),
    "bfloat16": (
        Dense((WHOLE / 7).astype(ml_dtypes.bfloat16)),
        (WHOLE / 7).astype(ml_dtypes.bfloat16).astype(np.float32),
    ),
    "full": (Full((3, 40, 2), 0.25), np.full((3, 40, 2), 0.25, np.float32)),
    "full, scalar": (Full((), 7.0), np.array(7.0, np.float32)),
    "full, bfloat16": (Full((5,), 0.5, "bfloat16"), np.full(5, 0.5, np.float32)),
    "reshaped": (Reshaped(Dense(WHOLE), (6, 70)), WHOLE.reshape(6, 70)),
    "reshaped to a scalar": (Reshaped(Dense(np.array([[9.0]], np.float32)), ()), np.array(9.0, np.float32)),
    "transposed": (Transposed(Dense(WHOLE), (2, 3, 0, 1)), WHOLE.transpose(2, 3, 0, 1)),
    "transposed, rows kept": (Transposed(Dense(WHOLE), (0, 3, 1, 2)), WHOLE.transpose(0, 3, 1, 2)),
    "transposed, lazy source": (
        Transposed(Elementwise(Dense(WHOLE), halved), (3, 2, 1, 0)),
        halved(WHOLE).transpose(3, 2, 1, 0),
    ),
    "transposed, reshaped": (
        Transposed(Reshaped(Dense(WHOLE), (35, 12)), (1, 0)),
        WHOLE.reshape(35, 12).T,
    ),
    "reshaped, transposed": (
        Reshaped(Transposed(Dense(WHOLE), (1, 0, 3, 2)), (12, 35)),
        WHOLE.transpose(1, 0, 3, 2).reshape(12, 35),
    ),
    "elementwise": (Elementwise(Dense(WHOLE), halved), halved(WHOLE)),
    "elementwise, one row": (Elementwise(Dense(WHOLE.reshape(1, -1)), halved), halved(WHOLE.reshape(1, -1))),
    "elementwise, transposed": (
        Elementwise(Transposed(Dense(WHOLE), (3, 0, 1, 2)), halved),
        halved(WHOLE.transpose(3, 0, 1, 2)),
    ),
    "elementwise, bfloat16": (
        Elementwise(Dense(WHOLE.astype(ml_dtypes.bfloat16)), halved, "bfloat16"),
        halved(WHOLE.astype(ml_dtypes.bfloat16).astype(np.float32)),
    ),
    "rows only": (RowsOnly(WHOLE), WHOLE),
    "rows only, a view": (RowsOnly(WHOLE.transpose(3, 1, 0, 2)), WHOLE.transpose(3, 1, 0, 2)),
    "rows only, scalar": (RowsOnly(np.array(1.5, np.float32)), np.array(1.5, np.float32)),
    "rows only, one row": (RowsOnly(WHOLE.reshape(1, -1)), WHOLE.reshape(1, -1)),
}


@pytest.fixture(params=[4, 52, 300, BLOCK_BYTES])
def block_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The size of a block: less than an element of most dtypes, odd ones, and the real one."""
    size = int(request.param)
    monkeypatch.setattr(array_module, "BLOCK_BYTES", size)
    return size


@pytest.mark.parametrize("name", CASES)
def test_blocks_hold_the_elements_in_numpys_order(name: str, block_bytes: int) -> None:
    lazy, expected = CASES[name]
    written = b"".join(bytes(block) for block in lazy.blocks("float32"))
    assert written == expected.astype(np.float32).tobytes()
    assert lazy.shape == expected.shape


@pytest.mark.parametrize("name", CASES)
def test_blocks_are_no_larger_than_asked(name: str, block_bytes: int) -> None:
    lazy, _ = CASES[name]
    for chunk in lazy.chunks():
        assert chunk.ndim == 1
        assert chunk.nbytes <= max(block_bytes, chunk.itemsize)


@pytest.mark.parametrize("name", CASES)
def test_rows_and_numpy_hold_the_same_elements(name: str) -> None:
    lazy, expected = CASES[name]
    assert np.array_equal(lazy.numpy(), expected)
    assert lazy.numpy().shape == expected.shape
    if expected.ndim:
        for start in range(expected.shape[0]):
            assert np.array_equal(lazy.rows(start, expected.shape[0]), expected[start:])
            assert np.array_equal(lazy.rows(start, start + 1), expected[start : start + 1])


def test_blocks_of_contiguous_float32_are_the_arrays_own_memory() -> None:
    whole = counting(3, 50)
    (block,) = Reshaped(Dense(whole), (150,)).blocks("float32")
    assert np.shares_memory(np.frombuffer(block, np.float32), whole)


LARGE = 4 * BLOCK_BYTES  # elements: sixteen blocks of float32


@pytest.mark.parametrize(
    "make",
    [
        lambda whole: Elementwise(Dense(whole), halved),
        lambda whole: Elementwise(Dense(whole.reshape(1, -1)), halved),
        lambda whole: Transposed(Dense(whole.reshape(4096, -1)), (1, 0)),
        lambda whole: Transposed(Dense(whole.reshape(1, 2, -1)), (0, 2, 1)),
        lambda whole: transpose(Elementwise(Dense(whole.reshape(4096, -1)), halved), (1, 0)),
        lambda whole: reshape(Elementwise(Dense(whole.reshape(4096, -1)), halved), (8, LARGE // 8)),
        lambda whole: Dense(whole.reshape(4096, -1)[:, ::-1]),
        lambda whole: Full((1, LARGE), 0.5),
    ],
    ids=[
        "elementwise",
        "elementwise, one row",
        "transposed",
        "transposed, one row",
        "transpose of elementwise",
        "reshape of elementwise",
        "reversed",
        "full",
    ],
)
def test_a_large_array_takes_the_memory_of_a_few_blocks(make: Callable[[NDArray], Array]) -> None:
    lazy = make(np.ones(LARGE, np.float32))
    tracemalloc.start()
    try:
        size = sum(len(block) for block in lazy.blocks("float32"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size == 4 * LARGE
    assert peak < 5 * BLOCK_BYTES


def test_a_lazy_source_is_computed_once_however_it_is_transposed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_module, "BLOCK_BYTES", 64)
    seen = 0

    def count(part: NDArray) -> NDArray:
        nonlocal seen
        seen += part.size
        return part

    source = Reshaped(Transposed(Elementwise(Dense(WHOLE), count), (1, 0, 2, 3)), (20, 21))
    for _ in Elementwise(Transposed(source, (1, 0)), halved).blocks("float32"):
        pass
    assert seen == WHOLE.size


def test_two_transposes_that_cancel_give_the_source() -> None:
    source = Dense(WHOLE)
    assert transpose(transpose(source, (3, 1, 0, 2)), (2, 1, 3, 0)) is source


def test_two_transposes_are_one() -> None:
    twice = transpose(transpose(Dense(WHOLE), (1, 2, 3, 0)), (1, 2, 3, 0))
    assert isinstance(twice, Transposed)
    assert isinstance(twice.source, Dense)
    assert np.array_equal(twice.numpy(), WHOLE.transpose(2, 3, 0, 1))


def test_reshape_to_the_own_shape_gives_the_source() -> None:
    source = Dense(WHOLE)
    assert reshape(source, (7, 5, 3, 4)) is source
    assert reshape(reshape(source, (35, 12)), (7, 5, 3, 4)) is source


def test_a_shape_of_another_size_is_refused() -> None:
    with pytest.raises(GraphError, match=r"\[7, 5, 3, 4\] cannot be reshaped to \[7, 5\]"):
        reshape(Dense(WHOLE), (7, 5))


@pytest.mark.parametrize("perm", [(0, 1, 2), (0, 1, 2, 2), (1, 2, 3, 4)])
def test_what_is_no_order_of_the_axes_is_refused(perm: tuple[int, ...]) -> None:
    with pytest.raises(GraphError, match="cannot be transposed"):
        transpose(Dense(WHOLE), perm)


@pytest.mark.parametrize("value", [2**24, -(2**24)])
def test_integers_that_float32_holds_are_written(value: int) -> None:
    (block,) = Dense(np.array([3, value])).blocks("float32")
    assert np.frombuffer(block, np.float32).tolist() == [3, value]


@pytest.mark.parametrize("value", [2**24 + 1, -(2**24) - 1])
def test_integers_that_float32_does_not_hold_are_refused(value: int) -> None:
    with pytest.raises(GraphError, match="an integer beyond 16777216 has no exact place in float32"):
        list(Dense(np.array([3, value])).blocks("float32"))


def test_a_double_beyond_float32_is_refused_and_infinity_is_not() -> None:
    with pytest.raises(GraphError, match="a float64 lies beyond the range of float32"):
        list(Dense(np.array([1.0, 1e300])).blocks("float32"))
    (block,) = Dense(np.array([1.0, np.inf])).blocks("float32")
    assert np.frombuffer(block, np.float32).tolist() == [1.0, np.inf]
