"""Samples of PyTorch's own operator tests; the script `opinfo` runs more of them and prints a table."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

pytest.importorskip("expecttest", reason="torch.testing imports it")

from tests.torch_front import opinfo

# Operators with samples that the table of configurations lacks: shapes, broadcasts, edges.
NAMES = [
    "argmax",
    "cat",
    "diagonal_copy",
    "gather",
    "hypot",
    "index_put",
    "index_reduce",
    "index_select",
    "native_group_norm",
    "native_layer_norm",
    "nn.functional.adaptive_avg_pool2d",
    "nn.functional.adaptive_max_pool1d",
    "nn.functional.adaptive_max_pool2d",
    "nn.functional.adaptive_max_pool3d",
    "nn.functional.avg_pool2d",
    "nn.functional.grid_sample",
    "nn.functional.interpolate",
    "nn.functional.max_pool2d",
    "nn.functional.pad",
    "narrow_copy",
    "permute_copy",
    "remainder",
    "scatter_reduce",
    "topk",
    "unbind_copy",
    "var",
]


@pytest.mark.parametrize("op", opinfo.chosen(NAMES), ids=opinfo.full_name)
@pytest.mark.filterwarnings("ignore")
def test_samples_are_equal_or_refused(op: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = opinfo.ends(op, limit=4)
    assert not found.get(opinfo.WRONG)
    assert found.get(opinfo.EQUAL), found
