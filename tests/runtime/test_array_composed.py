"""Lazy arrays made of others: each equals what NumPy makes of the whole, by rows, by chunks and at once."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from caffeforge.runtime.array import Array, Dense, Expanded, Joined, Slab, Spread
from caffeforge.runtime.errors import GraphError

A = np.arange(60, dtype=np.float32).reshape(5, 4, 3)
B = -np.arange(24, dtype=np.float32).reshape(2, 4, 3)


def spread() -> Any:
    result = np.zeros((5, 8, 6), np.float32)
    result[:, 0:7:2, 0:5:2] = A
    return result


CASES: dict[str, tuple[Callable[[], Array], Any]] = {
    "slab": (lambda: Slab(Dense(A), 1, 4), A[1:4]),
    "empty slab": (lambda: Slab(Dense(A), 2, 2), A[2:2]),
    "joined rows": (
        lambda: Joined([Dense(A), Slab(Dense(A), 3, 5), Dense(B)]),
        np.concatenate([A, A[3:5], B]),
    ),
    "joined columns": (lambda: Joined([Dense(A), Dense(A[:, :1])], axis=1), np.concatenate([A, A[:, :1]], 1)),
    "expanded": (lambda: Expanded(Dense(A[:, :1]), (5, 7, 3)), np.broadcast_to(A[:, :1], (5, 7, 3))),
    "expanded rows": (lambda: Expanded(Dense(A[:1]), (6, 4, 3)), np.broadcast_to(A[:1], (6, 4, 3))),
    "expanded scalar": (lambda: Expanded(Dense(np.float32(3).reshape(())), ()), np.float32(3)),
    "spread": (lambda: Spread(Dense(A), (5, 8, 6), (1, 2, 2)), spread()),
}


@pytest.mark.parametrize("name", CASES)
def test_array_equals_numpy(name: str) -> None:
    make, expected = CASES[name]
    array = make()
    assert array.shape == expected.shape
    assert array.dtype == "float32"
    np.testing.assert_array_equal(array.numpy(), expected)
    flat = [chunk for chunk in array.chunks()]
    np.testing.assert_array_equal(np.concatenate(flat) if flat else np.empty(0), expected.reshape(-1))
    for start in range(len(expected) if expected.shape else 0):
        np.testing.assert_array_equal(array.rows(start, start + 1), expected[start : start + 1])
        np.testing.assert_array_equal(array.rows(start, len(expected)), expected[start:])


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Slab(Dense(A), 3, 6), "has no rows 3 to 6"),
        (lambda: Joined([Dense(A), Dense(A[:, :2])]), "cannot be joined along axis 0"),
        (lambda: Joined([Dense(A), Dense(A[:2])], axis=1), "cannot be joined along axis 1"),
        (lambda: Expanded(Dense(A), (5, 8, 3)), "cannot be expanded"),
        (lambda: Expanded(Dense(A), (5, 4)), "cannot be expanded"),
        (lambda: Spread(Dense(A), (5, 6, 6), (1, 2, 2)), "cannot be spread"),
        (lambda: Spread(Dense(A), (9, 8, 6), (2, 2, 2)), "cannot be spread"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(make: Callable[[], Array], reason: str) -> None:
    with pytest.raises(GraphError, match=reason):
        make()
