"""The order that a partial sort leaves, against C++'s own."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from caffeforge.runtime.references.part_sorted_proposals import part_sorted

_SOURCE = """
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>
extern "C" void order(const double* scores, int all, int count, int* places) {
  std::vector<std::pair<double, int>> pairs;
  for (int i = 0; i < all; ++i) pairs.emplace_back(scores[i], i);
  std::partial_sort(pairs.begin(), pairs.begin() + count, pairs.end(), std::greater<>());
  for (int i = 0; i < all; ++i) places[i] = pairs[i].second;
}
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no compiler for C++")
def test_the_rest_of_a_partial_sort_lies_as_cpp_leaves_it(tmp_path: Path) -> None:
    (tmp_path / "order.cpp").write_text(_SOURCE)
    library = tmp_path / "order.so"
    subprocess.run(
        ["g++", "-std=c++14", "-shared", "-fPIC", "-o", library, tmp_path / "order.cpp"], check=True
    )
    order = ctypes.CDLL(str(library)).order
    random = np.random.default_rng(3)
    for count in (1, 2, 7, 39, 40, 200):
        scores = random.integers(0, 15, 200).astype(np.float64)
        places = np.zeros(200, np.int32)
        order(scores.ctypes.data_as(ctypes.c_void_p), 200, count, places.ctypes.data_as(ctypes.c_void_p))
        np.testing.assert_array_equal(part_sorted(scores, count), places)
