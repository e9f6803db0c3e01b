"""Hub nodes as ONNX nodes: operands at their positions, typed attributes, static fields as tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import AttributeProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from caffeforge.generated import hub
from caffeforge.runtime.array import Dense
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.graph import Graph, Node, Value, constant
from caffeforge.runtime.onnx_model import to_model, weights
from caffeforge.runtime.onnx_node import element_type, onnx_node, type_proto
from caffeforge.runtime.op import Attribute, Op

Array = npt.NDArray[Any]


def one_node(op: Op, *operands: Value | None, results: int = 1) -> Node:
    outputs = [Value(f"y{index}", "float32", ()) for index in range(results)]
    return Node("node", op, operands, outputs)


def evaluate(op: Op, *operands: Array, results: int = 1) -> list[Array]:
    """Run one op by ONNX's own reference implementation."""
    values = [Value(f"x{index}", array.dtype.name, array.shape) for index, array in enumerate(operands)]
    proto, statics = onnx_node(one_node(op, *values, results=results), {v.name for v in values})
    model = helper.make_model(
        helper.make_graph(
            [proto],
            "one",
            [helper.make_value_info(value.name, type_proto(value)) for value in values],
            [helper.make_empty_tensor_value_info(name) for name in proto.output],
            statics,
        ),
        opset_imports=[helper.make_opsetid("", 24)],
    )
    feeds = {value.name: array for value, array in zip(values, operands, strict=True)}
    return list(ReferenceEvaluator(model).run(None, feeds))


X = np.random.default_rng(0).standard_normal((2, 3, 4, 4)).astype(np.float32)

CASES: list[tuple[Op, Array]] = [
    (hub.Reshape(shape=(0, -1)), X.reshape(2, -1)),
    (hub.Transpose(perm=(0, 2, 3, 1)), X.transpose(0, 2, 3, 1)),
    (hub.Clip(min=-0.5, max=0.5), X.clip(-0.5, 0.5)),
    (hub.Clip(max=0.5), X.clip(None, 0.5)),
    (hub.Slice(starts=(1,), ends=(4,), axes=(3,), steps=(2,)), X[..., 1:4:2]),
    (hub.Slice(starts=(1,), ends=(4,), axes=(3,)), X[..., 1:4]),
    (hub.Pad(pads=(1, 2), constant_value=7.0, axes=(3,)),
     np.pad(X, [(0, 0)] * 3 + [(1, 2)], constant_values=7)),
    (hub.Pad(pads=(1, 1), axes=(2,), mode="reflect"), np.pad(X, [(0, 0), (0, 0), (1, 1), (0, 0)], "reflect")),
    (hub.ReduceMean(axes=(2, 3), keepdims=0), X.mean((2, 3))),
    (hub.ReduceMax(axes=(1,)), X.max(1, keepdims=True)),
    (hub.Unsqueeze(axes=(0, 5)), X[None, ..., None]),
    (hub.Expand(shape=(5, 1, 1, 1, 1)), np.broadcast_to(X, (5, *X.shape))),
    (hub.Tile(repeats=(1, 2, 1, 1)), np.tile(X, (1, 2, 1, 1))),
    (hub.Resize(scales=(1, 1, 2, 2), mode="nearest", coordinate_transformation_mode="asymmetric"),
     X.repeat(2, 2).repeat(2, 3)),
    (hub.CumSum(axis=2), X.cumsum(2)),
    (hub.Trilu(k=1), np.triu(X, 1)),
    (hub.LeakyRelu(alpha=0), np.maximum(X, 0)),
]  # fmt: skip


@pytest.mark.parametrize(("op", "expected"), CASES, ids=[case[0].op_type for case in CASES])
def test_computes_what_numpy_does(op: Op, expected: Array) -> None:
    (result,) = evaluate(op, X)
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-6)


def test_split_by_sizes_gives_each_part() -> None:
    parts = evaluate(hub.Split(split=(1, 3), axis=2), X, results=2)
    np.testing.assert_array_equal(parts[0], X[:, :, :1])
    np.testing.assert_array_equal(parts[1], X[:, :, 1:])


def test_top_k_takes_its_number_as_one_element() -> None:
    _, (k,) = onnx_node(one_node(hub.TopK(K=2), Value("x", "float32", (4,)), results=2), {"x"})
    assert list(k.dims) == [1]
    values, indices = evaluate(hub.TopK(K=2), X, results=2)
    np.testing.assert_array_equal(values, -np.sort(-X, -1)[..., :2])
    np.testing.assert_array_equal(indices, np.argsort(-X, -1, "stable")[..., :2])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64"])
def test_a_bound_has_the_element_type_of_the_operand(dtype: str) -> None:
    x = np.arange(-4, 4).astype(dtype)
    (result,) = evaluate(hub.Clip(min=-2.0, max=2.0), x)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result, x.clip(-2, 2))


