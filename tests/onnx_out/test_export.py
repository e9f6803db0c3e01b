"""Exporting a small network to every opset: the checker passes, onnxruntime computes what PyTorch does."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.reference
import onnxruntime
import pytest
import torch
from torch import nn

from caffeforge.generated import onnx_opset7, onnx_opset9, onnx_opset11, onnx_opset17
from caffeforge.runtime.backends import find, find_any, onnx_names
from caffeforge.runtime.errors import LegalizeError, UsageError
from caffeforge.runtime.onnx_out.backend import OnnxBackend

OPSETS = range(7, 29)


class Net(nn.Module):
    """A block of each kind that opsets say in different ways."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.groups = nn.GroupNorm(2, 8)
        self.head = nn.Linear(8 * 4 * 4, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = nn.functional.hardswish(self.norm(self.conv(image)))
        x = nn.functional.silu(self.groups(x))
        x = nn.functional.pad(x, (1, 1, 1, 1))
        x = nn.functional.max_pool2d(x.clamp(-1, 2), 2) + x.mean((2, 3), keepdim=True)
        x = nn.functional.interpolate(x[:, :, 1:5, 1:5], scale_factor=2)
        x = nn.functional.avg_pool2d(x, 2).softmax(1)
        logits: torch.Tensor = self.head(x.flatten(1))
        return logits


@pytest.fixture(scope="module")
def net() -> nn.Module:
    torch.manual_seed(0)
    return Net().eval()


IMAGE = torch.linspace(-2, 2, 3 * 8 * 8).reshape(1, 3, 8, 8)


def _run(path: Path, **inputs: Any) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, inputs))


@pytest.mark.parametrize("opset", OPSETS)
def test_each_opset_computes_what_pytorch_does(net: nn.Module, opset: int, tmp_path: Path) -> None:
    backend = importlib.import_module(f"caffeforge.generated.onnx_opset{opset}")
    result = backend.export(net, (IMAGE,), tmp_path / "net")
    model = onnx.load(result.onnx)
    onnx.checker.check_model(model, full_check=True)
    imports = [onnx.helper.make_opsetid("", opset)]
    assert model.opset_import == imports
    assert model.ir_version == onnx.helper.find_min_ir_version_for(imports)
    if opset <= 24:
        (found,) = _run(result.onnx, image=IMAGE.numpy())
    else:  # of newer opsets onnxruntime has part of the kernels
        (found,) = onnx.reference.ReferenceEvaluator(model).run(None, {"image": IMAGE.numpy()})
    with torch.no_grad():
        np.testing.assert_allclose(found, net(IMAGE).numpy(), rtol=1e-4, atol=1e-5)


def test_ops_that_an_opset_lacks_are_said_by_others(net: nn.Module, tmp_path: Path) -> None:
    types = {}
    for name, backend in (("old", onnx_opset9), ("new", onnx_opset17)):
        model = onnx.load(backend.export(net, (IMAGE,), tmp_path / name).onnx)
        types[name] = {node.op_type for node in model.graph.node}
    assert types["new"] - types["old"] >= {"HardSwish", "Resize"}
    assert types["old"] - types["new"] >= {"HardSigmoid", "Upsample"}


def test_names_come_from_modules_or_are_c_identifiers(net: nn.Module, tmp_path: Path) -> None:
    plain = onnx.load(onnx_opset11.export(net, (IMAGE,), tmp_path / "net", verify=False).onnx)
    assert {"conv", "norm", "head"} <= {node.name for node in plain.graph.node}
    assert {"conv.weight", "head.bias"} <= {tensor.name for tensor in plain.graph.initializer}
    named = onnx.load(onnx_opset11.export(net, (IMAGE,), tmp_path / "c", names="c").onnx)
    used = [name for node in named.graph.node for name in (node.name, *node.input, *node.output) if name]
    assert all(name.isidentifier() and name.isascii() for name in used)
    assert "conv_weight" in used
    with pytest.raises(UsageError, match="names='x' is no style"):
        onnx_opset11.export(net, (IMAGE,), tmp_path / "x", names="x", verify=False)


