"""Operators of PyTorch for which Caffe has no layer, from the model to real Caffe.

Kernels that are computed, infinite masks, indices as inputs.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from caffeforge.generated.bvlc import export
from caffeforge.runtime.errors import FrontEndError
from tests.real_caffe.witness import Witness

G = torch.Generator().manual_seed(11)


class Function(nn.Module):
    """A function of its inputs and some modules."""

    def __init__(self, function: Callable[..., Tensor], *modules: nn.Module) -> None:
        super().__init__()
        self.function = function
        self.parts = nn.ModuleList(modules)

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.function(*inputs, *self.parts)


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=G)


def whole(limit: int, *shape: int) -> Tensor:
    return torch.randint(0, limit, shape, generator=G)


def correlation(search: Tensor, template: Tensor) -> Tensor:
    """Correlate each channel with its own template, as trackers of the SiamRPN family do."""
    batch, channels = template.shape[:2]
    images = search.reshape(1, batch * channels, *search.shape[2:])
    kernels = template.reshape(batch * channels, 1, *template.shape[2:])
    found = F.conv2d(images, kernels, groups=batch * channels)
    return found.reshape(batch, channels, *found.shape[2:])


def whole_correlation(search: Tensor, template: Tensor) -> Tensor:
    """Correlate with the whole template, as SiamFC does."""
    batch = search.shape[0]
    found = F.conv2d(search.reshape(1, -1, *search.shape[2:]), template, groups=batch)
    return found.reshape(batch, 1, *found.shape[2:])


def masked(scores: Tensor, mask: Tensor) -> Tensor:
    return scores.masked_fill(mask > 0, float("-inf")).softmax(-1)


def filtered(x: Tensor) -> Tensor:
    """Multiply frequencies by complex numbers, as global filter networks do."""
    weights = torch.complex(torch.linspace(0, 1, 5), torch.linspace(1, -1, 5))
    result: Tensor = torch.fft.irfft(torch.fft.rfft(x, norm="ortho") * weights, n=8, norm="ortho")
    return result


def joined(x: Tensor) -> Tensor:
    """Let channels be both parts and back, as the Fourier units of inpainting networks do."""
    spectrum = torch.fft.rfftn(x, dim=(-2, -1), norm="ortho")
    parts = torch.cat([spectrum.real, spectrum.imag], 1).relu()
    real, imaginary = parts.chunk(2, 1)
    whole = torch.complex(real, imaginary)
    result: Tensor = torch.fft.irfftn(whole, s=(4, 6), dim=(-2, -1), norm="ortho")
    return result


CASES: dict[str, tuple[nn.Module, tuple[Tensor, ...]]] = {
    "correlation by channel": (Function(correlation), (normal(2, 4, 9, 8), normal(2, 4, 3, 2))),
    "correlation of one image": (Function(correlation), (normal(1, 4, 9, 8), normal(1, 4, 4, 4))),
    "whole correlation": (Function(whole_correlation), (normal(2, 4, 9, 8), normal(2, 4, 3, 3))),
    "computed kernel": (Function(F.conv2d), (normal(2, 4, 9, 8), normal(5, 4, 3, 2))),
    "computed kernel and bias": (
        Function(lambda x, w, b: F.conv2d(x, w, b, stride=(2, 1), padding=1, dilation=(1, 2), groups=2)),
        (normal(2, 4, 9, 8), normal(6, 2, 3, 2), normal(6)),
    ),
    "computed bias": (
        Function(lambda x, b, a: F.conv2d(x, a.weight, b), nn.Conv2d(4, 5, 3)),
        (normal(2, 4, 7, 8), normal(5)),
    ),
    "computed kernel of one axis": (
        Function(lambda x, w: F.conv1d(x, w, padding=1)),
        (normal(2, 4, 9), normal(5, 4, 3)),
    ),
    "computed transposed kernel": (
        Function(
            lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1, groups=2)
        ),
        (normal(2, 4, 5, 6), normal(4, 3, 3, 3), normal(6)),
    ),
    "hypot": (Function(torch.hypot), (normal(2, 3, 4), normal(2, 3, 4))),
    "hypot of large numbers": (Function(torch.hypot), (1e25 * normal(2, 3, 4), 1e25 * normal(3, 1))),
    "masked attention": (
        Function(masked),
        (normal(2, 3, 5), torch.tensor([0.0, 1.0, 0.0, 0.0, 1.0]).expand(2, 3, 5)),
    ),
    "chosen infinity": (
        Function(lambda x, y: torch.exp(-torch.where(x > y, x, float("inf")))),
        (normal(2, 3, 4), normal(2, 3, 4)),
    ),
    "one hot": (Function(lambda x: F.one_hot(x, 7)), (whole(7, 2, 3),)),
    "one hot as floats": (Function(lambda x: 0.5 * F.one_hot(x, 7).float() - 1), (whole(7, 2, 3),)),
    "one hot of the largest": (Function(lambda x: F.one_hot(x.argmax(1), 5).float()), (normal(2, 5, 3),)),
    "size of a spectrum": (Function(lambda x: torch.fft.rfft(x).abs()), (normal(2, 3, 9),)),
    "longer spectrum": (
        Function(lambda x: torch.view_as_real(torch.fft.rfft(x, n=12, dim=1, norm="ortho"))),
        (normal(2, 8, 3),),
    ),
    "filtered": (Function(filtered), (normal(2, 3, 8),)),
    "filtered image": (
        Function(lambda x: torch.fft.irfft2(2 * torch.fft.rfft2(x, norm="ortho"), s=(4, 7), norm="ortho")),
        (normal(2, 3, 4, 7),),
    ),
    "mixed tokens": (Function(lambda x: torch.fft.fft2(x, dim=(1, 2)).real), (normal(2, 5, 8),)),
    "joined parts": (Function(joined), (normal(2, 3, 4, 6),)),
    "embedding": (Function(lambda x, a: a(x), nn.Embedding(9, 4)), (whole(9, 2, 3),)),
}


class All(nn.Module):
    """All cases side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.cases = nn.ModuleList(model for model, _ in CASES.values())

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        left = iter(inputs)
        return tuple(
            case(*[next(left) for _ in given])
            for case, (_, given) in zip(self.cases, CASES.values(), strict=True)
        )


