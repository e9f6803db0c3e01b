"""Parts of opsets that vendors take: what they refuse is refused with its source, or said by other ops."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
from torch import nn

from caffeforge.generated import horizon_onnx, rknn_onnx, svp_onnx
from caffeforge.generator.diagnostics import GenerationError
from caffeforge.generator.generate import generate
from caffeforge.runtime.backends import find_any, onnx_names
from caffeforge.runtime.cli import main
from caffeforge.runtime.errors import LegalizeError
from caffeforge.runtime.onnx_out.backend import OnnxBackend

IMAGE = torch.linspace(-1, 1, 3 * 16 * 16).reshape(1, 3, 16, 16)


def _model(kernel: int, act: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, kernel), act).eval()


def test_a_window_that_the_chip_refuses_is_refused_with_its_source(tmp_path: Path) -> None:
    horizon_onnx.export(_model(7, nn.ReLU()), (IMAGE,), tmp_path / "fits")
    with pytest.raises(LegalizeError, match=r"windows up to 7 \(source: X3 supported op list, Convolution\)"):
        horizon_onnx.export(_model(9, nn.ReLU()), (IMAGE,), tmp_path / "net")
    with pytest.raises(LegalizeError, match=r"windows up to 15.*dpico conv2d_checker"):
        svp_onnx.export(_model(16, nn.ReLU()), (IMAGE,), tmp_path / "net")


def test_an_op_that_the_vendor_does_not_list_is_said_by_those_that_it_does(tmp_path: Path) -> None:
    result = rknn_onnx.export(_model(3, nn.Hardswish()), (IMAGE,), tmp_path / "net")
    model = onnx.load(result.onnx)
    types = {node.op_type for node in model.graph.node}
    assert types == {"Conv", "HardSigmoid", "Mul"} <= (find_rknn().allowed or set())
    assert model.opset_import[0].version == 12


def find_rknn() -> OnnxBackend:
    backend = find_any("rknn_onnx")
    assert isinstance(backend, OnnxBackend)
    return backend


def test_an_op_without_such_ops_is_refused_with_the_vendors_list(tmp_path: Path) -> None:
    with pytest.raises(LegalizeError, match="rknn_onnx takes no Erf"):
        rknn_onnx.export(_model(3, nn.GELU()), (IMAGE,), tmp_path / "net")


def test_check_says_what_does_not_fit_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = rknn_onnx.export(_model(9, nn.ReLU()), (IMAGE,), tmp_path / "net").onnx
    before = sorted(tmp_path.iterdir())
    assert main(["check", str(path), "--backend", "rknn_onnx"]) == 0
    assert capsys.readouterr().out == "rknn_onnx takes it: 2 operations become 2\n"
    assert main(["check", str(path), "--backend", "horizon_onnx"]) == 1
    assert "windows up to 7" in capsys.readouterr().out
    assert main(["check", str(path), "--backend", "bvlc"]) == 0
    assert sorted(tmp_path.iterdir()) == before


def test_each_subset_names_its_source() -> None:
    subsets = [name for name in onnx_names() if not name.startswith("onnx_opset")]
    assert subsets == ["ascend_onnx", "horizon_onnx", "rknn_onnx", "svp_onnx"]
    for name in subsets:
        backend = find_any(name)
        assert isinstance(backend, OnnxBackend)
        assert backend.source
        assert backend.allowed or backend.constraints


MAPPING = "backend: vendorx\nextends: onnx_opset11\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("allowed: [Conv, Rellu]\n", "unknown op of opset 11 'Rellu'; did you mean Relu"),
        ("constraints:\n  Konv:\n    - {expr: group == 1, else: no groups}\n", "unknown op 'Konv'"),
        ("constraints:\n  Conv:\n    - {expr: grop == 1, else: no groups}\n", "unknown name 'grop'"),
        ("layers: {}\n", "unknown key 'layers'"),
    ],
)
def test_mistakes_have_a_place(tmp_path: Path, text: str, sentence: str) -> None:
    folder = tmp_path / "vendorx"
    folder.mkdir()
    (folder / "mapping.yaml").write_text(MAPPING + text, encoding="utf-8")
    with pytest.raises(GenerationError, match=sentence):
        generate(folder)
    (folder / "mapping.yaml").write_text(MAPPING, encoding="utf-8")
    assert generate(folder).name == "vendorx"