def test_weights_may_lie_beside_the_model(net: nn.Module, tmp_path: Path) -> None:
    inside = onnx_opset11.export(net, (IMAGE,), tmp_path / "in")
    result = onnx_opset11.export(net, (IMAGE,), tmp_path / "out", external_data=True)
    assert [path.name for path in result.files] == ["out.onnx", "out.map.json", "out.onnx.data"]
    assert (
        _run(result.onnx, image=IMAGE.numpy())[0].tobytes()
        == _run(inside.onnx, image=IMAGE.numpy())[0].tobytes()
    )
    onnx.checker.check_model(str(result.onnx), full_check=True)
    outside = [
        t for t in onnx.load(result.onnx, load_external_data=False).graph.initializer if t.external_data
    ]
    assert [tensor.name for tensor in outside] == ["head.weight"]


def test_the_same_model_gives_the_same_bytes(net: nn.Module, tmp_path: Path) -> None:
    files = [
        onnx_opset11.export(net, (IMAGE,), tmp_path / stem, metadata={"b": "1", "a": "2"}).onnx
        for stem in ("one", "two")
    ]
    assert files[0].read_bytes() == files[1].read_bytes()
    model = onnx.load(files[0])
    assert [(entry.key, entry.value) for entry in model.metadata_props] == [("b", "1"), ("a", "2")]


class Chosen(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x > 0, x, x.exp())


def test_a_refusal_names_the_op_the_line_and_the_lowest_opset(tmp_path: Path) -> None:
    with pytest.raises(LegalizeError) as caught:
        onnx_opset7.export(Chosen().eval(), (torch.randn(2, 3),), tmp_path / "net")
    text = str(caught.value)
    assert "Where came with opset 9" in text
    assert "test_export.py:" in text
    assert "opset 9 can express it: onnx_opset9" in text
    assert not list(tmp_path.iterdir())
    onnx_opset9.export(Chosen().eval(), (torch.randn(2, 3),), tmp_path / "net")


def test_a_file_that_was_written_is_read_and_run(net: nn.Module, tmp_path: Path) -> None:
    result = onnx_opset11.export(net, (IMAGE,), tmp_path / "net", output_names=["logits"])
    model = onnx_opset11.load(result.onnx)
    found = model.run({"image": IMAGE.numpy()}, values=["logits", "conv"])
    assert {name: array.shape for name, array in found.items()} == {"logits": (1, 10), "conv": (1, 8, 8, 8)}
    with pytest.raises(UsageError, match="the model has no value nothing"):
        model.run({"image": IMAGE.numpy()}, values=["nothing"])


def test_backends_of_onnx_are_found_by_name() -> None:
    assert [f"onnx_opset{opset}" for opset in OPSETS] == [
        name for name in onnx_names() if name.startswith("onnx_opset")
    ]
    assert isinstance(find_any("onnx_opset11"), OnnxBackend)
    with pytest.raises(UsageError, match="onnx_opset11 writes ONNX files"):
        find("onnx_opset11")


class Shared(nn.Module):
    """Two inputs with one open size, and a resize that leaves it open."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return nn.functional.interpolate(x + y.unsqueeze(1), scale_factor=2.0, mode="nearest")


@pytest.mark.parametrize("opset", [7, 9, 10, 11, 21])
def test_open_sizes_stay_open_where_planes_are_resized(opset: int, tmp_path: Path) -> None:
    export: Any = importlib.import_module(f"caffeforge.generated.onnx_opset{opset}").export
    example = (torch.randn(2, 3, 4, 4), torch.randn(2, 4, 4))
    open_sizes = {"x": {0: "N"}, "y": {0: "N"}}
    result = export(Shared().eval(), example, tmp_path / "net", dynamic_shapes=open_sizes)
    session = onnxruntime.InferenceSession(result.onnx)
    assert session.get_outputs()[0].shape == ["N", 3, 8, 8]
    x, y = torch.randn(5, 3, 4, 4), torch.randn(5, 4, 4)
    found = session.run(None, {"x": x.numpy(), "y": y.numpy()})[0]
    np.testing.assert_allclose(found, Shared()(x, y).numpy(), rtol=1e-5, atol=1e-6)
