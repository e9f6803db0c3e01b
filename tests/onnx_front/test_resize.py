"""Resize by scales: sizes and what ONNX, onnxruntime and PyTorch make of sizes that are not whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

pytest.importorskip("onnxruntime")

import onnxruntime

from caffeforge.generated import bvlc
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.onnx_front import read


def model(size: int, scale: float, op: str = "Resize", producer: str = "", **fields: str) -> onnx.ModelProto:
    """Return a model that resizes the third of four axes."""
    names = ["x", "", "s"] if op == "Resize" else ["x", "s"]
    opset = 13 if op == "Resize" else 9
    node = helper.make_node(op, names, ["y"], **fields)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 2, size, 4))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    scales = helper.make_tensor("s", TensorProto.FLOAT, [4], [1, 1, scale, 1])
    graph = helper.make_graph([node], "net", [x], [y], [scales])
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name=producer)


def random(size: int) -> NDArray:
    return np.random.default_rng(0).standard_normal((1, 2, size, 4)).astype(np.float32)


def of_onnxruntime(made: onnx.ModelProto, x: NDArray) -> NDArray:
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    found: NDArray = session.run(None, {"x": x})[0]
    return found


CASES = [
    (5, 1.8, "half_pixel", "5 times 1.8 is 9, as onnxruntime rounds"),
    (5, 1.8, "align_corners", "5 times 1.8 is 9, as onnxruntime rounds"),
    (5, 1.5, "align_corners", "5 times 1.5 is rounded to 7 before"),
    (10, 0.75, "align_corners", "10 times 0.75 is rounded to 7 before"),
    (5, 0.3, "pytorch_half_pixel", "5 times 0.3 is rounded to 1 before"),
    (5, 1.5, "half_pixel", ""),
    (4, 1.5, "align_corners", ""),
]


@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize(("size", "scale", "places", "note"), CASES)
def test_files_of_pytorch_are_read_as_onnxruntime_runs_them(
    size: int, scale: float, places: str, note: str, mode: str, tmp_path: Path
) -> None:
    made = model(size, scale, producer="pytorch", mode=mode, coordinate_transformation_mode=places)
    x = random(size)
    source = read(made, x)
    found = Executor(source.graph).run({"x": x})["y"]
    np.testing.assert_allclose(found, of_onnxruntime(made, x), rtol=1e-4, atol=1e-5)
    assert len(source.notes) == bool(note)
    assert all(text.startswith(f"y: {note}") for text in source.notes)
    result = bvlc.export(made, x, tmp_path / "net")
    assert result.verification is not None and result.verification.passed


@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize(("size", "scale", "places", "note"), [case for case in CASES if "before" in case[3]])
def test_files_of_others_are_read_as_onnx_says(
    size: int, scale: float, places: str, note: str, mode: str, tmp_path: Path
) -> None:
    made = model(size, scale, mode=mode, coordinate_transformation_mode=places)
    x = random(size)
    source = read(made, x)
    found = Executor(source.graph).run({"x": x})["y"]
    evaluator: Any = ReferenceEvaluator(made)
    (expected,) = evaluator.run(["y"], {"x": x})
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    (reference,) = source.reference({"x": x}).values()
    np.testing.assert_allclose(found, reference, rtol=1e-4, atol=1e-5)
    assert not np.allclose(found, of_onnxruntime(made, x), rtol=1e-4, atol=1e-5)
    assert source.notes[0].startswith(f"y: {note.replace('before', 'after')} places are computed")
    result = bvlc.export(made, x, tmp_path / "net")
    assert result.verification is not None and result.verification.passed


def test_scales_of_upsample_round_alike() -> None:
    made = model(5, 1.8, "Upsample", mode="linear")
    x = random(5)
    source = read(made, x)
    assert source.graph.outputs[0].dims == (1, 2, 9, 4)
    found = Executor(source.graph).run({"x": x})["y"]
    np.testing.assert_allclose(found, of_onnxruntime(made, x), rtol=1e-4, atol=1e-5)


def test_too_few_scales_are_refused() -> None:
    made = model(5, 2.0, "Upsample", mode="nearest")
    made.graph.initializer[0].CopyFrom(helper.make_tensor("s", TensorProto.FLOAT, [2], [2, 2]))
    with pytest.raises(FrontEndError, match=r"node y .*Upsample-9.* it gives 2 scales for 4 axes"):
        read(made, random(5))
