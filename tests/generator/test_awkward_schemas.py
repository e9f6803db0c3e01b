"""Awkward names, numbers and packages: they generate, import, and files go both ways under the schema."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from caffeforge.generator.generate import write
from caffeforge.runtime.caffe_files import write_files
from tests.docs.backends import application, written
from tests.generator.awkward import PACKAGES, made, proto
from tests.generator.dialects import imported
from tests.generator.judge import Judge

NET = """
input: "x" input_shape { dim: [2, 3] }
layer { name: "y" type: "Odd" bottom: "x" top: "y" Odd_param {
  lambda: 2 min: -1.5 max: 3 saturate: None floor: Below
  iter: 1 iter: 2 kind: SECOND class: 4 pad_out_W: 3 format: "None" toPower: 0.5 } }
"""
X = np.array([[-3, -0.5, 0], [0.25, 1, 9]], np.float32)


@pytest.mark.parametrize("package", PACKAGES)
def test_awkward_names_and_numbers_go_into_files_and_out_of_them(package: str, tmp_path: Path) -> None:
    source = made(package, tmp_path)
    write(source, tmp_path / "out")
    module, judge = imported(tmp_path / "out" / source.name), Judge(proto(package))
    (tmp_path / "net.prototxt").write_text(NET)
    net = judge.text(tmp_path / "net.prototxt")
    (tmp_path / "net.caffemodel").write_bytes(net.SerializeToString())
    loaded = module.load(tmp_path / "net.prototxt", tmp_path / "net.caffemodel")
    np.testing.assert_array_equal(loaded.run({"x": X})["y"], np.clip(2 * X, -1.5, 3))
    (layer,) = [layer for layer in loaded.net.layers if layer.type == "Odd"]
    held = layer.param
    assert (held.lambda_, held.class_, held.print, held.self_, held.toPower) == (2, 4, None, None, 0.5)
    assert (held.saturate, held.floor, held.kind, held.pad_out_W, held.iter) == (
        "None",
        "Below",
        "SECOND",
        3,
        (1, 2),
    )
    write_files(loaded.net, module.BACKEND, tmp_path / "again", "{}")
    assert judge.net(tmp_path / "again").layer[-1] == net.layer[-1]
    own = {name: custom.op for name, custom in module.BACKEND.custom.items()}
    squash = application("odd.Squash(float32[2, 3], factor=2.0, low=-1.5)", own)
    assert written(module.BACKEND, squash, tmp_path) == ["Odd"]
