"""What lowerings write as several layers and one layer computes: fewer layers, the same in real Caffe."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from caffeforge.generated.bvlc import export
from tests.e2e.layer_cases import Random
from tests.e2e.op_cases import OpCase, check, kinds, written
from tests.real_caffe.witness import Witness

R = Random(21)
NUMBER = re.compile(r"(?<=[(,] )-?\d+\.\d+|(?<=\()-?\d+\.\d+")

# The lines of a net of x and z, (2, 3, 4, 5), with random constants of the shapes below;
# and the layers that it takes.
CASES = {
    "a = Mul(x, 2.5); b = Add(a, -1.5); c = Abs(b); y = Sqrt(c)": "Power AbsVal Power",
    "a = Mul(x, 0.5); b = Add(a, 3.0); e = Mul(b, 0.25); y = Reciprocal(e)": "Power",
    "a = Abs(x); b = Add(a, 0.5); e = Sqrt(b); y = Reciprocal(e)": "AbsVal Power",
    "a = Neg(x); b = Sub(1.0, a); e = Div(b, 4.0); y = Relu(e)": "Power ReLU",
    # What the first of two steps cancels or rounds stays.
    "a = Round(x); y = Relu(a)": "Power Power ReLU",
    "a = Add(x, 300.0); b = Mul(a, 0.1); y = Relu(b)": "Power Power ReLU",
    # What something else reads stays.
    "a = Mul(x, 2.0); b = Add(a, 1.0); e = Relu(a); y = Add(b, e)": "Power Power ReLU Eltwise",
    "a = Mul(x, -0.5); y = Exp(a)": "Exp",
    "a = Mul(x, c); y = Add(a, d)": "Scale",
    "a = Mul(x, c); y = Add(a, 0.5)": "Scale",
    "a = Mul(x, 3.0); y = Add(a, m)": "Scale",
    "a = Mul(x, c); y = Mul(a, 0.5)": "Scale",
    "a = Mul(x, c); y = Add(a, m)": "Scale Bias",
    "a = MatMul(x, w); y = Add(a, v)": "InnerProduct",
    "a = Mul(x, 2.0); y = Add(a, z)": "Eltwise",
    "a = Mul(x, 2.0); y = Add(z, a)": "Eltwise",
    "a = Mul(x, 2.0); b = Mul(z, -3.0); y = Add(b, a)": "Eltwise",
    "a = Mul(x, 2.0); y = Sub(a, z)": "Eltwise",
    "a = Mul(x, 2.0); y = Sub(z, a)": "Eltwise",
    # Sums of sums and products of products, in their order.
    "a = Mul(x, z); b = Abs(x); y = Mul(b, a)": "AbsVal Eltwise",
    "a = Mul(x, z); b = Abs(x); e = Mul(a, b); f = Exp(z); y = Mul(e, f)": "AbsVal Exp Eltwise",
    "a = Add(x, z); b = Abs(x); e = Sub(b, a); f = Exp(z); y = Add(e, f)": "AbsVal Exp Eltwise",
    "a = Mul(x, 2.0); b = Add(a, z); e = Exp(z); y = Sub(e, b)": "Exp Eltwise",
    "a = Sub(x, z); b = Mul(a, 2.0); e = Abs(z); y = Add(b, e)": "Eltwise AbsVal Eltwise",
    "a = Add(x, z); b = Relu(a); y = Add(b, a)": "Eltwise ReLU Eltwise",
    "a = Reshape(x, shape=(0, 60)); b = Relu(a); y = Reshape(b, shape=(2, 3, 20))": "Reshape ReLU Reshape",
    "a = Reshape(x, shape=(0, 60)); b = Reshape(a, shape=(0, 6, 10)); y = Relu(b)": "Reshape ReLU",
    "a = Unsqueeze(x, axes=(0,)); b = Squeeze(a, axes=(0,)); y = Relu(b)": "ReLU",
    "a = Identity(x); b = Transpose(a, perm=(0, 1, 2, 3)); y = Relu(b)": "ReLU",
    "a = Slice(x, starts=(0,), ends=(2,), axes=(3,)); b = Slice(x, starts=(3,), ends=(5,), axes=(3,));"
    " y = Mul(a, b)": "Slice Eltwise",
    "a = Slice(x, starts=(0,), ends=(3,), axes=(3,)); b = Slice(x, starts=(2,), ends=(5,), axes=(3,));"
    " y = Mul(a, b)": "Slice Slice Eltwise",
}
SHAPES = {"c": (3, 1, 1), "d": (3, 1, 1), "m": (4, 5), "w": (5, 6), "v": (6,)}


def case(lines: str) -> OpCase:
    """Return a net, with what it names as parameters and its numbers as constants."""
    named = [name for name in SHAPES if re.search(rf", {name}\)", lines)]
    constants = [f"{name}: float32{list(SHAPES[name])}" for name in named]
    for index, number in enumerate(dict.fromkeys(NUMBER.findall(lines))):
        constants.append(f"n{index}: float32[] = {number}")
        lines = re.sub(rf"(?<=[(, ]){re.escape(number)}(?=[,)])", f"n{index}", lines)
    inputs = [f"{x}: float32[2, 3, 4, 5]" for x in "xz" if re.search(rf"\b{x}\b", lines)]
    head = ", ".join([*inputs, *(["*", *constants] if constants else [])])
    return OpCase(f"({head}): {lines}", weights=[R.normal(*SHAPES[name]) for name in named])


def test_folded_nets_compute_the_same(caffe: Witness, tmp_path: Path) -> None:
    assert check([case(lines) for lines in CASES], caffe, tmp_path) < 1e-6


@pytest.mark.parametrize(("lines", "layers"), CASES.items())
def test_layers_are_folded(lines: str, layers: str, tmp_path: Path) -> None:
    graph = case(lines).graph()
    net, *_ = written([graph], tmp_path)
    assert kinds(net, graph) == layers


class Focus(nn.Module):
    def __init__(self, order: Sequence[tuple[int, int]], convolved: bool) -> None:
        super().__init__()
        self.order = order
        self.conv = nn.Conv2d(3 * len(order), 8, 3, padding=1) if convolved else nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.conv(torch.cat([x[..., i::2, j::2] for i, j in self.order], 1))
        return out


@pytest.mark.parametrize("order", [[(0, 0), (1, 0), (0, 1), (1, 1)], [(0, 1), (1, 1), (0, 0)]])
@pytest.mark.parametrize("convolved", [True, False])
def test_focus_is_one_convolution(
    order: Sequence[tuple[int, int]], convolved: bool, caffe: Witness, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = Focus(order, convolved).eval()
    x = torch.randn(2, 3, 10, 12)
    result = export(model, (x,), tmp_path / "net")
    assert result.layers == 2 + (not convolved)
    (name,) = result.errors
    found = torch.from_numpy(caffe.run(result.prototxt, result.caffemodel, {"x": x.numpy()}, [name])[name])
    torch.testing.assert_close(found, model(x).detach(), rtol=1e-5, atol=1e-5)


def test_sibling_cuts_are_one_slice(caffe: Witness, tmp_path: Path) -> None:
    class Cut(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            return x[:, 5:].relu(), x[:, :2] * 2, x[:, 3:5].tanh()

    x = torch.randn(2, 7, 3, 4, generator=torch.Generator().manual_seed(0))
    result = export(Cut().eval(), (x,), tmp_path / "net")
    text = result.prototxt.read_text()
    assert text.count('"Slice"') == 1
    assert "slice_point: 2" in text and "slice_point: 3" in text and "slice_point: 5" in text
    found = caffe.run(result.prototxt, result.caffemodel, {"x": x.numpy()}, list(result.errors))
    for name, expected in zip(result.errors, Cut()(x), strict=True):
        torch.testing.assert_close(torch.from_numpy(found[name]), expected, rtol=1e-6, atol=1e-6)
