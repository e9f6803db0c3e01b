"""Parts of opsets that vendors take: what they refuse is refused with its source, or said by other ops."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
from torch import nn

from caffeforge.generated import horizon_onnx, hub, onnx_opset13, rknn_onnx, svp_onnx
from caffeforge.generator.diagnostics import GenerationError
from caffeforge.generator.generate import generate
from caffeforge.runtime.backends import find_any, onnx_names
from caffeforge.runtime.cli import main
from caffeforge.runtime.errors import LegalizeError
from caffeforge.runtime.onnx_out.backend import OnnxBackend
from caffeforge.runtime.onnx_out.export import convert
from tests.docs.backends import application

IMAGE = torch.linspace(-1, 1, 3 * 16 * 16).reshape(1, 3, 16, 16)


def _model(kernel: int, act: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, kernel), act).eval()


def test_a_window_that_the_chip_refuses_is_refused_with_its_source(tmp_path: Path) -> None:
    horizon_onnx.export(_model(7, nn.ReLU()), (IMAGE,), tmp_path / "fits")
    with pytest.raises(LegalizeError, match=r"windows up to 7 \(source: X3 supported op list, Conv\)"):
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
    known = "ascend_onnx horizon_onnx openvino_onnx rknn_onnx svp_onnx tensorrt8_onnx"
    assert sorted(subsets) == known.split()
    for name in subsets:
        backend = find_any(name)
        assert isinstance(backend, OnnxBackend)
        assert backend.source
        assert backend.allowed or backend.constraints


CONV = "Conv(float32[1, 3, 16, 16], const(float32[4, 3, 3, 3]), kernel_shape=(3, 3), dilations=({0}, {0}))"
TAKEN = [  # what a subset takes, then the same a little further, and what is said of it
    (
        "horizon_onnx",
        "ArgMax(float32[1, 64, 3, 3], axis=1)",
        "ArgMax(float32[1, 65, 3, 3], axis=1)",
        "up to 64 channels",
    ),
    (
        "horizon_onnx",
        "Mul(float32[1, 8, 3, 3], float32[1, 8, 1, 1])",
        "Mul(float32[1, 8, 3, 3], float32[1, 8, 1, 3])",
        "one number for each channel",
    ),
    (
        "horizon_onnx",
        "Sigmoid(float32[1, 32, 16, 16])",
        "Sigmoid(float32[1, 33, 16, 16])",
        "up to 8192 elements, its sizes rounded up",
    ),
    ("horizon_onnx", CONV.format(2), CONV.format(3), "holes are powers of 2"),
    ("horizon_onnx", "Relu(float32[200, 3])", "BatchNormalization(float32[200, 3, 4, 4], const(float32[3]), "
     "const(float32[3]), const(float32[3]), const(float32[3]))", "batches up to 128"),
    ("horizon_onnx", "Abs(float32[3])", "Celu(float32[3])", ""),
    ("svp_onnx", "Softmax(float32[1, 65536], axis=1)", "Softmax(float32[1, 65537], axis=1)", "65536 chan"),
    ("svp_onnx", "Pow(float32[2, 3], 0.5)", "Pow(float32[2, 3], 0.3)", "whole number, 0.5 or -0.5"),
    (
        "svp_onnx",
        "Gemm(float32[1, 8], const(float32[8, 4]))",
        "Gemm(float32[2, 8], const(float32[8, 4]))",
        "one row is multiplied",
    ),
    ("svp_onnx", "Concat(float32[1, 3], float32[1, 3], axis=1)",
     "Concat(float32[1, 3], const(float32[1, 3]), axis=1)", "constants are not joined"),
    ("svp_onnx", "Tanh(float32[1, 1, 1, 4096])", "Tanh(float32[1, 1, 1, 4097])", "up to 4096 wide"),
    ("tensorrt8_onnx", "Neg(int32[2, 3])", "Neg(int8[2, 3])", "X of Neg is int8, it takes float32, float16"),
    ("tensorrt8_onnx", "Add(int64[2, 3], int64[3])", "Add(int16[2, 3], int16[3])", "A of Add is int16"),
    ("tensorrt8_onnx", "MaxPool(float32[1, 2, 8, 8], kernel_shape=(2, 2))",
     "MaxPool(float32[1, 2, 8], kernel_shape=(2,))", "two or three dimensions"),
    ("tensorrt8_onnx", "Einsum(float32[2, 3], float32[3, 4], equation='ij,jk->ik')",
     "BitShift(uint8[2], uint8[2], direction='LEFT')", "takes no BitShift"),
    ("openvino_onnx", "Gelu(float32[2, 3])", "Det(float32[3, 3])", "takes no Det"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "taken", "refused", "sentence"), TAKEN)
def test_limits_are_those_of_the_source(name: str, taken: str, refused: str, sentence: str) -> None:
    backend = find_any(name)
    assert isinstance(backend, OnnxBackend)
    convert(application(taken, hub.OPS), backend)
    if sentence:
        with pytest.raises(LegalizeError, match=sentence):
            convert(application(refused, hub.OPS), backend)
    else:  # said by other ops
        convert(application(refused, hub.OPS), backend)


def test_what_the_tools_leave_to_the_cpu_is_noted(tmp_path: Path) -> None:
    result = horizon_onnx.export(_model(3, nn.Flatten()), (IMAGE,), tmp_path / "net")
    assert any("Flatten is left to the CPU" in note for note in result.notes)


def test_brief_gives_a_line_for_each_thing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 9), nn.Hardswish(), nn.Conv2d(4, 4, 8)).eval()
    path = onnx_opset13.export(net, (torch.zeros(1, 3, 99, 99),), tmp_path / "net").onnx
    assert main(["check", str(path), "--backend", "horizon_onnx", "--brief"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["0", "2"]
    assert all("source: X3 supported op list, Conv" in line for line in lines)


MAPPING = "backend: vendorx\nextends: onnx_opset11\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("allowed: [Conv, Rellu]\n", "unknown op of opset 11 'Rellu'; did you mean Relu"),
        ("constraints:\n  Konv:\n    - {expr: group == 1, else: no groups}\n", "unknown op 'Konv'"),
        ("constraints:\n  Conv:\n    - {expr: grop == 1, else: no groups}\n", "unknown name 'grop'"),
        ("layers: {}\n", "unknown key 'layers'"),
        ("allowed: {Relu: [float31]}\n", "unknown element type 'float31'"),
        ("host: [Rellu]\n", "unknown op of opset 11 'Rellu'"),
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
