"""What users of other converters suffered from in pooling, resizing and convolution: right in real Caffe.

Every model is judged by PyTorch, every fragment of a prototxt by Caffe.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from caffeforge.generated.bvlc import layers, load
from tests.e2e.known_cases import Case, Checked, check, normal
from tests.e2e.layer_cases import LayerCase, Random
from tests.e2e.layer_cases import check as check_layers
from tests.real_caffe.witness import Witness

IMAGE = normal(1, 4, 112, 112)
SMALL = normal(1, 3, 5, 6)
ODD = normal(2, 4, 13, 11)


def build() -> tuple[Case, ...]:
    torch.manual_seed(0)
    return (
        Case("stem", nn.MaxPool2d(3, 2, 1), (IMAGE,)),
        Case("ceil", nn.MaxPool2d(3, 2, 1, ceil_mode=True), (IMAGE,)),
        Case("clip", lambda x: F.max_pool2d(x, 2, 3, 1, ceil_mode=True), (ODD,)),
        Case("counted", nn.AvgPool2d(3, 2, 1), (ODD,)),
        Case("uncounted", nn.AvgPool2d(3, 2, 1, count_include_pad=False), (ODD,)),
        Case("overhang", nn.AvgPool2d(3, 3, ceil_mode=True), (normal(1, 4, 11, 13),)),
        Case("nearest", nn.Upsample(scale_factor=2), (SMALL,)),
        Case("halves", nn.Upsample(scale_factor=2, mode="bilinear"), (SMALL,)),
        Case("corners", nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), (SMALL,)),
        Case("grown", nn.ConvTranspose2d(4, 6, 3, 2, 1, 1), (normal(1, 4, 7, 9),)),
        Case("groups", nn.ConvTranspose2d(4, 6, 3, 2, 1, groups=2), (normal(2, 4, 7, 9),)),
        Case("unbiased", nn.ConvTranspose2d(4, 6, 3, 2, 1, dilation=2, bias=False), (normal(1, 4, 7, 9),)),
        Case("gaps", nn.Conv2d(4, 6, 3, dilation=(2, 3), padding=(2, 3)), (normal(2, 4, 7, 9),)),
        Case("thirds", nn.AdaptiveAvgPool2d(3), (normal(2, 4, 12, 12),)),
        Case("sixths", nn.AdaptiveAvgPool2d((3, 2)), (normal(2, 4, 12, 12),)),
        Case("unequal", nn.AdaptiveAvgPool2d(3), (normal(2, 4, 10, 10),)),
        Case("whole", nn.AdaptiveAvgPool2d(1), (normal(2, 4, 10, 10),)),
    )


@pytest.fixture(scope="module")
def checked(caffe: Witness, tmp_path_factory: pytest.TempPathFactory) -> Checked:
    """All models, each of which Caffe computes as PyTorch does."""
    return check(build(), caffe, tmp_path_factory.mktemp("windows"))


def test_the_pool_of_resnets_stem_does_not_grow_by_a_row_and_a_column(checked: Checked) -> None:
    assert checked.types("stem") == ["Pooling", "Slice", "Slice"]
    assert any("MaxPool (stem): written as 3 layers" in note for note in checked.result.notes)


def test_a_pool_that_rounds_up_is_one_layer(checked: Checked) -> None:
    assert checked.types("ceil") == ["Pooling"]
    assert checked.types("overhang") == ["Pooling"]


def test_no_window_starts_in_the_padding(caffe: Witness, checked: Checked, tmp_path: Path) -> None:
    assert checked.types("clip") == ["Pooling"]
    path = tmp_path / "clip.prototxt"
    path.write_text(
        'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: [1, 4, 11, 13] } } }'
        'layer { name: "y" type: "Pooling" bottom: "x" top: "y"'
        " pooling_param { pool: MAX kernel_size: 2 stride: 3 pad: 1 } }"
    )
    x = normal(1, 4, 11, 13).numpy()
    found, due = load(path).run({"x": x})["y"], caffe.run(path, None, {"x": x})["y"]
    assert due.shape == (1, 4, 4, 5)
    np.testing.assert_array_equal(found, due)


def test_an_average_divides_by_what_each_side_says(checked: Checked, caffe: Witness, tmp_path: Path) -> None:
    assert checked.types("counted") == ["Pooling"]
    assert checked.types("uncounted") == ["Pooling", "Scale"]
    clipped = layers.Pooling(pool="AVE", kernel_size=3, stride=3)
    padded = layers.Pooling(pool="AVE", kernel_size=3, stride=2, pad=1)
    x = Random(0).normal(1, 4, 11, 13)
    check_layers([LayerCase(clipped, [x]), LayerCase(padded, [x])], caffe, tmp_path)


def test_upsampling_by_nearest_neighbours_needs_no_layer_that_bvlc_lacks(checked: Checked) -> None:
    (made,) = checked.layers["nearest"]
    assert isinstance(made.param, layers.Deconvolution)
    assert (made.param.group, made.param.bias_term) == (3, False)
    assert all((blob.numpy() == 1).all() for blob in made.blobs)


def test_bilinear_resizing_is_exact_up_to_the_outermost_ring(checked: Checked) -> None:
    for name in ("halves", "corners"):
        assert not {"Interp", "Upsample"} & set(checked.types(name))


def test_transposed_convolutions_keep_their_size_groups_and_missing_bias(checked: Checked) -> None:
    groups, unbiased = checked.layers["groups"], checked.layers["unbiased"]
    assert [blob.shape for blob in groups[0].blobs] == [(4, 3, 3, 3), (6,)]
    assert [param.num_output for param in checked.params("groups")] == [6]
    assert [len(layer.blobs) for layer in unbiased] == [1]
    assert set(checked.types("grown")) == {"Deconvolution"}


def test_a_convolution_may_have_another_gap_on_each_axis(checked: Checked) -> None:
    (made,) = checked.params("gaps")
    assert (made.dilation, made.pad_h, made.pad_w) == ((2, 3), 2, 3)


def test_adaptive_pools_have_the_windows_of_pytorch(checked: Checked) -> None:
    for name, window in (("thirds", (4, 4)), ("sixths", (4, 6))):
        (made,) = checked.params(name)
        assert (made.kernel_h, made.kernel_w) == window
        assert (made.stride_h, made.stride_w) == window
    assert [made.global_pooling for made in checked.params("whole")] == [True]
    assert checked.types("unequal") == ["Pooling"]
