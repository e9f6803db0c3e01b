"""Nodes of old opsets: the hub computes what onnxruntime computes of the file itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

pytest.importorskip("onnxruntime")

from caffeforge.runtime.executor import Executor
from caffeforge.runtime.onnx_front import Importer, open_model
from caffeforge.runtime.onnx_front.kept import Kept
from caffeforge.runtime.onnx_front.original import Original

X = (2, 3, 6, 8)


def model(
    op: str,
    opset: int,
    shape: tuple[int, ...],
    constants: list[Any] | None = None,
    outputs: int = 1,
    **attributes: Any,
) -> onnx.ModelProto:
    """Return a model of one node: its first input is x, further ones are constants."""
    names = [f"c{index}" for index in range(len(constants or ()))]
    node = helper.make_node(op, ["x", *names], [f"y{i}" for i in range(outputs)], name="node", **attributes)
    tensors = [
        onnx.numpy_helper.from_array(np.asarray(array), name)
        for name, array in zip(names, constants or (), strict=True)
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    results = [onnx.ValueInfoProto(name=name) for name in node.output]
    graph = helper.make_graph([node], "net", [x], results, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def f(*shape: int, seed: int = 1) -> Any:
    """Return a constant of random numbers."""
    return np.random.default_rng(seed).uniform(0.1, 1.0, shape).astype(np.float32)


CASES = {
    "softmax over all axes from the first": model("Softmax", 11, X, axis=1),
    "softmax over the last two": model("Softmax", 9, X, axis=-2),
    "log softmax of a matrix": model("LogSoftmax", 7, (4, 5)),
    "hardmax over three axes": model("Hardmax", 12, X, axis=1),
    "clip by attributes": model("Clip", 6, X, min=-0.5, max=0.25),
    "samples by the modes of images": model("GridSample", 16, (1, 2, 4, 5), [f(1, 3, 3, 2)]),
    "cubic samples": model("GridSample", 16, (1, 2, 4, 5), [f(1, 3, 3, 2)], mode="bicubic", align_corners=1),
    "clip without bounds": model("Clip", 7, X),
    "pad by attributes": model("Pad", 9, X, pads=[0, 0, 1, 2, 0, 0, 3, 0], value=0.5),
    "pad by reflection": model("Pad", 10, X, pads=[0, 0, 1, 2, 0, 0, 3, 0], mode="reflect"),
    "slice by attributes": model("Slice", 9, X, starts=[1, -3], ends=[3, 1000], axes=[1, 3]),
    "squeeze by attributes": model("Squeeze", 11, (2, 1, 3, 1), axes=[1, -1]),
    "unsqueeze by attributes": model("Unsqueeze", 11, (2, 3), axes=[0, 3]),
    "sum over attributes": model("ReduceSum", 11, X, axes=[1, 3], keepdims=0),
    "mean over all": model("ReduceMean", 11, X),
    "l2 over attributes": model("ReduceL2", 13, X, axes=[-1]),
    "split by attributes": model("Split", 11, X, outputs=2, axis=3, split=[3, 5]),
    "split into equal parts": model("Split", 9, X, outputs=3, axis=1),
    "largest by attribute": model("TopK", 9, X, outputs=2, k=3, axis=3),
    "largest by operand": model("TopK", 10, X, [np.array([2])], outputs=2),
    "smallest": model("TopK", 11, X, [np.array([2])], outputs=2, largest=0),
    "dropout": model("Dropout", 7, X, ratio=0.3),
    "upsample by attribute": model("Upsample", 7, X, scales=[1.0, 1.0, 2.0, 3.0]),
    "upsample by operand": model("Upsample", 9, X, [np.array([1, 1, 2, 2], np.float32)], mode="linear"),
    "resize of opset 10 growing": model("Resize", 10, X, [np.array([1, 1, 1.5, 2], np.float32)]),
    "resize of opset 10 shrinking": model("Resize", 10, X, [np.array([1, 1, 0.4, 0.5], np.float32)]),
    "resize of opset 10 linear": model("Resize", 10, X, [np.array([1, 1, 2, 2], np.float32)], mode="linear"),
    "resize of opset 11 by sizes": model(
        "Resize",
        11,
        X,
        [np.array([], np.float32), np.array([], np.float32), np.array([2, 3, 9, 5])],
        mode="linear",
        coordinate_transformation_mode="pytorch_half_pixel",
    ),
    "resize of opset 11 for tensorflow": model(
        "Resize",
        11,
        X,
        [np.array([], np.float32), np.array([1, 1, 2, 2], np.float32)],
        coordinate_transformation_mode="tf_half_pixel_for_nn",
    ),
    "batch norm of opset 7": model("BatchNormalization", 7, X, [f(3), f(3), f(3), f(3)], epsilon=1e-3),
    "batch norm of opset 9": model("BatchNormalization", 9, X, [f(3), f(3), f(3), f(3)]),
    "batch norm of opset 14": model("BatchNormalization", 14, X, [f(3), f(3), f(3), f(3)]),
    "conv same upper": model("Conv", 7, X, [f(4, 3, 3, 2)], auto_pad="SAME_UPPER", strides=[2, 1]),
    "conv same lower": model("Conv", 11, X, [f(4, 3, 2, 3)], auto_pad="SAME_LOWER", strides=[1, 2]),
    "conv valid": model("Conv", 11, X, [f(4, 3, 3, 3)], auto_pad="VALID"),
    "max pool same": model("MaxPool", 7, X, kernel_shape=[3, 3], strides=[2, 3], auto_pad="SAME_LOWER"),
    "max pool ceil": model("MaxPool", 10, X, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    "max pool ceil and pads": model(
        "MaxPool", 12, X, kernel_shape=[3, 2], strides=[2, 3], pads=[1, 0, 1, 0], ceil_mode=1
    ),
    "average pool ceil": model("AveragePool", 10, X, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    "average pool counts padding": model(
        "AveragePool", 7, X, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1
    ),
    "average pool same": model(
        "AveragePool", 7, X, kernel_shape=[2, 3], strides=[2, 2], auto_pad="SAME_UPPER"
    ),
    "transposed conv to a size": model(
        "ConvTranspose", 11, X, [f(3, 2, 3, 3)], strides=[2, 2], output_shape=[12, 15]
    ),
    "transposed conv same": model(
        "ConvTranspose", 11, X, [f(3, 2, 3, 3)], strides=[2, 2], auto_pad="SAME_UPPER"
    ),
    "gemm": model("Gemm", 7, (4, 5), [f(5, 3), f(3)]),
    "cumulative sum": model("CumSum", 11, X, [np.array(1)]),
    "scatter": model("Scatter", 9, (3, 4), [np.array([[1, 0, 2, 0]]), f(1, 4)], axis=0),
    "group norm of opset 18": model("GroupNormalization", 18, (2, 4, 3), [f(2), f(2, seed=2)], num_groups=2),
    "one-hot index of the greatest": model("ArgMax", 7, X, axis=1, keepdims=0),
    "slope a channel": model("PRelu", 9, X, [f(3, 1, 1)]),
    "transposed by default": model("Transpose", 7, X),
    "depth to space": model("DepthToSpace", 7, (1, 8, 2, 3), blocksize=2),
    "instance norm": model("InstanceNormalization", 7, X, [f(3), f(3)]),
    "lp pool": model("LpPool", 7, X, kernel_shape=[2, 2], strides=[2, 2], p=2),
}
KEPT = {"resize of opset 11 for tensorflow"}


@pytest.mark.parametrize("name", CASES)
def test_old_version_computes_what_onnxruntime_computes_of_the_file(name: str) -> None:
    file = open_model(CASES[name])
    graph = Importer(file).run()
    x = np.random.default_rng(0).standard_normal(graph.inputs[0].shape[:]).astype(np.float32)
    expected, found = Original(file, []).run({"x": x}), Executor(graph).run({"x": x})
    assert any(isinstance(node.op, Kept) for node in graph.nodes) == (name in KEPT)
    for output, array in expected.items():
        np.testing.assert_allclose(found[output], array, rtol=1e-4, atol=1e-5)
        assert found[output].dtype == array.dtype
