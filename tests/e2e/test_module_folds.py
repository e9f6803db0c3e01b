"""Modules of PyTorch beside each other that one layer computes: by default, and with ``fold=True``.

Real Caffe computes from both files what PyTorch does. By default no blob goes away that holds what a module
returns; on request it does.
"""

import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from caffeforge.generated.bvlc import export
from caffeforge.runtime.report import ExportResult
from tests.real_caffe.witness import Witness

X = (2, 4, 6, 8)


class Whole(nn.Module):
    """A function of some modules."""

    def __init__(self, function: Callable[..., Tensor], *modules: nn.Module) -> None:
        super().__init__()
        self.function = function
        self.parts = nn.ModuleList(modules)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, *self.parts)


class ChannelNorm(nn.LayerNorm):
    """Layer normalization of the channels at each place, as in ConvNeXt."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def image(x: Tensor, conv: nn.Module) -> Tensor:
    mean, deviation = torch.tensor([0.1, 0.2, 0.3, 0.4]), torch.tensor([0.5, 0.6, 0.7, 0.8])
    y: Tensor = conv((x - mean[:, None, None]) / deviation[:, None, None])
    return y


def conv(ins: int = 4, outs: int = 6, kernel: int = 3, padding: int = 0, bias: bool = True) -> nn.Conv2d:
    return nn.Conv2d(ins, outs, kernel, padding=padding, bias=bias)


NORM = "BatchNorm Scale"
# A module, the shape of its input, its layers by default, and with fold=True ("=": the same).
ROWS: dict[str, tuple[nn.Module, tuple[int, ...], str, str]] = {
    "conv_bn": (nn.Sequential(conv(), nn.BatchNorm2d(6)), X, f"Convolution {NORM}", "Convolution"),
    "conv_bn_plain": (
        nn.Sequential(conv(bias=False), nn.BatchNorm2d(6, affine=False)),
        X,
        f"Convolution {NORM}",
        "Convolution",
    ),
    "bn_conv": (nn.Sequential(nn.BatchNorm2d(4), conv()), X, f"{NORM} Convolution", "Convolution"),
    # Where zeros are put around the image, its shift is not the same everywhere.
    "bn_padded_conv": (
        nn.Sequential(nn.BatchNorm2d(4), conv(padding=1)),
        X,
        f"{NORM} Convolution",
        f"{NORM} Convolution",
    ),
    "deconv_bn": (
        nn.Sequential(nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2), nn.BatchNorm2d(6)),
        X,
        f"Deconvolution {NORM}",
        "Deconvolution",
    ),
    "depthwise_bn": (
        nn.Sequential(nn.Conv2d(4, 8, 3, groups=4), nn.BatchNorm2d(8)),
        X,
        f"Convolution {NORM}",
        "Convolution",
    ),
    "conv1d_bn": (
        nn.Sequential(nn.Conv1d(4, 6, 3), nn.BatchNorm1d(6)),
        (2, 4, 9),
        f"Convolution {NORM}",
        "Convolution",
    ),
    "linear_bn": (
        nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6)),
        (3, 4),
        f"InnerProduct {NORM}",
        "InnerProduct",
    ),
    # A convolution of two readers keeps its normalization.
    "read_twice": (
        Whole(lambda x, a, b: (y := a(x)) + b(y), conv(), nn.BatchNorm2d(6)),
        X,
        f"Convolution {NORM} Eltwise",
        f"Convolution {NORM} Eltwise",
    ),
    "layer_norm_linear": (
        nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 3)),
        X,
        "Reduction Bias Reduction Power Scale Scale InnerProduct",
        "Reduction Bias Reduction Power Scale InnerProduct",
    ),
    "image": (Whole(image, conv()), X, "Convolution", "Convolution"),
    "padded_image": (Whole(image, conv(padding=1)), X, "Bias Convolution", "Bias Convolution"),
    # Orders of channels.
    "shuffled_channels": (
        nn.Sequential(nn.ChannelShuffle(2), conv()),
        X,
        "Reshape Im2col Reshape Convolution",
        "Convolution",
    ),
    "channels_to_shuffle": (
        nn.Sequential(conv(), nn.ChannelShuffle(3)),
        X,
        "Convolution Reshape Im2col Reshape",
        "Convolution",
    ),
    "flipped": (Whole(lambda x, a: a(x.flip(1)), conv()), X, "Convolution", "Convolution"),
    "bgr": (Whole(lambda x, a: a(x[:, [2, 0, 1, 3]]), conv()), X, "Convolution", "Convolution"),
    # One channel twice is no permutation.
    "chosen": (
        Whole(lambda x, a: a(x[:, [2, 0, 0, 3]]), conv()),
        X,
        "Slice Concat Convolution",
        "Slice Concat Convolution",
    ),
    "places_last": (
        Whole(lambda x, a: a(x.permute(0, 2, 3, 1).flatten(1)), nn.Linear(192, 5)),
        X,
        "Flatten InnerProduct",
        "Flatten InnerProduct",
    ),
    "grouped": (
        Whole(lambda x, a: a(x.flip(1)), nn.Conv2d(4, 6, 3, groups=2)),
        X,
        "Slice Concat Convolution",
        "Slice Concat Convolution",
    ),
    # Places for channels.
    "pixel_unshuffle": (
        nn.Sequential(nn.PixelUnshuffle(2), conv(16, padding=1)),
        X,
        "Reshape Im2col Reshape Im2col Reshape Convolution",
        "Convolution",
    ),
    "pixel_shuffle": (
        nn.Sequential(conv(outs=18, padding=1, bias=False), nn.PixelShuffle(3)),
        X,
        "Convolution Deconvolution",
        "Deconvolution",
    ),
    # A layer has one bias for all places of a channel.
    "biased_pixel_shuffle": (
        nn.Sequential(conv(outs=18, padding=1), nn.PixelShuffle(3)),
        X,
        "Convolution Deconvolution",
        "Convolution Deconvolution",
    ),
    "called_pixel_shuffle": (
        Whole(lambda x, a: F.pixel_shuffle(F.conv2d(x, a.weight, padding=2), 2), conv(outs=8)),
        X,
        "Deconvolution",
        "Deconvolution",
    ),
    "repeated": (
        nn.Sequential(nn.Upsample(scale_factor=(2, 3)), conv(padding=1)),
        X,
        "Deconvolution Convolution",
        "Deconvolution",
    ),
}


LINEAR = "Reshape Im2col Reshape InnerProduct"
BACK = "Reshape Im2col Reshape"
TURN = "Im2col Reshape"
ATTENTION = (
    f"{LINEAR} Slice Reshape {TURN} {TURN} {TURN} Reshape Tile Tile Eltwise Reduction Softmax Reshape {BACK} "
    f"Tile Tile Eltwise Reduction {LINEAR} {BACK}"
)
ROWS |= {
    # Channels that go behind the places and back.
    "linear_between": (
        Whole(lambda x, a: a(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2), nn.Linear(4, 6)),
        X,
        f"{LINEAR} {BACK}",
        "Convolution",
    ),
    "perceptron_between": (
        Whole(
            lambda x, a, b: b(a(x.permute(0, 2, 3, 1)).relu() * 2).permute(0, 3, 1, 2),
            nn.Linear(4, 6),
            nn.Linear(6, 3, bias=False),
        ),
        X,
        f"{LINEAR} ReLU InnerProduct {BACK}",
        "Convolution ReLU Convolution",
    ),
    "flat_between": (
        Whole(
            lambda x, a: a(x.flatten(2).transpose(1, 2)).transpose(1, 2).reshape(2, 6, 6, 8), nn.Linear(4, 6)
        ),
        X,
        f"{LINEAR} {BACK}",
        "Reshape Convolution Reshape",
    ),
    "another_order_behind": (
        Whole(lambda x, a: a(x.permute(0, 2, 3, 1)).permute(0, 3, 2, 1), nn.Linear(4, 6)),
        X,
        f"{LINEAR} {BACK} {TURN}",
        "=",
    ),
    # Moves that are undone.
    "product_with_itself": (Whole(lambda x: x @ x.mT), X, "Reshape Reshape Tile Tile Eltwise Reduction", "="),
    "cut_behind_a_turn": (
        Whole(lambda x, a: torch.mul(*a(x).unflatten(-1, (2, 3)).permute(3, 0, 1, 2, 4)), nn.Linear(8, 6)),
        X,
        "InnerProduct Slice Eltwise",
        "=",
    ),
    "attention": (
        Whole(lambda x, a: a(x, x, x, need_weights=False)[0], nn.MultiheadAttention(8, 2, batch_first=True)),
        (2, 5, 8),
        ATTENTION,
        "=",
    ),
    # Padding.
    "zeros_around": (
        nn.Sequential(nn.ZeroPad2d(1), conv(padding=1)),
        X,
        "Convolution Convolution",
        "Convolution",
    ),
    "zeros_behind": (
        nn.Sequential(nn.ZeroPad2d((0, 1, 0, 1)), nn.Conv2d(4, 4, 3, 2, groups=4)),
        X,
        "Convolution Convolution",
        "Convolution",
    ),
    "zeros_called": (Whole(lambda x, a: a(F.pad(x, (2, 2, 1, 1))), conv()), X, "Convolution", "="),
    "halves_around": (
        nn.Sequential(nn.ConstantPad2d((1, 2, 1, 0), 0.5), conv()),
        X,
        "Slice Power Power Concat Slice Power Power Tile Concat Concat Convolution",
        "Power Convolution",
    ),
}


class All(nn.Module):
    """All rows side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.ModuleDict({name: row[0] for name, row in ROWS.items()})

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        return tuple(row(x) for row, x in zip(self.rows.values(), inputs, strict=True))


