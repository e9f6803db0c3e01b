"""A quantized model becomes the float model behind it on request only, and the report says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

pytest.importorskip("onnxruntime")

import onnxruntime

from caffeforge.generated import bvlc
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.cli import main
from caffeforge.runtime.errors import CaffeforgeError, LegalizeError, UsageError
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.onnx_front import read

X = np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype(np.float32)


class Quantizer:
    """Builds a model of float nodes, with rounding to integers between them where asked for."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.tensors: list[TensorProto] = []

    def constant(self, name: str, array: Any) -> str:
        self.tensors.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op, inputs, [output], name=f"{output}_node", **attributes))
        return output

    def pair(self, x: str, scale: float, zero: Any, moved: str = "", **attributes: Any) -> str:
        """Round `x` to integers and back; `moved` is an op on the integers."""
        given = [self.constant(f"{x}_scale", np.float32(scale)), self.constant(f"{x}_zero", zero)]
        integers = self.node("QuantizeLinear", [x, *given], f"{x}_q")
        if moved:
            integers = self.node(moved, [integers], f"{x}_m", **attributes)
        return self.node("DequantizeLinear", [integers, *given], f"{x}_dq")

    def weight(self, name: str, integers: NDArray, scale: NDArray, zero: Any, axis: int = 0) -> str:
        arrays = {"integers": integers, "scale": scale, "zero": zero}
        names = [self.constant(f"{name}_{part}", a) for part, a in arrays.items()]
        return self.node("DequantizeLinear", names, name, axis=axis)

    def model(self, output: str, opset: int = 13) -> ModelProto:
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)
        y = onnx.ValueInfoProto(name=output)
        graph = helper.make_graph(self.nodes, "net", [x], [y], self.tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def convolution() -> tuple[ModelProto, ModelProto]:
    """Return a quantized net, weights one scale a channel, and the float net written by hand."""
    generator = np.random.default_rng(1)
    w = generator.integers(-127, 128, (4, 3, 3, 3), dtype=np.int8)
    scale = generator.uniform(0.002, 0.004, 4).astype(np.float32)
    bias = generator.integers(-500, 500, 4, dtype=np.int32)
    whole, plain = Quantizer(), Quantizer()
    kernel = whole.weight("w", w, scale, np.zeros(4, np.int8))
    offset = whole.weight("b", bias, scale * np.float32(0.03), np.zeros(4, np.int32))
    y = whole.node("Conv", [whole.pair("x", 0.03, np.int8(3)), kernel, offset], "c")
    y = whole.pair(whole.node("Relu", [y], "r"), 0.02, np.uint8(0), "MaxPool", kernel_shape=[2, 2])
    whole.node("GlobalAveragePool", [y], "y")
    plain.constant("w", w.astype(np.float32) * scale.reshape(4, 1, 1, 1))
    plain.constant("b", bias.astype(np.float32) * (scale * np.float32(0.03)))
    y = plain.node("Relu", [plain.node("Conv", ["x", "w", "b"], "c")], "r")
    plain.node("GlobalAveragePool", [plain.node("MaxPool", [y], "m", kernel_shape=[2, 2])], "y")
    return whole.model("y"), plain.model("y")


def computed(model: ModelProto) -> NDArray:
    """Return what onnxruntime computes node by node; its fused kernels round activations of their own."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    found: NDArray = session.run(None, {"x": X})[0]
    return found


def test_the_float_model_is_exported_and_the_report_says_so(tmp_path: Path) -> None:
    quantized, plain = convolution()
    result = bvlc.export(quantized, X, tmp_path / "net", dequantize=True)
    found = bvlc.load(*result.files[:2]).run({"x": X})["y"]
    np.testing.assert_allclose(found, computed(plain), rtol=1e-4, atol=1e-5)
    assert np.abs(found - computed(quantized)).max() > 1e-5  # the test can tell the two apart
    # No closer than what was left out: activations were rounded to steps of 0.03 and 0.02.
    np.testing.assert_allclose(found, computed(quantized), atol=0.05)
    assert "2 roundings are left out and 2 constants are float: this is no longer" in result.report()


def test_without_the_option_caffe_refuses_and_the_hint_names_it(tmp_path: Path) -> None:
    with pytest.raises(LegalizeError, match="QuantizeLinear") as caught:
        bvlc.export(convolution()[0], X, tmp_path / "net")
    assert "dequantize=True, or --dequantize" in caught.value.hint
    assert not list(tmp_path.iterdir())


def test_the_command_takes_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(convolution()[0], tmp_path / "net.onnx")
    command = ["export", str(tmp_path / "net.onnx"), "--backend", "bvlc"]
    assert main(command) != 0
    assert "--dequantize" in capsys.readouterr().err
    assert main([*command, "--dequantize"]) == 0
    assert "no longer the quantized model" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("scale", "zero", "expected"),
    [
        (0.01, np.uint8(0), np.maximum(4 * X, 0)),
        (6 / 255, np.uint8(0), np.clip(4 * X, 0, 6)),
        (6 / 255, np.int8(-128), np.clip(4 * X, 0, 6)),
        (6 / 255, np.uint8(1), 4 * X),
        (0.01, np.int8(0), 4 * X),
    ],
)
@pytest.mark.parametrize("opset", [10, 13])
def test_an_activation_that_the_range_stands_for_is_put_back(
    scale: float, zero: Any, expected: NDArray, opset: int
) -> None:
    net = Quantizer()
    net.constant("four", np.float32(4))
    net.node("Neg", [net.pair(net.node("Mul", ["x", "four"], "m"), scale, zero)], "y")
    source = read(net.model("y", opset), X, dequantize=True)
    np.testing.assert_allclose(Executor(source.graph).run({"x": X})["y"], -expected, rtol=1e-6)
    np.testing.assert_allclose(source.reference({"x": X})["y"], -expected, rtol=1e-6)


def test_an_activation_is_put_back_once() -> None:
    net = Quantizer()
    y = net.node("MaxPool", [net.pair("x", 6 / 255, np.uint8(0))], "m", kernel_shape=[2, 2])
    net.node("Neg", [net.pair(y, 6 / 255, np.uint8(0))], "y")
    source = read(net.model("y"), X, dequantize=True)
    assert [node.op.op_type for node in source.graph.nodes] == ["Clip", "MaxPool", "Neg"]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_float_weights_that_the_model_rounds_itself_keep_the_rounded_values(axis: int) -> None:
    generator = np.random.default_rng(2)
    w, scale = generator.standard_normal((8, 8)).astype(np.float32), np.linspace(0.01, 0.03, 8)
    net = Quantizer()
    given = [net.constant("s", scale.astype(np.float32)), net.constant("z", np.full(8, 5, np.uint8))]
    integers = net.node("QuantizeLinear", [net.constant("w", w), *given], "wq", axis=axis)
    net.node("MatMul", ["x", net.node("DequantizeLinear", [integers, *given], "wd", axis=axis)], "y")
    model = net.model("y")
    source = read(model, X, dequantize=True)
    assert [node.op.op_type for node in source.graph.nodes] == ["MatMul"]
    found = Executor(source.graph).run({"x": X})["y"]
    np.testing.assert_allclose(found, computed(model), rtol=1e-4, atol=1e-5)


def test_weights_in_blocks_and_of_four_bits_are_read() -> None:
    generator = np.random.default_rng(3)
    integers = generator.integers(-8, 8, (8, 6))
    scale = generator.uniform(0.1, 0.2, (2, 6)).astype(np.float32)
    net = Quantizer()
    net.tensors.append(helper.make_tensor("wq", TensorProto.INT4, (8, 6), integers.reshape(-1)))
    net.constant("s", scale)
    net.node("MatMul", ["x", net.node("DequantizeLinear", ["wq", "s"], "w", axis=0, block_size=4)], "y")
    source = read(net.model("y", 21), X, dequantize=True)
    w = integers.astype(np.float32) * np.repeat(scale, 4, 0)
    np.testing.assert_allclose(Executor(source.graph).run({"x": X})["y"], X @ w, rtol=1e-4, atol=1e-5)


def test_integers_read_by_another_scale_are_refused() -> None:
    net = Quantizer()
    y = net.pair("x", 0.1, np.int8(0))
    net.constant("other", np.float32(0.2))
    net.nodes[-1].input[1] = "other"
    with pytest.raises(CaffeforgeError, match=r"number 1, DequantizeLinear-13 of .*by another scale"):
        read(net.model(y), X, dequantize=True)


def test_a_model_that_is_not_quantized_is_said_to_be_none(tmp_path: Path) -> None:
    plain = convolution()[1]
    notes = read(plain, X, dequantize=True).notes
    assert notes == ["nothing of the model is quantized in a way that dequantize takes back"]
    with pytest.raises(UsageError, match="dequantize reads ONNX models"):
        bvlc.export("torch:nothing", X, tmp_path / "net", dequantize=True)
