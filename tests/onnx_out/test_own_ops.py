"""Ops of domains of their own in ONNX files: nodes with local functions, nodes alone, or other ops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

from caffeforge.generator.generate import generate, write
from caffeforge.runtime.backends import find_any
from caffeforge.runtime.cli import main
from caffeforge.runtime.errors import LegalizeError, UsageError
from caffeforge.runtime.leaf import leaf
from caffeforge.runtime.onnx_out.backend import OnnxBackend
from caffeforge.runtime.onnx_out.export import export
from caffeforge.runtime.onnx_out.loaded import load

MAPPING = """
backend: ownops
extends: onnx_opset{opset}
{more}
custom:
  ownops.PartialMean:
    inputs: [X]
    attributes: {{axes: ints}}
    shape: "[1 if i in axes else X.shape[i] for i in range(X.rank)]"
    reference: Y = ReduceMean(X, axes=axes, keepdims=1)
  ownops.Centred:
    inputs: [X, W]
    attributes: {{axes: ints, gain: float = 2.0}}
    reference: |
      mean = ownops.PartialMean(X, axes=axes)
      Y = Mul(Mul(Sub(X, mean), W), gain)
  ownops.Sorted:
    inputs: [X]
    torch: ownops::in_order
"""
IMAGE = torch.linspace(-1, 1, 2 * 3 * 5 * 5).reshape(2, 3, 5, 5).sin()


@torch.library.custom_op("ownops::in_order", mutates_args=())
def in_order(x: torch.Tensor) -> torch.Tensor:
    return torch.sort(x, dim=1).values


@in_order.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


class Centred(nn.Module):
    """A leaf: what runs inside it is not looked at."""

    def __init__(self, axes: tuple[int, ...], gain: float) -> None:
        super().__init__()
        self.axes, self.gain = axes, gain
        self.w = nn.Parameter(torch.randn(4, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x - x.mean(self.axes, keepdim=True)) * self.w * self.gain


leaf(Centred, "ownops.Centred", weights=["w"])


class Net(nn.Module):
    """Two leaves of other attributes, then a function of ``torch.library``."""

    def __init__(self, *, library: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(3, 4, 3)
        self.first, self.second = Centred((1,), 0.5), Centred((2, 3), 3.0)
        self.library = library

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.second(self.first(self.conv(x)))
        return in_order(found) if self.library else found


def backend(folder: Path, opset: int, more: str = "") -> OnnxBackend:
    source = folder / "schemas" / "ownops"
    source.mkdir(parents=True, exist_ok=True)
    (source / "mapping.yaml").write_text(MAPPING.format(opset=opset, more=more), encoding="utf-8")
    write(generate(source), folder / "generated")
    found = find_any(folder / "generated" / "ownops")
    assert isinstance(found, OnnxBackend)
    return found


def kinds(model: onnx.ModelProto) -> list[tuple[str, str]]:
    return [(node.domain, node.op_type) for node in model.graph.node]


OWN = [("", "Conv"), ("ownops", "Centred"), ("ownops", "Centred")]


@pytest.mark.parametrize("opset", [7, 11, 17])
def test_onnxruntime_runs_nodes_by_their_local_functions(tmp_path: Path, opset: int) -> None:
    net = Net(library=False).eval()
    result = export(backend(tmp_path, opset), net, (IMAGE,), tmp_path / "net", own_ops="function")
    model = onnx.load(result.onnx)
    assert kinds(model) == OWN
    assert [(f.domain, f.name, f.overload) for f in model.functions] == [
        ("ownops", "Centred", ""),
        ("ownops", "Centred", "1"),
    ]
    assert model.ir_version == 10  # overloads came with it
    assert {(i.domain, i.version) for f in model.functions for i in f.opset_import} == {
        ("", opset),
        ("ownops", 1),
    }
    session = onnxruntime.InferenceSession(result.onnx)
    with torch.no_grad():
        expected = net(IMAGE).numpy()
    np.testing.assert_allclose(session.run(None, {"x": IMAGE.numpy()})[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("opset", "functions"), [(14, 0), (15, 2)])
def test_left_alone_functions_are_written_where_the_ir_version_knows_them(
    tmp_path: Path, opset: int, functions: int
) -> None:
    result = export(backend(tmp_path, opset), Net(library=False).eval(), (IMAGE,), tmp_path / "net")
    model = onnx.load(result.onnx)
    assert kinds(model) == OWN
    assert len(model.functions) == functions
    assert functions or model.ir_version == 7


def test_nodes_alone_are_run_by_their_references_and_read_back_whole(tmp_path: Path) -> None:
    target = backend(tmp_path, 11)
    net = Net(library=True).eval()
    result = export(target, net, (IMAGE,), tmp_path / "net", own_ops="node")
    model = onnx.load(result.onnx)
    assert kinds(model) == [*OWN, ("ownops", "Sorted")]
    assert (model.ir_version, len(model.functions)) == (6, 0)
    with torch.no_grad():
        expected = net(IMAGE).numpy()
    found = load(result.onnx, target.custom).run({"x": IMAGE.numpy()})
    np.testing.assert_allclose(next(iter(found.values())), expected, rtol=1e-4, atol=1e-5)
    again = export(target, result.onnx, None, tmp_path / "again", own_ops="function")
    assert kinds(onnx.load(again.onnx)) == kinds(model)
    assert again.verification is not None


def test_lowered_only_other_ops_are_left(tmp_path: Path) -> None:
    target = backend(tmp_path, 11)
    result = export(target, Net(library=False).eval(), (IMAGE,), tmp_path / "net", own_ops="lower")
    assert {domain for domain, _ in kinds(onnx.load(result.onnx))} == {""}
    with pytest.raises(LegalizeError, match=r"ownops has no rule for ownops\.Sorted"):
        export(target, Net(library=True).eval(), (IMAGE,), tmp_path / "other", own_ops="lower")
    with pytest.raises(UsageError, match="own_ops='inline' is not known"):
        export(target, Net(library=False).eval(), (IMAGE,), tmp_path / "other", own_ops="inline")


def test_what_the_vendor_refuses_of_its_own_op_is_said_by_others(tmp_path: Path) -> None:
    limit = "constraints:\n  ownops.Centred:\n    - {expr: len(axes) == 1, else: one axis, source: here}"
    result = export(backend(tmp_path, 13, limit), Net(library=False).eval(), (IMAGE,), tmp_path / "net")
    assert kinds(onnx.load(result.onnx))[:4] == [*OWN[:2], ("ownops", "PartialMean"), ("", "Sub")]


DETECTIONS = """
name: "ssd"
layer { name: "map" type: "Input" top: "map" input_param { shape { dim: 1 dim: 2 dim: 3 dim: 5 } } }
layer { name: "image" type: "Input" top: "image" input_param { shape { dim: 1 dim: 3 dim: 33 dim: 47 } } }
layer { name: "loc" type: "Input" top: "loc" input_param { shape { dim: 1 dim: 60 } } }
layer { name: "conf" type: "Input" top: "conf" input_param { shape { dim: 1 dim: 45 } } }
layer { name: "norm" type: "Power" bottom: "map" top: "norm" power_param { scale: 2 shift: 1 } }
layer { name: "priors" type: "PriorBox" bottom: "norm" bottom: "image" top: "priors"
        prior_box_param { min_size: 9 clip: false } }
