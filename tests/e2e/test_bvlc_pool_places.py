"""Places of maxima and what is written back at them: Pooling's second top in real Caffe, against torch."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper
from torch import Tensor, nn
from torch.nn.functional import max_pool2d, max_unpool2d

from caffeforge.generated.bvlc import export
from tests.real_caffe.witness import Witness


class Pooled(nn.Module):
    def __init__(self, kernel: int, stride: int, pad: int, ceil: bool) -> None:
        super().__init__()
        self.settings = (kernel, stride, pad)
        self.ceil = ceil

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return max_pool2d(x, *self.settings, ceil_mode=self.ceil, return_indices=True)


class Unpooled(nn.Module):
    """As SegNet: what the encoder's pool took is written back in the decoder."""

    def __init__(self, kernel: int) -> None:
        super().__init__()
        self.kernel = kernel
        self.conv = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        small, places = max_pool2d(x, self.kernel, return_indices=True)
        smaller, more = max_pool2d(self.conv(small), 2, return_indices=True)
        back = max_unpool2d(self.conv(smaller), more, [2, 2], output_size=small.shape)
        return max_unpool2d(back, places, [self.kernel] * 2, output_size=x.shape)


@pytest.mark.parametrize(
    ("setting", "size"),
    [
        ((2, 2, 0, False), (8, 6)),
        ((3, 2, 1, False), (9, 8)),
        ((2, 2, 0, False), (7, 9)),
        ((3, 2, 0, True), (8, 8)),
    ],
)
def test_places_are_torchs(
    setting: tuple[int, int, int, bool], size: tuple[int, int], caffe: Witness, tmp_path: Path
) -> None:
    model = Pooled(*setting).eval()
    x = torch.randn(2, 3, *size, generator=torch.Generator().manual_seed(0))
    result = export(model, (x,), tmp_path / "net")
    found = caffe.run(result.prototxt, result.caffemodel, {"x": x.numpy()}, list(result.errors))
    for name, expected in zip(result.errors, model(x), strict=True):
        np.testing.assert_array_equal(found[name], expected.numpy().astype(np.float32))
    assert (
        sum(layer.startswith('  type: "Pooling"') for layer in result.prototxt.read_text().splitlines()) == 1
    )


@pytest.mark.parametrize(("kernel", "size"), [(2, (8, 12)), (2, (9, 11)), (3, (13, 14))])
def test_unpooling(kernel: int, size: tuple[int, int], caffe: Witness, tmp_path: Path) -> None:
    model = Unpooled(kernel).eval()
    x = torch.randn(2, 3, *size, generator=torch.Generator().manual_seed(1))
    result = export(model, (x,), tmp_path / "net")
    (name,) = result.errors
    found = caffe.run(result.prototxt, result.caffemodel, {"x": x.numpy()}, [name])[name]
    np.testing.assert_allclose(found, model(x).detach().numpy(), rtol=0, atol=1e-5)
    assert np.count_nonzero(found) > 10


def test_places_of_onnx_count_through_the_whole_blob(caffe: Witness, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MaxPool", ["x"], ["v", "i"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("MaxUnpool", ["v", "i"], ["y"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
    ]
    floats = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 3, 4, 6]) for n in ("x", "y")]
    places = helper.make_tensor_value_info("f", TensorProto.FLOAT, [2, 3, 2, 3])
    graph = helper.make_graph(nodes, "pool", floats[:1], [floats[1], places])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    x = np.random.default_rng(2).standard_normal((2, 3, 4, 6)).astype(np.float32)
    result = export(model, {"x": x}, tmp_path / "net")
    found = caffe.run(result.prototxt, result.caffemodel, {"x": x}, ["y", "f"])
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(["y", "f"], {"x": x})
    for name, array in zip(("y", "f"), expected, strict=True):
        np.testing.assert_array_equal(found[name], array)
