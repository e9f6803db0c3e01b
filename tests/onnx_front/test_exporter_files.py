"""Files that other exporters wrote of models of ours: what their frameworks computed is what we compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime")

from caffeforge.generated import bvlc
from caffeforge.runtime.errors import LegalizeError
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.onnx_front import OnnxSource, open_model, read
from caffeforge.runtime.onnx_front.original import Original
from tests.onnx_front.exporters.fixture import FILES, arrays
from tests.real_caffe.witness import Witness

NAMES = [f"{file.parent.name}/{file.stem}" for file in sorted(FILES.glob("*/*.onnx"))]

# In these opsets ONNX cannot say where PyTorch takes its places; the file is wrong, not its reading.
OTHER_PLACES = {"torch1/bilinear-9", "torch1/bilinear-10", "torch1/shrunk-10"}

NOT_IN_CAFFE = {
    "skl2onnx/network": "reshaped_result is int32, a Caffe blob holds float32",
    "skl2onnx/tree": r"bvlc has no rule for ai\.onnx\.ml\.TreeEnsembleClassifier",
}

# One opset of each model: the graphs are the same. All are exported, which compares them with the file; these
# run in a real Caffe too.
ONCE = list({name.split("-")[0]: name for name in NAMES}.values())
IN_CAFFE = ("convolutions", "recurrent", "attention", "decoder", "padded", "aligned", "mixed", "logistic")


def opened(name: str) -> tuple[Path, dict[str, Any], list[Any]]:
    """Return a file, its inputs by name, and what its framework computed."""
    file = FILES / f"{name}.onnx"
    inputs, outputs = arrays(file)
    graph = onnx.load(file).graph
    weights = {tensor.name for tensor in graph.initializer}
    names = [value.name for value in graph.input if value.name not in weights]
    return file, dict(zip(names, inputs, strict=True)), outputs


def check(found: dict[str, Any], source: OnnxSource, expected: list[Any]) -> None:
    for value, array in zip(source.graph.outputs, expected, strict=True):
        held = found[value.name].reshape(array.shape)
        np.testing.assert_allclose(held, array, rtol=1e-4, atol=2e-5 * max(1, np.abs(array).max()))


@pytest.mark.parametrize("name", NAMES)
def test_the_hub_computes_what_the_framework_did(name: str) -> None:
    file, inputs, expected = opened(name)
    source = read(file, inputs)
    found = Executor(source.graph).run(inputs)
    if name in OTHER_PLACES:
        assert "PyTorch takes other places than the file" in source.notes[0]
        expected = list(Original(open_model(file), []).run(inputs).values())
    check(found, source, expected)


@pytest.mark.parametrize("name", [name for name in ONCE if name not in NOT_IN_CAFFE])
def test_caffe_takes_the_file(name: str, tmp_path: Path) -> None:
    file, inputs, _ = opened(name)
    result = bvlc.export(file, inputs, tmp_path / "net")
    assert result.verification is not None and result.verification.passed


@pytest.mark.parametrize("name", NOT_IN_CAFFE)
def test_caffe_refuses_the_file_with_the_reason(name: str, tmp_path: Path) -> None:
    file, inputs, _ = opened(name)
    with pytest.raises(LegalizeError, match=NOT_IN_CAFFE[name]):
        bvlc.export(file, inputs, tmp_path / "net")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [name for name in ONCE if any(part in name for part in IN_CAFFE)])
def test_caffe_computes_what_the_framework_did(name: str, caffe: Witness, tmp_path: Path) -> None:
    file, inputs, expected = opened(name)
    bvlc.export(file, inputs, tmp_path / "net", verify=False)
    found = caffe.run(tmp_path / "net.prototxt", tmp_path / "net.caffemodel", inputs)
    check(found, read(file, inputs), expected)
