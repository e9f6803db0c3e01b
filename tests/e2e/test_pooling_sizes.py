"""PyTorch's poolings of all sizes, exported to bvlc: Caffe rounds otherwise, and still computes the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
import torch.nn.functional as F
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn

from caffeforge.generated.bvlc import export
from tests.real_caffe.witness import Witness

Pair = tuple[int, int]


@dataclass(frozen=True)
class Pool:
    """A call of ``max_pool2d``, or of ``avg_pool2d`` if `counted` (count_include_pad) is not None."""

    kernel: Pair
    stride: Pair
    padding: Pair
    ceil_mode: bool
    counted: bool | None

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        if self.counted is None:
            return F.max_pool2d(x, self.kernel, self.stride, self.padding, ceil_mode=self.ceil_mode)
        return F.avg_pool2d(x, self.kernel, self.stride, self.padding, self.ceil_mode, self.counted)

    def accepts(self, size: Pair) -> bool:
        """Tell whether PyTorch takes an image of that height and width."""
        padded = [s + 2 * p for s, p in zip(size, self.padding, strict=True)]
        return all(p <= k // 2 for p, k in zip(self.padding, self.kernel, strict=True)) and all(
            k <= s for k, s in zip(self.kernel, padded, strict=True)
        )


class Pools(nn.Module):
    """Several poolings, each of one of several images."""

    def __init__(self, *pools: Pool) -> None:
        super().__init__()
        self.pools = pools

    def forward(self, *images: torch.Tensor) -> list[torch.Tensor]:
        return [pool(images[index % len(images)]) for index, pool in enumerate(self.pools)]


def pairs(least: int, most: int) -> st.SearchStrategy[Pair]:
    return st.tuples(st.integers(least, most), st.integers(least, most))


POOLS = st.builds(
    Pool, pairs(1, 5), pairs(1, 4), pairs(0, 2), st.booleans(), st.sampled_from([None, False, True])
)


@given(pools=st.lists(POOLS, min_size=8, max_size=8), size=pairs(3, 13))
@settings(max_examples=30, deadline=None, derandomize=True, database=None)
def test_pools_are_exported_exactly(pools: list[Pool], size: Pair) -> None:
    accepted = [pool for pool in pools if pool.accepts(size)]
    assume(accepted)
    x = torch.randn(2, 3, *size, generator=torch.Generator().manual_seed(0))
    with TemporaryDirectory() as folder:
        result = export(Pools(*accepted), (x,), Path(folder, "pools"))  # compares with PyTorch, or raises
    assert result.verification is not None and result.verification.conclusive


def test_caffe_computes_what_pytorch_does(caffe: Witness, tmp_path: Path) -> None:
    sizes = [(6, 6), (7, 7), (8, 11), (13, 5), (9, 12)]
    random = np.random.default_rng(0)
    pools: list[Pool] = []
    while len(pools) < 45:
        kernel, stride, padding = random.integers((1, 1, 0), (5, 5, 3), (2, 3)).T.tolist()
        ceil_mode, counted = bool(random.integers(2)), (None, False, True)[random.integers(3)]
        pool = Pool(tuple(kernel), tuple(stride), tuple(padding), ceil_mode, counted)
        if pool.accepts(sizes[len(pools) % len(sizes)]):
            pools.append(pool)
    model = Pools(*pools)
    images = [torch.randn(2, 3, *size, generator=torch.Generator().manual_seed(1)) for size in sizes]
    names = [f"image_{index}" for index in range(len(sizes))]
    outputs = [f"pool_{index}" for index in range(len(pools))]
    files = export(model, tuple(images), tmp_path / "pools", input_names=names, output_names=outputs)
    inputs = {name: image.numpy() for name, image in zip(names, images, strict=True)}
    found = caffe.run(files.prototxt, files.caffemodel, inputs, outputs)
    for pool, name, expected in zip(pools, outputs, model(*images), strict=True):
        np.testing.assert_allclose(found[name], expected.numpy(), rtol=1e-5, atol=1e-6, err_msg=str(pool))