layer { name: "det" type: "DetectionOutput" bottom: "loc" bottom: "conf" bottom: "priors" top: "det"
        detection_output_param { num_classes: 3 code_type: CENTER_SIZE keep_top_k: 50
                                 confidence_threshold: 0.1 nms_param { nms_threshold: 0.45 top_k: 100 } } }
"""


def test_simplified_own_ops_stay_where_the_backend_declares_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = backend(tmp_path, 11)
    path = export(target, Net(library=False).eval(), (IMAGE,), tmp_path / "net", own_ops="function").onnx
    new = str(tmp_path / "new.onnx")
    assert main(["simplify", str(path), new, "--backend", str(tmp_path / "generated" / "ownops")]) == 0
    assert kinds(onnx.load(new)) == OWN
    assert main(["simplify", str(path), new]) == 0
    assert {domain for domain, _ in kinds(onnx.load(new))} == {""}
    assert "verified: " in capsys.readouterr().out
    assert main(["simplify", str(path), new, "--backend", "bvlc"]) == 2
    assert main(["simplify", str(path), new, "--backend", "rknn_onnx", "--opset", "9"]) == 2


def test_detection_layers_of_a_caffe_net_may_be_nodes_of_the_domain_caffe_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ssd.prototxt").write_text(DETECTIONS, encoding="utf-8")
    arguments: Any = ["transcode", str(tmp_path / "ssd.prototxt"), "--from", "ssd"]
    node = [*arguments, "--to", "onnx_opset11", "--own-ops", "node"]
    assert main([*node, "--out", str(tmp_path / "net")]) == 0
    assert "verified: " in capsys.readouterr().out
    model = onnx.load(tmp_path / "net.onnx")
    own = [("caffe", "PriorBox"), ("caffe", "DetectionOutput")]
    assert [kind for kind in kinds(model) if kind[0]] == own
    assert [value.name for value in model.graph.output] == ["det"]
    assert main([*arguments, "--to", "rknn_onnx", "--out", str(tmp_path / "other")]) == 1
    assert "rknn_onnx" in capsys.readouterr().err
    assert main([*arguments, "--to", "bvlc", "--own-ops", "node", "--out", str(tmp_path / "other")]) == 2
    assert "--own-ops is for ONNX" in capsys.readouterr().err