def test_a_bound_that_the_element_type_cannot_hold_is_refused() -> None:
    node = one_node(hub.Clip(min=0.5), Value("x", "int64", (3,)))
    with pytest.raises(GraphError, match=r"0\.5 is no int64"):
        onnx_node(node, {"x"})


def test_absent_inputs_leave_their_position_empty() -> None:
    x, scales = Value("x", "float32", (1, 1, 2, 2)), Value("s", "float32", (4,))
    proto, statics = onnx_node(one_node(hub.Clip(max=1.0), x), {"x"})
    assert list(proto.input) == ["x", "", statics[0].name]
    proto, statics = onnx_node(one_node(hub.Resize(mode="nearest"), x, None, scales), {"x", "s"})
    assert list(proto.input) == ["x", "", "s"] and not statics


def test_an_input_given_both_ways_is_refused() -> None:
    shape = Value("s", "int64", (2,))
    with pytest.raises(GraphError, match="shape of Reshape is given twice"):
        onnx_node(one_node(hub.Reshape(shape=(2, 2)), Value("x", "float32", (4,)), shape), {"x", "s"})


def test_variadic_operands_all_appear() -> None:
    values = [Value(name, "float32", (1, 2)) for name in "abc"]
    proto, _ = onnx_node(one_node(hub.Concat(axis=0), *values), set("abc"))
    assert list(proto.input) == ["a", "b", "c"]


def test_attributes_have_the_declared_types_even_for_whole_floats() -> None:
    proto, _ = onnx_node(one_node(hub.LRN(size=5, alpha=1), Value("x", "float32", (1, 8, 2, 2))), {"x"})
    kinds = {a.name: a.type for a in proto.attribute}
    assert kinds["alpha"] == AttributeProto.FLOAT and kinds["size"] == AttributeProto.INT


def test_a_tensor_attribute_keeps_elements_and_type() -> None:
    op = hub.ConstantOfShape(input=(2, 3), value=Dense(np.array([7], np.int32)))
    (result,) = evaluate(op)
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result, np.full((2, 3), 7))


def test_names_of_new_tensors_do_not_collide() -> None:
    taken = {"x", "node.shape"}
    proto, (shape,) = onnx_node(one_node(hub.Reshape(shape=(4,)), Value("x", "float32", (2, 2))), taken)
    assert shape.name not in {"x", "node.shape"} and shape.name in taken and proto.input[1] == shape.name


def test_ops_of_other_domains_and_subgraphs_are_refused() -> None:
    class Foreign(Op):
        op_type, domain = "Focus", "vendory"

    class Branch(Op):
        __slots__ = ()
        op_type = "If"
        attributes = (Attribute("body", "graph"),)
        body = object()

    with pytest.raises(GraphError, match=r"vendory\.Focus is not an ONNX operator"):
        onnx_node(one_node(Foreign()), set())
    with pytest.raises(GraphError, match="body is of kind graph"):
        onnx_node(one_node(Branch()), set())


def test_unknown_element_type_is_refused() -> None:
    with pytest.raises(GraphError, match="no element type complex256"):
        element_type("complex256")


def linear() -> Graph:
    x = Value("x", "float32", (2, 32))
    w = constant("w", Dense(np.ones((32, 16), np.float32)))
    b = constant("b", Dense(np.ones(16, np.float32)))
    h, y = Value("h", "float32", (2, 16)), Value("y", "float32", (2, 16))
    return Graph(
        "linear", [x], [y], [Node("mm", hub.MatMul(), [x, w], [h]), Node("add", hub.Add(), [h, b], [y])]
    )


def test_a_model_passes_the_checker_and_has_large_weights_as_inputs() -> None:
    model = to_model(linear())
    onnx.checker.check_model(model, full_check=True)
    assert [i.name for i in model.graph.input] == ["x", "w"]
    assert [i.name for i in model.graph.initializer] == ["b"]
    assert [n.name for n in model.graph.node] == ["mm", "add"]
    np.testing.assert_array_equal(numpy_helper.to_array(model.graph.initializer[0]), np.ones(16))


def test_a_large_constant_where_an_op_wants_a_constant_stays_in_the_model() -> None:
    x = Value("x", "float32", (1,) * 300)
    shape = constant("shape", Dense(np.ones(300, np.int64)))
    graph = Graph(
        "g", [x], [y := Value("y", "float32", (1,) * 300)], [Node("n", hub.Reshape(), [x, shape], [y])]
    )
    assert weights(graph) == []


def test_a_graph_without_nodes_has_no_model() -> None:
    x = Value("x", "float32", (1,))
    with pytest.raises(GraphError, match="without nodes"):
        to_model(Graph("empty", [x], [x], []))
