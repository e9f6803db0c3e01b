"""Files of other exporters, with what each writes oddly: read, run, and written for Caffe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

pytest.importorskip("onnxruntime")

from caffeforge.generated import bvlc
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import LegalizeError
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.onnx_front import open_model, read
from caffeforge.runtime.onnx_front.original import Original
from tests.onnx_front.exporters.by_hand import EXPORTERS, IMAGE, Writer


def example(model: onnx.ModelProto) -> dict[str, NDArray]:
    """Return random inputs; sizes that are open are 1."""
    constants = {tensor.name for tensor in model.graph.initializer}
    generator = np.random.default_rng(5)
    return {
        value.name: generator.standard_normal(
            [max(dim.dim_value, 1) for dim in value.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for value in model.graph.input
        if value.name not in constants
    }


@pytest.mark.parametrize("name", EXPORTERS)
def test_the_hub_computes_what_onnxruntime_computes_of_the_file(name: str, tmp_path: Path) -> None:
    onnx.save(EXPORTERS[name](), tmp_path / "net.onnx")
    file = open_model(tmp_path / "net.onnx")
    inputs = example(file.proto)
    source = read(tmp_path / "net.onnx", inputs)
    assert source.notes == []
    kinds = {node.op.op_type for node in source.graph.nodes}
    assert not kinds & {"Shape", "If", "Constant", "Concat", "Floor"}
    (expected,) = Original(file, []).run(inputs).values()
    found = Executor(source.graph).run(inputs)["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", EXPORTERS)
def test_caffe_takes_the_file(name: str, tmp_path: Path) -> None:
    model = EXPORTERS[name]()
    inputs = example(model)
    result = bvlc.export(model, inputs, tmp_path / "net")
    assert result.verification is not None and result.verification.passed


def old(op: str, opset: int, constants: dict[str, NDArray], **attributes: Any) -> onnx.ModelProto:
    """Return a model of one node as Caffe2's exporter wrote it, except that weights are no inputs."""
    writer = Writer("onnx-caffe2", opset)
    names = [writer.initializer(name, array) for name, array in constants.items()]
    writer.node(op, ["x", *names], "y", **attributes)
    return writer.model("y", ir_version=3)


X = np.random.default_rng(6).standard_normal(IMAGE).astype(np.float32)
C = np.random.default_rng(7).uniform(0.5, 1.5, 3).astype(np.float32)
COLUMN = C.reshape(1, 3, 1, 1)

CAFFE2 = {
    "Add of a bias along axis 1": (old("Add", 6, {"b": C}, axis=1, broadcast=1), X + COLUMN),
    "Mul with consumed_inputs": (
        old("Mul", 1, {"b": C}, axis=1, broadcast=1, consumed_inputs=[0, 0]),
        X * COLUMN,
    ),
    "Relu with consumed_inputs": (old("Relu", 1, {}, consumed_inputs=[1]), np.maximum(X, 0)),
    "BatchNormalization with is_test": (
        old(
            "BatchNormalization",
            1,
            {"s": C, "b": C + 1, "m": C - 1, "v": C + 2},
            is_test=1,
            epsilon=1e-5,
            consumed_inputs=[0, 0, 0, 1, 1],
        ),
        (X - (COLUMN - 1)) / np.sqrt(COLUMN + 2 + 1e-5) * COLUMN + COLUMN + 1,
    ),
    "Dropout with is_test": (old("Dropout", 1, {}, is_test=1, ratio=0.5, consumed_inputs=[1]), X),
    "Reshape by an attribute": (old("Reshape", 1, {}, shape=[0, -1]), X.reshape(1, -1)),
    "PRelu of a slope a channel": (old("PRelu", 6, {"s": C}), np.where(X < 0, X * COLUMN, X)),
}


@pytest.mark.parametrize("name", CAFFE2)
def test_files_of_the_age_of_caffe2_are_read(name: str) -> None:
    """The witness is NumPy: onnxruntime begins at opset 7."""
    model, expected = CAFFE2[name]
    source = read(model, {"x": X})
    assert source.notes == []
    np.testing.assert_allclose(Executor(source.graph).run({"x": X})["y"], expected, rtol=1e-5, atol=1e-6)


def test_batch_norm_a_position_of_old_mxnet_is_kept_with_its_reason() -> None:
    writer = Writer("", 7)
    parts = [writer.weight(part, 3, 8, 8, low=0.5) for part in ("gamma", "beta", "mean", "var")]
    writer.node("BatchNormalization", ["x", *parts], "y", spatial=0)
    notes = read(writer.model("y"), {"x": X}).notes
    assert notes == ["y is kept as it is: spatial=0 normalizes each position by itself"]


def test_ops_of_classical_learning_are_refused_by_name(tmp_path: Path) -> None:
    writer = Writer("skl2onnx", 15)
    whole = {"imputed_value_floats": [0.5], "replaced_value_float": 0.0}
    full = writer.node("Imputer", ["x"], "full", domain="ai.onnx.ml", **whole)
    writer.node("Relu", [full], "y")
    model = writer.model("y", (4, 6), domains=["ai.onnx.ml"])
    model.graph.value_info.append(helper.make_tensor_value_info("full", TensorProto.FLOAT, (4, 6)))
    x = np.random.default_rng(8).standard_normal((4, 6)).astype(np.float32)
    x[0, 0] = 0
    found = Executor(read(model, x).graph).run({"x": x})["y"]
    np.testing.assert_allclose(found, np.maximum(np.where(x == 0, 0.5, x), 0), rtol=1e-5)
    with pytest.raises(LegalizeError, match=r"ai\.onnx\.ml\.Imputer"):
        bvlc.export(model, x, tmp_path / "net")