@pytest.fixture(scope="module")
def results(caffe: Witness, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[Tensor, Tensor]]:
    """What real Caffe and PyTorch compute of each case."""
    model = All().eval()
    inputs = tuple(x for _, given in CASES.values() for x in given)
    names = [f"in{index}" for index in range(len(inputs))]
    outputs = [f"out{index}" for index in range(len(CASES))]
    folder = tmp_path_factory.mktemp("nets")
    files = export(model, inputs, folder / "net", input_names=names, output_names=outputs)
    given = {name: x.float().numpy() for name, x in zip(names, inputs, strict=True)}
    found = caffe.run(files.prototxt, files.caffemodel, given, outputs)
    with torch.no_grad():
        expected = model(*inputs)
    pairs = [(torch.from_numpy(found[name]), due) for name, due in zip(outputs, expected, strict=True)]
    return dict(zip(CASES, pairs, strict=True))


@pytest.mark.parametrize("case", CASES)
def test_real_caffe_computes_what_pytorch_does(
    case: str, results: Mapping[str, tuple[Tensor, Tensor]]
) -> None:
    found, expected = (result.double() for result in results[case])
    scale = expected.abs().max()
    assert expected.std() > 0.05 * scale
    assert (found - expected).abs().max() < 2e-6 * scale


def test_rounding_of_a_quantized_model_is_refused_with_what_to_do(tmp_path: Path) -> None:
    model = Function(lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127))
    with pytest.raises(FrontEndError, match="disable_fake_quant"):
        export(model.eval(), (normal(2, 3),), tmp_path / "net")
