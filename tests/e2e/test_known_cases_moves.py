"""What users of other converters suffered from in splitting, slicing and reordering: right in real Caffe."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from caffeforge.generated.bvlc import load
from tests.e2e.known_cases import Case, Checked, check, normal
from tests.real_caffe.witness import Witness

IMAGE = normal(2, 5, 5, 6)


class Focus(nn.Module):
    """The four phases of an image beside each other, then a convolution (YOLOv5's first layer)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(12, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        phases = [x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]]
        together = torch.cat(phases, 1)
        return together, self.conv(together)


def build() -> tuple[Case, ...]:
    torch.manual_seed(0)
    return (
        Case("rest", lambda x: torch.split(x, 3, 1), (normal(2, 4, 5, 6),)),
        Case("three", lambda x: torch.split(x, [1, 2, 1], 1), (normal(2, 4, 5, 6),)),
        Case("backwards", lambda x: torch.split(x, [1, 2, 1], 1)[::-1], (normal(2, 4, 5, 6),)),
        Case("halves", lambda x: torch.chunk(x, 2, 1), (IMAGE,)),
        Case("corner", lambda x: x[:, :, 1:, 1:], (IMAGE,)),
        Case("shorter", lambda x: x[:, :, :-1], (IMAGE,)),
        Case("tail", lambda x: x[..., -3:], (IMAGE,)),
        Case("siblings", lambda x: (x[:, :1], x[:, 1:4], x[:, 4:]), (IMAGE,)),
        Case("focus", Focus(), (normal(2, 3, 8, 6),)),
        Case("shuffle", lambda x: F.channel_shuffle(x, 2), (normal(1, 8, 5, 7),)),
        Case("shuffles", nn.ChannelShuffle(2), (normal(3, 8, 5, 7),)),
    )


@pytest.fixture(scope="module")
def checked(caffe: Witness, tmp_path_factory: pytest.TempPathFactory) -> Checked:
    """All models, each of which Caffe computes as PyTorch does."""
    return check(build(), caffe, tmp_path_factory.mktemp("moves"))


@pytest.mark.parametrize(
    ("name", "points"), [("rest", (3,)), ("three", (1, 3)), ("backwards", (1, 3)), ("halves", (3,))]
)
def test_a_split_is_one_layer_with_a_cut_less_than_parts(
    name: str, points: tuple[int, ...], checked: Checked
) -> None:
    (made,), (param,) = checked.layers[name], checked.params(name)
    assert (made.type, param.axis, param.slice_point) == ("Slice", 1, points)
    assert len(made.tops) == len(points) + 1


def test_what_a_slice_leaves_over_is_no_output_of_the_net(checked: Checked) -> None:
    for name in ("corner", "shorter", "tail"):
        assert set(checked.types(name)) == {"Slice"}
    net = load(checked.result.prototxt, checked.result.caffemodel)
    assert all("_out" in name for name in net.outputs)


def test_slices_that_are_siblings_have_tops_of_their_own(checked: Checked) -> None:
    tops = [top for layer in checked.layers["siblings"] for top in layer.tops]
    assert len(set(tops)) == len(tops)
    assert {"siblings_out0", "siblings_out1", "siblings_out2"} <= set(tops)


def test_the_phases_of_focus_keep_their_order(checked: Checked) -> None:
    x = normal(2, 3, 8, 6).numpy()
    net = load(checked.result.prototxt, checked.result.caffemodel)
    fed = {f"{case.name}_in0": case.inputs[0].numpy() for case in build()}
    together = net.run(fed, ["focus_out0"])["focus_out0"]
    for place, (row, column) in enumerate([(0, 0), (1, 0), (0, 1), (1, 1)]):
        phase = together[:, 3 * place : 3 * place + 3]
        np.testing.assert_allclose(phase, x[..., row::2, column::2], rtol=1e-6)


@pytest.mark.parametrize("name", ["shuffle", "shuffles"])
def test_a_channel_shuffle_moves_channels_at_any_batch(name: str, checked: Checked) -> None:
    net = load(checked.result.prototxt, checked.result.caffemodel)
    fed = {f"{case.name}_in0": case.inputs[0].numpy() for case in build()}
    found = net.run(fed, [f"{name}_out0"])[f"{name}_out0"]
    np.testing.assert_array_equal(found, fed[f"{name}_in0"][:, [0, 4, 1, 5, 2, 6, 3, 7]])
