"""``coverage`` and ``explain`` of ONNX backends: what is said there is what exports do."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from caffeforge.generated import hub
from caffeforge.runtime.backends import find_any
from caffeforge.runtime.cli import main
from caffeforge.runtime.errors import LegalizeError
from caffeforge.runtime.onnx_out.backend import OnnxBackend
from caffeforge.runtime.onnx_out.export import convert
from tests.docs.backends import application


def _coverage(name: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["coverage", name, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", ["onnx_opset7", "onnx_opset11", "onnx_opset24", "onnx_opset28"])
def test_every_op_of_the_hub_stands_in_one_list(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = _coverage(name, capsys)
    lists = [*found["ops"].values(), found["shared_lowerings"], found["defined"], found["ops_without_rule"]]
    listed = [op for ops in lists for op in ops]
    assert sorted(listed) == sorted(hub.OPS)


KINDS = {  # of opset 9
    "direct": "Relu(float32[2, 3])",
    "lowered": "LayerNormalization(float32[2, 3], const(float32[3]))",
    "shared_lowerings": "Mish(float32[2, 3])",
    "defined": "Bernoulli(float32[2, 3])",
}


@pytest.mark.parametrize(("kind", "text"), KINDS.items())
def test_what_is_listed_can_be_written(kind: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = _coverage("onnx_opset9", capsys)
    backend = find_any("onnx_opset9")
    assert isinstance(backend, OnnxBackend)
    op = text.partition("(")[0]
    assert op in (found["ops"] | found)[kind]
    made, calls, _ = convert(application(text, hub.OPS), backend)
    assert ([call.op_type for call in calls] == [op]) == (kind == "direct")
    assert made.opset == 9


def test_what_has_no_rule_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Det" in _coverage("onnx_opset9", capsys)["ops_without_rule"]
    backend = find_any("onnx_opset9")
    assert isinstance(backend, OnnxBackend)
    with pytest.raises(LegalizeError, match="Det came with opset 11"):
        convert(application("Det(float32[3, 3])", hub.OPS), backend)


@pytest.mark.parametrize(
    ("backend", "name", "sentences"),
    [
        (
            "onnx_opset11",
            "softmax",
            [
                "opset 11 has Softmax-11",
                "when along == input.rank - 1",
                r"op Softmax  \[onnx/rules.yaml:\d+\]",
            ],
        ),
        ("onnx_opset9", "Det", ["has no rule", "opset 9 has no Det, it came with opset 11"]),
        ("onnx_opset11", "caffe.DetectionOutput", ["as a node of the domain caffe", "stands in its place"]),
        ("onnx_opset17", "caffe.Proposal", ["stands beside it as a local function"]),
        ("rknn_onnx", "Erf", ["the vendor does not list it", "lowering that all backends share"]),
        ("tensorrt8_onnx", "Relu", [r"data are of type float32, float16, int8  \[onnx-tensorrt"]),
        ("horizon_onnx", "Flatten", ["left to the CPU"]),
        (
            "horizon_onnx",
            "Conv",
            ["constraints on op Conv", r"needs len\(kernel_shape\) == 2", "windows up to 7"],
        ),
    ],
)
def test_an_op_is_explained_by_its_rules(
    backend: str, name: str, sentences: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", backend, name]) == 0
    out = capsys.readouterr().out
    for sentence in sentences:
        assert re.search(sentence, out), out


def test_an_unknown_op_is_refused_with_similar_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "onnx_opset11", "Convv"]) != 0
    assert "did you mean Conv" in capsys.readouterr().err


def test_text_has_the_form_of_dialects(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["coverage", "svp_onnx"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("svp_onnx writes ")
    assert re.search(r"^  as nodes \(\d+\):\n    Abs", out, re.MULTILINE)
    assert re.search(r"^  no rule \(\d+\):", out, re.MULTILINE)
    assert re.search(r"^  constrained \(\d+\):", out, re.MULTILINE)
