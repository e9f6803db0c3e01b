"""What users of other converters suffered from in arithmetic, normalization and reductions.

Every model is judged by PyTorch, every fragment of a prototxt by Caffe.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from caffeforge.generated.bvlc import export, layers
from tests.e2e.known_cases import Case, Checked, check, normal
from tests.e2e.layer_cases import LayerCase, Random, difference
from tests.e2e.layer_cases import check as check_layers
from tests.real_caffe.witness import Witness

IMAGE = normal(2, 6, 5, 7)
ROWS, OTHER = normal(2, 3), normal(2, 3, seed=1)


class Shared(nn.Module):
    """A convolution read by a batch normalization and by something else."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(6, 4, 3), normalized(nn.BatchNorm2d(4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.conv(x)
        return self.norm(y), y.tanh()


class Excited(nn.Module):
    """The core of squeeze and excitation."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * F.adaptive_avg_pool2d(x, 1)


def normalized(norm: nn.BatchNorm1d | nn.BatchNorm2d) -> nn.Module:
    """Give a batch normalization statistics that show."""
    assert norm.running_mean is not None and norm.running_var is not None
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2.0)
    return norm


def slopes() -> nn.PReLU:
    layer = nn.PReLU(6)
    nn.init.uniform_(layer.weight, -0.5, 0.5)
    return layer


def build() -> tuple[Case, ...]:
    torch.manual_seed(0)
    return (
        Case("plus", lambda x: F.relu(x) + 1.5, (ROWS,)),
        Case("rest", lambda x: 1 - torch.sigmoid(x), (ROWS,)),
        Case("twice", lambda x: x * 2, (ROWS,)),
        Case("alpha", lambda x, y: torch.add(x, y, alpha=2), (ROWS, OTHER)),
        Case("pixels", lambda x: (x / 255 - 0.5) / 0.2, (255 * ROWS,)),
        Case("excited", Excited(), (IMAGE,)),
        Case("swapped", lambda x: F.adaptive_avg_pool2d(x, 1) * x, (IMAGE,)),
        Case("square", lambda x: F.adaptive_avg_pool2d(x, 1) * x, (normal(2, 6, 6, 6),)),
        Case("masked", lambda x, m: x * m, (IMAGE, normal(2, 1, 5, 7))),
        Case("bare", normalized(nn.BatchNorm2d(6, affine=False, eps=1e-3)), (IMAGE,)),
        Case("flat", nn.Sequential(nn.Linear(3, 5), normalized(nn.BatchNorm1d(5, eps=1e-3))), (ROWS,)),
        Case("shared", Shared(), (IMAGE,)),
        Case("instance", nn.InstanceNorm2d(6, eps=1e-3), (IMAGE,)),
        Case("linear", nn.Linear(13, 5), (normal(1, 7, 13),)),
        Case("deep", nn.Linear(7, 5, bias=False), (IMAGE,)),
        Case("channels", lambda x: x.mean(1, keepdim=True), (IMAGE,)),
        Case("area", lambda x: x.mean((2, 3)), (IMAGE,)),
        Case("last", lambda x: x.sum(-1), (IMAGE,)),
        Case("most", lambda x: x.max(1).values, (IMAGE,)),
        Case("slope", nn.PReLU(), (IMAGE,)),
        Case("slopes", slopes(), (IMAGE,)),
    )


@pytest.fixture(scope="module")
def checked(caffe: Witness, tmp_path_factory: pytest.TempPathFactory) -> Checked:
    """All models, each of which Caffe computes as PyTorch does."""
    return check(build(), caffe, tmp_path_factory.mktemp("values"))


def test_arithmetic_with_a_number_is_no_eltwise_of_one_bottom(checked: Checked) -> None:
    expected = {"plus": {"ReLU", "Power"}, "rest": {"Sigmoid", "Power"}, "twice": {"Power"}}
    for name, types in (expected | {"pixels": {"Power"}}).items():
        assert set(checked.types(name)) == types
    for made in checked.layers.values():
        assert all(len(layer.bottoms) > 1 for layer in made if layer.type == "Eltwise")


def test_the_alpha_of_a_sum_is_not_lost(checked: Checked) -> None:
    assert checked.types("alpha")[-1] == "Eltwise"


@pytest.mark.parametrize("name", ["excited", "swapped", "square"])
def test_squeeze_and_excitation_reads_the_image_first(name: str, checked: Checked) -> None:
    scale = checked.layers[name][-1]
    assert scale.type == "Scale" and scale.bottoms[0] == f"{name}_in0"
    assert checked.params(name)[-1].axis == 0


def test_squeeze_and_excitation_takes_another_batch(caffe: Witness, tmp_path: Path) -> None:
    x = normal(3, 6, 6, 6)
    files = export(Excited().eval(), (x[:1],), tmp_path / "net", input_names=["x"], output_names=["y"])
    found = caffe.run(files.prototxt, files.caffemodel, {"x": x.numpy()})["y"]
    assert difference(found, Excited()(x).numpy()) < 1e-6


def test_a_mask_over_all_channels_is_tiled(checked: Checked) -> None:
    assert checked.types("masked") == ["Tile", "Eltwise"]


def test_the_factor_of_a_batch_normalizations_blobs_divides_them(caffe: Witness, tmp_path: Path) -> None:
    random = Random(0)
    mean, variance, x = random.normal(4), random.positive(4), random.normal(2, 4, 3, 5)
    param = layers.BatchNorm(use_global_stats=True, eps=1e-3)
    blobs = [[factor * mean, factor * variance, np.array([factor], np.float32)] for factor in (1.0, 2.5)]
    check_layers([LayerCase(param, [x], [np.float32(b) for b in made]) for made in blobs], caffe, tmp_path)


def test_batch_normalization_may_stand_anywhere(checked: Checked) -> None:
    assert "BatchNorm" in checked.types("bare")
    assert checked.types("flat")[0] == "InnerProduct" and "BatchNorm" in checked.types("flat")
    norm = next(param for param in checked.params("flat") if isinstance(param, layers.BatchNorm))
    assert norm.eps == pytest.approx(1e-3)


def test_a_convolution_that_is_read_twice_is_not_normalized_for_both(checked: Checked) -> None:
    assert checked.types("shared") == ["Convolution", "BatchNorm", "Scale", "TanH"]
    assert checked.layers["shared"][-1].bottoms == checked.layers["shared"][0].tops


def test_the_eps_of_mvn_stands_outside_the_root(caffe: Witness, checked: Checked, tmp_path: Path) -> None:
    x = Random(0).normal(2, 3, 4, 5)
    cases = [
        LayerCase(layers.MVN(normalize_variance=True, eps=1e-3), [x]),
        LayerCase(layers.MVN(normalize_variance=True, across_channels=True, eps=0.1), [x]),
    ]
    check_layers(cases, caffe, tmp_path)
    assert "MVN" not in checked.types("instance")  # PyTorch's stands inside


def test_linear_layers_keep_all_leading_axes_and_need_no_bias(checked: Checked) -> None:
    for name, axis in (("linear", 2), ("deep", 3)):
        assert checked.types(name)[0] == "InnerProduct" and checked.params(name)[0].axis == axis
    assert len(checked.layers["deep"][0].blobs) == 1


def test_a_mean_over_channels_is_no_global_pool(checked: Checked) -> None:
    pools = [param for param in checked.params("channels") if isinstance(param, layers.Pooling)]
    assert not any(pool.global_pooling for pool in pools)
    assert checked.types("last") == ["Reduction"]
    assert checked.types("area") == ["Reduction"]


def test_one_slope_is_shared_and_several_are_not(checked: Checked) -> None:
    (one,), (several,) = checked.layers["slope"], checked.layers["slopes"]
    assert checked.params("slope")[0].channel_shared and [blob.shape for blob in one.blobs] in ([()], [(1,)])
    assert not checked.params("slopes")[0].channel_shared and [blob.shape for blob in several.blobs] == [(6,)]
