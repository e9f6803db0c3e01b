"""Small models as exporters of some age write them: the same oddities, by hand, with random weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

IMAGE: Final = (1, 3, 8, 8)


class Writer:
    """Collects nodes and weights.

    Args:
        producer: what the file says wrote it.
        opset: of ONNX's own domain.
    """

    def __init__(self, producer: str, opset: int) -> None:
        self.producer, self.opset = producer, opset
        self.nodes: list[NodeProto] = []
        self.weights: list[TensorProto] = []
        self._generator = np.random.default_rng(0)

    def weight(self, name: str, *shape: int, low: float = -0.5) -> str:
        """Add random numbers from `low` to one above it."""
        array = self._generator.uniform(low, low + 1, shape).astype(np.float32)
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def initializer(self, name: str, array: Any) -> str:
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def constant(self, name: str, array: Any) -> str:
        """Add a Constant node."""
        return self.node("Constant", [], name, value=numpy_helper.from_array(np.asarray(array)))

    def node(self, op: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def model(
        self,
        output: str,
        shape: Sequence[Any] = IMAGE,
        *,
        ir_version: int = 8,
        repeated: bool = False,
        name: str = "x",
        further: Sequence[str] = (),
        domains: Sequence[str] = (),
    ) -> ModelProto:
        """Return the model; weights are inputs too if they are `repeated`."""
        inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)]
        inputs += [helper.make_tensor_value_info(other, TensorProto.FLOAT, (1,)) for other in further]
        if repeated:
            inputs += [helper.make_tensor_value_info(w.name, w.data_type, w.dims) for w in self.weights]
        result = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "net", inputs, [result], self.weights)
        opsets = [helper.make_opsetid("", self.opset), *(helper.make_opsetid(d, 1) for d in domains)]
        return helper.make_model(
            graph, opset_imports=opsets, ir_version=ir_version, producer_name=self.producer
        )


def pytorch_opset_9() -> ModelProto:
    """PyTorch 1.0 to 1.2: shapes computed axis by axis, Upsample by computed scales, weights as inputs."""
    w = Writer("pytorch", 9)
    x = w.node(
        "Conv", ["x", w.weight("conv.weight", 4, 3, 3, 3), w.weight("conv.bias", 4)], "8", pads=[1] * 4
    )
    scales = []
    for axis in (2, 3):
        size = w.node("Gather", [w.node("Shape", [x], f"s{axis}"), w.constant(f"i{axis}", axis)], f"g{axis}")
        number = w.node("Cast", [size], f"f{axis}", to=TensorProto.FLOAT)
        target = w.node("Mul", [number, w.constant(f"two{axis}", np.float32(2))], f"t{axis}")
        target = w.node("Floor", [target], f"r{axis}")
        scales.append(
            w.node("Unsqueeze", [w.node("Div", [target, number], f"d{axis}")], f"u{axis}", axes=[0])
        )
    ones = w.constant("ones", np.ones(2, np.float32))
    up = w.node("Upsample", [x, w.node("Concat", [ones, *scales], "scales", axis=0)], "up", mode="nearest")
    batch = w.node("Gather", [w.node("Shape", [up], "shape"), w.constant("zero", 0)], "batch")
    batch = w.node("Unsqueeze", [batch], "batch1", axes=[0])
    rest = w.node("Unsqueeze", [w.constant("rest", -1)], "rest1", axes=[0])
    flat = w.node("Reshape", [up, w.node("Concat", [batch, rest], "to", axis=0)], "flat")
    w.node("Gemm", [flat, w.weight("fc.weight", 5, 1024), w.weight("fc.bias", 5)], "y", transB=1)
    return w.model("y", ir_version=3, repeated=True)


def pytorch_opset_11() -> ModelProto:
    """PyTorch 1.3 to 1.7: Resize with an empty roi and sizes from a chain of Shape, Slice, and Cast."""
    w = Writer("pytorch", 11)
    x = w.node("Conv", ["x", w.weight("conv.weight", 4, 3, 1, 1)], "4")
    shape = w.node("Shape", [x], "5")
    start, stop, axis = (w.constant(n, np.array([v])) for n, v in (("6", 0), ("7", 2), ("8", 0)))
    first = w.node("Slice", [shape, start, stop, axis], "9")
    sizes = w.node(
        "Concat", [first, w.node("Cast", [w.constant("10", np.array([12, 20]))], "11", to=7)], "12", axis=0
    )
    roi, scales = (w.constant(name, np.zeros(0, np.float32)) for name in ("13", "14"))
    mode = {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel", "cubic_coeff_a": -0.75}
    x = w.node("Resize", [x, roi, scales, sizes], "15", nearest_mode="floor", **mode)
    w.node("Clip", [x, w.constant("16", np.float32(0)), w.constant("17", np.float32(6))], "y")
    return w.model("y", ["N", 3, 8, 8], ir_version=6)


def tf2onnx() -> ModelProto:
    """tf2onnx and keras2onnx: NHWC outside, a Transpose on each side of a Conv, Squeeze by attributes."""
    w = Writer("tf2onnx", 9)
    x = w.node("Transpose", ["x:0"], "Conv2D__5:0", perm=[0, 3, 1, 2])
    kernel = w.weight("Conv2D/ReadVariableOp:0", 4, 3, 3, 3)
    x = w.node("Conv", [x, kernel], "Conv2D:0", auto_pad="SAME_UPPER", strides=[2, 2])
    x = w.node("Transpose", [x], "Conv2D__9:0", perm=[0, 2, 3, 1])
    x = w.node("Add", [x, w.weight("BiasAdd/ReadVariableOp:0", 4)], "BiasAdd:0")
    x = w.node("Min", [w.node("Relu", [x], "Relu6__1:0"), w.initializer("six", np.float32(6))], "Relu6:0")
    x = w.node("Pad", [x], "Pad:0", pads=[0, 1, 1, 0, 0, 1, 1, 0], mode="constant")
    x = w.node("Transpose", [x], "Pool__12:0", perm=[0, 3, 1, 2])
    x = w.node("ReduceMean", [x], "Mean:0", axes=[2, 3], keepdims=1)
    x = w.node(
        "Squeeze", [w.node("Transpose", [x], "Mean__3:0", perm=[0, 2, 3, 1])], "Squeeze:0", axes=[1, 2]
    )
    w.node("Softmax", [w.node("MatMul", [x, w.weight("dense/kernel:0", 4, 5)], "MatMul:0")], "y", axis=1)
    return w.model("y", (1, 8, 8, 3), ir_version=4, name="x:0")


def mxnet() -> ModelProto:
    """MXNet: BatchNormalization whose fixed gamma is ones, Softmax with a label that nothing reads."""
    w = Writer("", 8)
    x = w.node("Conv", ["x", w.weight("conv0_weight", 4, 3, 3, 3)], "conv0", dilations=[1, 1], group=1)
    gamma, beta = w.initializer("bn0_gamma", np.ones(4, np.float32)), w.weight("bn0_beta", 4)
    given = [x, gamma, beta, w.weight("bn0_moving_mean", 4), w.weight("bn0_moving_var", 4, low=0.5)]
    x = w.node("BatchNormalization", given, "bn0", epsilon=2e-5, momentum=0.9, spatial=1)
    x = w.node("LeakyRelu", [x], "act0", alpha=0.25)
    x = w.node("PRelu", [x, w.weight("prelu0_gamma", 4, 1, 1)], "prelu0")
    x = w.node("AveragePool", [x], "pool0", kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 0, 0])
    x = w.node("Dropout", [w.node("Flatten", [x], "flatten0")], "dropout0", ratio=0.5)
    x = w.node(
        "Gemm", [x, w.weight("fc0_weight", 5, 36), w.weight("fc0_bias", 5)], "fc0", transB=1, alpha=1.0
    )
    w.node("Softmax", [x], "y", axis=1)
    return w.model("y", ir_version=3, repeated=True, further=["softmax_label"])


def cntk() -> ModelProto:
    """CNTK: a leading axis more than others write, biases of three axes, products by Reshape and MatMul."""
    w = Writer("CNTK", 7)
    x = w.node("Div", ["x", w.constant("Constant0", np.float32(255))], "Block1")
    x = w.node("Conv", [x, w.weight("Parameter5", 4, 3, 3, 3)], "Convolution28", auto_pad="SAME_UPPER")
    x = w.node("Relu", [w.node("Add", [x, w.weight("Parameter6", 4, 1, 1)], "Plus30")], "ReLU32")
    x = w.node(
        "MaxPool", [x], "Pooling66", kernel_shape=[2, 2], strides=[2, 2], auto_pad="NOTSET", pads=[0] * 4
    )
    x = w.node("Reshape", [x, w.initializer("shape0", np.array([1, 1, 64]))], "Reshape0")
    matrix = w.node(
        "Reshape", [w.weight("Parameter193", 4, 4, 4, 5), w.initializer("shape1", np.array([64, 5]))], "R1"
    )
    x = w.node("Add", [w.node("MatMul", [x, matrix], "Times212"), w.weight("Parameter194", 1, 5)], "Plus214")
    w.node("LogSoftmax", [x], "y", axis=2)
    return w.model("y", ir_version=3)


def paddle() -> ModelProto:
    """Paddle: constants of one element as nodes, a conditional block that is decided, @ and dots in names."""
    w = Writer("PaddlePaddle", 11)
    x = w.node("Conv", ["x", w.weight("conv2d_0.w_0", 4, 3, 3, 3)], "conv2d_0.tmp_0", pads=[1] * 4)
    bn = [w.weight(f"batch_norm_0.{part}", 4, low=0.5) for part in ("w_0", "b_0", "w_1", "w_2")]
    x = w.node("BatchNormalization", [x, *bn], "batch_norm_0.tmp_2", epsilon=1e-5, momentum=0.9)
    x = w.node("Dropout", [x], "dropout_0.tmp_0")
    scale, offset = (
        w.constant("scale@1", np.array([0.5], np.float32)),
        w.constant("bias@1", np.array([1.0], np.float32)),
    )
    x = w.node("Add", [w.node("Mul", [x, scale], "Mul_0"), offset], "scale_0.tmp_0")
    branches = {}
    for branch, op in (("then_branch", "HardSigmoid"), ("else_branch", "Neg")):
        node = helper.make_node(op, [x], [f"{branch}.out"])
        result = helper.make_tensor_value_info(f"{branch}.out", TensorProto.FLOAT, (1, 4, 8, 8))
        branches[branch] = helper.make_graph([node], branch, [], [result])
    condition = w.node(
        "Cast", [w.constant("training@0", np.array([1], np.int32))], "cond@0", to=TensorProto.BOOL
    )
    x = w.node("If", [condition], "conditional_block_0.tmp_0", **branches)
    x = w.node("Cast", [x], "cast_0.tmp_0", to=TensorProto.FLOAT)
    ends = [w.constant(f"slice@{i}", np.array(v)) for i, v in enumerate(([0], [2147483647], [1]))]
    w.node("Slice", [x, *ends], "y")
    return w.model("y", [-1, 3, 8, 8], ir_version=7)


def sklearn() -> ModelProto:
    """skl2onnx: a neural network as plain tensors, classes chosen by ArgMax."""
    w = Writer("skl2onnx", 15)
    x = w.node("Cast", ["x"], "cast_input", to=TensorProto.FLOAT)
    for layer, (rows, columns) in enumerate(((6, 8), (8, 3))):
        x = w.node(
            "MatMul", [x, w.weight(f"coefficient{layer or ''}", rows, columns)], f"mul_result{layer or ''}"
        )
        x = w.node("Add", [x, w.weight(f"intercepts{layer or ''}", 1, columns)], f"add_result{layer or ''}")
        x = w.node("Relu", [x], "next_activations") if not layer else x
    shape = w.initializer("shape_tensor", np.array([-1, 3]))
    w.node("Reshape", [w.node("Softmax", [x], "out_activations_result", axis=-1), shape], "y")
    return w.model("y", (4, 6))


EXPORTERS: Final[dict[str, Callable[[], ModelProto]]] = {
    "PyTorch, opset 9": pytorch_opset_9,
    "PyTorch, opset 11": pytorch_opset_11,
    "tf2onnx": tf2onnx,
    "MXNet": mxnet,
    "CNTK": cntk,
    "Paddle": paddle,
    "scikit-learn": sklearn,
}
