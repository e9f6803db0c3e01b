"""Vendors' protos with no mapping beside them: each is a backend that exports whole networks.

What it wrote is read by protobuf under that very proto, run by the executor, and, where bvlc's proto reads
the same from the files, run by Caffe.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
import torchvision

from caffeforge.generator.generate import write
from caffeforge.generator.schema_folder import SCHEMAS
from tests.generator.dialects import NAMES, PAGE, imported, package, proto, row
from tests.generator.judge import Judge
from tests.real_caffe.witness import CAFFE

Floats = npt.NDArray[np.float32]
NETWORKS = {"resnet18": {}, "mobilenet_v2": {"width_mult": 0.25}}

pytestmark = pytest.mark.skipif(not NAMES, reason="needs ../shared/dialects")


@cache
def network(name: str) -> tuple[torch.export.ExportedProgram, torch.Tensor, Floats]:
    """Return a network, exported once for all backends, with an input and what it computes from that."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = torchvision.models.get_model(name, num_classes=10, **NETWORKS[name])
        image = torch.randn(1, 3, 64, 64)
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.momentum = None  # statistics are those of one batch, not of a blank network
        with torch.no_grad():
            model.train()(torch.randn(8, 3, 64, 64))
            expected = model.eval()(image).numpy()
        return torch.export.export(model, (image,)), image, expected


@cache
def by_caffe(digest: str, stem: Path, name: str) -> Floats:
    """Return what Caffe computes; `digest` is that of the files, most of which are the same."""
    image = network(name)[1].numpy()
    prototxt, caffemodel = stem.with_suffix(".prototxt"), stem.with_suffix(".caffemodel")
    (result,) = CAFFE.run(prototxt, caffemodel, {"x": image}).values()
    return result


def digest(stem: Path) -> str:
    """Return what tells the files of a net from others."""
    files = [stem.with_suffix(suffix).read_bytes() for suffix in (".prototxt", ".caffemodel")]
    return sha256(b"\0".join(files)).hexdigest()


@cache
def bvlc() -> Judge:
    """Return the reader of the schema of Caffe 1.0."""
    return Judge((SCHEMAS / "bvlc" / "caffe.proto").read_text(encoding="utf-8"))


@pytest.mark.parametrize("dialect", NAMES)
def test_a_vendors_proto_alone_is_a_backend_that_exports_networks(dialect: str, tmp_path: Path) -> None:
    made, judge = package(dialect, tmp_path), Judge(proto(dialect))
    write(made, tmp_path / "out")
    module = imported(tmp_path / "out" / made.name)
    told = row(dialect, made) in PAGE.read_text(encoding="utf-8").splitlines()
    assert told, "python -m tests.generator.dialects brings the page up to date"
    for name in NETWORKS:
        program, image, expected = network(name)
        stem = tmp_path / name
        module.export(program, image, stem, verify=False)
        net = judge.net(stem)
        assert sum(layer.type == "Convolution" for layer in net.layer) == (52 if "mobile" in name else 20)
        loaded = module.load(stem.with_suffix(".prototxt"), stem.with_suffix(".caffemodel"))
        (found,) = loaded.run({"x": image.numpy()}).values()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        if CAFFE.available and bvlc().reads(stem):
            np.testing.assert_allclose(by_caffe(digest(stem), stem, name), expected, rtol=1e-3, atol=1e-4)
