"""Permutations of axes as exchanges of blocks: every one is made up of exchanges that NumPy confirms."""

import itertools

import numpy as np
import pytest

from caffeforge.runtime.permutation import after, first_of, real_axes, reduced, single


@pytest.mark.parametrize("rank", [2, 3, 4, 5])
def test_every_permutation_is_a_few_exchanges(rank: int) -> None:
    most = 0
    for perm in itertools.permutations(range(rank)):
        sizes = (2, 3, 4, 5, 2)[:rank]
        x = np.arange(np.prod(sizes)).reshape(sizes)
        expected, left, count = x.transpose(perm), perm, 0
        while left != tuple(range(rank)) and single(x.shape, left) is None:
            first = first_of(left)
            swap = single(x.shape, first)
            assert swap is not None
            same = x.reshape(swap).transpose(0, 2, 1, 3).reshape(-1)
            np.testing.assert_array_equal(x.transpose(first).reshape(-1), same)
            x, left, count = x.transpose(first), after(first, left), count + 1
        np.testing.assert_array_equal(x.transpose(left), expected)
        most = max(most, count + (left != tuple(range(rank))))
    assert most == {2: 1, 3: 2, 4: 3, 5: 3}[rank]


def test_axes_of_size_one_do_not_matter() -> None:
    assert real_axes((2, 1, 3, 1), (0, 3, 2, 1)) == (0, 2)
    assert reduced((2, 1, 3, 1), (0, 3, 2, 1)) == (0, 1)


def test_the_batch_matters_where_it_stays_the_first() -> None:
    """It may be 1 when the model is converted and other when the net runs."""
    assert real_axes((1, 3, 4), (0, 2, 1)) == (0, 1, 2)
    assert real_axes((1, 3, 4), (2, 1, 0)) == (1, 2)


@pytest.mark.parametrize("perm", [(), (0,)])
def test_what_has_one_axis_or_none_has_no_exchange(perm: tuple[int, ...]) -> None:
    assert first_of(perm) == perm
