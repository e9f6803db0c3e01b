"""SegNet's Caffe: its texts run in Sophgo's, which has the same BN and Upsample."""

from pathlib import Path

import numpy as np
import pytest
import torch
from google.protobuf import text_format
from torch import nn

from caffeforge.generated.segnet import BACKEND, export, load
from caffeforge.runtime.errors import LegalizeError
from tests.e2e import sophgo_cases, vendor
from tests.e2e.dialect_cases import Single, drawn, errors, of_bvlc
from tests.e2e.layer_cases import TOLERANCE, Random, difference
from tests.real_caffe.witness import Witness

NOT_RUN = {"BatchReindex", "DummyData", "ImageData", "MemoryData", "Silence"}  # inputs of Sophgo's, or data


def bn(r: Random) -> Single:
    channels = r.size(1, 4)
    blobs = r.normal(1, channels, 1, 1), r.normal(1, channels, 1, 1)
    return Single("BN", "bn_param { bn_mode: INFERENCE }", (r.normal(2, channels, 3, r.size(2, 5)),), blobs)


MAKERS = {"bn": bn, "unpooling": sophgo_cases.unpooling}


def is_here(case: Single) -> bool:
    """Tell whether this Caffe reads a text of Caffe 1.0, and as that of Sophgo does."""
    try:
        vendor.parse(f"layer {{ {case.text} }}", "segnet")
    except text_format.ParseError:
        return False
    return "pool: AVE" not in case.text


def test_layers_compute_what_a_caffe_computes_that_has_them(sophgo: Witness, tmp_path: Path) -> None:
    kinds = set(BACKEND.readers) - NOT_RUN
    inherited = [case for case in of_bvlc(kinds, most=20) if is_here(case)]
    found = errors(inherited + drawn(MAKERS, each=20), "segnet", sophgo, tmp_path)
    assert not {kind: error for kind, error in found.items() if not error <= TOLERANCE}
    assert {"BN", "Upsample", "Convolution", "Pooling", "Eltwise"} <= set(found)


class Small(nn.Module):
    """Down by a pool and up again by its places, as SegNet does."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
        self.pool, self.unpool = nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)
        self.up = nn.Sequential(nn.Conv2d(4, 5, 3, padding=1), nn.BatchNorm2d(5), nn.Softmax(1))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        values, places = self.pool(self.down(image))
        return torch.as_tensor(self.up(self.unpool(values, places)))


def test_a_small_segnet_is_written_and_run(sophgo: Witness, tmp_path: Path) -> None:
    torch.manual_seed(1)
    model, image = Small().eval(), torch.randn(2, 3, 8, 12)
    for norm in model.modules():
        if isinstance(norm, nn.BatchNorm2d):
            norm.running_mean = torch.randn(norm.num_features)
            norm.running_var = torch.ones(norm.num_features) + torch.rand(norm.num_features)
    result = export(model, (image,), tmp_path / "net")
    kinds = [layer.type for layer in load(result.prototxt, result.caffemodel).net.layers]
    assert kinds == ["Convolution", "BN", "ReLU", "Pooling", "Upsample", "Convolution", "BN", "Softmax"]
    (name,) = load(result.prototxt, result.caffemodel).inputs
    (found,) = sophgo.run(result.prototxt, result.caffemodel, {name: image.numpy()}).values()
    with torch.no_grad():
        assert difference(found, model(image).numpy()) <= TOLERANCE
    assert np.ptp(found) > 0.1


def test_what_this_caffe_has_not_yet_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LegalizeError, match="segnet cannot express"):
        export(nn.Conv2d(3, 4, 3, dilation=2).eval(), (torch.randn(1, 3, 9, 9),), tmp_path / "net")
    assert not list(tmp_path.iterdir())