@pytest.fixture(scope="module")
def model() -> nn.Module:
    torch.manual_seed(3)
    model = All().eval()
    for module in model.modules():
        if isinstance(module, nn.LayerNorm | nn.modules.batchnorm._BatchNorm):
            for tensor in (module.weight, module.bias, getattr(module, "running_mean", None)):
                if tensor is not None:
                    nn.init.normal_(tensor)
            if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.running_var is not None:
                nn.init.uniform_(module.running_var, 0.5, 2.0)
    return model


@pytest.fixture(scope="module")
def inputs() -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(4)
    return tuple(torch.randn(row[1], generator=generator) for row in ROWS.values())


@pytest.fixture(scope="module", params=[False, True], ids=["default", "fold"])
def exported(
    request: pytest.FixtureRequest,
    model: nn.Module,
    inputs: tuple[Tensor, ...],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[bool, ExportResult]:
    folder = tmp_path_factory.mktemp("folds")
    names = [f"in_{name}" for name in ROWS]
    fold: bool = request.param
    return fold, export(
        model, inputs, folder / "net", input_names=names, output_names=[*ROWS], verify=False, fold=fold
    )


@pytest.mark.parametrize("row", ROWS)
def test_layers_of_a_row(row: str, exported: tuple[bool, ExportResult]) -> None:
    fold, result = exported
    found = re.findall(
        rf'name: "rows\.{row}(?:\.[^"]*|/[^"]*)?"\s+type: "(\w+)"', result.prototxt.read_text()
    )
    *_, default, folded = ROWS[row]
    assert " ".join(found) == (folded if fold and folded != "=" else default)


def test_real_caffe_agrees(
    exported: tuple[bool, ExportResult], model: nn.Module, inputs: tuple[Tensor, ...], caffe: Witness
) -> None:
    _, result = exported
    given = {f"in_{name}": x.numpy() for name, x in zip(ROWS, inputs, strict=True)}
    found = caffe.run(result.prototxt, result.caffemodel, given, [*ROWS])
    with torch.no_grad():
        for name, expected in zip(ROWS, model(*inputs), strict=True):
            scale = expected.abs().max()
            assert expected.std() > 0.1 * scale
            assert (torch.from_numpy(found[name]) - expected).abs().max() < 2e-6 * scale, name
