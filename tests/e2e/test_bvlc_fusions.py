"""What PyTorch says by several operations, and Caffe by one layer."""

from pathlib import Path

import pytest
import torch
from torch import nn

from caffeforge.generated import bvlc
from tests.e2e.layer_cases import difference
from tests.real_caffe.witness import Witness


@pytest.mark.parametrize(("batch", "size"), [(1, 5), (3, 3)])
def test_local_response_norm_is_one_layer(batch: int, size: int, caffe: Witness, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, x = nn.LocalResponseNorm(size, alpha=0.3, beta=0.6, k=2.0).eval(), 3 * torch.randn(batch, 6, 7, 9)
    prototxt, caffemodel, _ = bvlc.export(model, (x,), tmp_path / "net", input_names=["x"]).files
    net = bvlc.load(prototxt, caffemodel)
    assert [layer.type for layer in net.net.layers] == ["Input", "LRN"]
    (output,) = net.outputs
    found = caffe.run(prototxt, caffemodel, {"x": x.numpy()}, [output])[output]
    assert difference(found, model(x).numpy()) < 1e-6


def test_an_even_window_is_no_such_layer(caffe: Witness, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, x = nn.LocalResponseNorm(4, alpha=0.3).eval(), 3 * torch.randn(2, 6, 7, 9)
    prototxt, caffemodel, _ = bvlc.export(model, (x,), tmp_path / "net", input_names=["x"]).files
    net = bvlc.load(prototxt, caffemodel)
    (output,) = net.outputs
    assert "LRN" not in [layer.type for layer in net.net.layers]
    found = caffe.run(prototxt, caffemodel, {"x": x.numpy()}, [output])[output]
    assert difference(found, model(x).numpy()) < 1e-6
