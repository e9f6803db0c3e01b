"""Importing: shapes vanish, branches are decided, functions inlined, tensors read; what is wrong is said."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

pytest.importorskip("onnxruntime")

from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.graph import Graph
from caffeforge.runtime.onnx_front import Importer, open_model, read

SHAPE_CHAIN = """
    s = Shape(x)
    i = Constant<value = int64[1] {0}>()
    n = Gather(s, i)
    m = Constant<value = int64[1] {-1}>()
    t = Concat<axis = 0>(n, m)
    y = Reshape(x, t)
"""


def parsed(x: str, body: str, y: str = "y", opset: int = 17) -> ModelProto:
    """Return a model in ONNX's own text notation."""
    text = (
        f'<ir_version: 8, opset_import: ["" : {opset}, "own" : 1]> net ({x}) => (float[a, b] {y}) {{{body}}}'
    )
    return onnx.parser.parse_model(text)


def graph_of(model: Any) -> Graph:
    return Importer(open_model(model)).run()


def test_a_shape_on_its_way_to_reshape_is_a_constant() -> None:
    (node,) = graph_of(parsed("float[2,3,4] x", SHAPE_CHAIN)).nodes
    assert repr(node.op) == "Reshape(allowzero=0, shape=(2, -1))"


def test_an_open_batch_is_copied_by_reshape() -> None:
    graph = graph_of(parsed("float[N,3,4] x", SHAPE_CHAIN))
    (node,) = graph.nodes
    assert repr(node.op) == "Reshape(allowzero=0, shape=(0, -1))"
    x = np.arange(60, dtype=np.float32).reshape(5, 3, 4)
    np.testing.assert_array_equal(Executor(graph).run({"x": x})["y"], x.reshape(5, 12))


@pytest.mark.parametrize("x", ["float[2,3,4] x", "float[N,3,4] x"])
def test_allowzero_is_nothing_where_the_shape_has_no_zero(x: str) -> None:
    """PyTorch's exporter sets it on every Reshape, which no Caffe could express."""
    body = SHAPE_CHAIN.replace("Reshape(", "Reshape<allowzero = 1>(")
    (node,) = graph_of(parsed(x, body)).nodes
    assert getattr(node.op, "allowzero", None) == 0


def test_allowzero_stays_where_the_shape_has_a_zero() -> None:
    body = "s = Constant<value = int64[3] {0, 3, 4}>() y = Reshape<allowzero = 1>(x, s)"
    (node,) = graph_of(parsed("float[0,12] x", body)).nodes
    assert getattr(node.op, "allowzero", None) == 1


BRANCH = """
    r = Constant<value = float {{{0}}}>()
    z = Constant<value = float {{1.0}}>()
    c = Greater(r, z)
    y = If (c) <
        then_branch = yes () => (float[a,b] t) {{ t = Relu(x) }},
        else_branch = no () => (float[a,b] e) {{ e = Neg(x) }} >
"""


@pytest.mark.parametrize(("number", "op"), [("2.0", "Relu"), ("0.5", "Neg")])
def test_a_branch_that_is_decided_is_taken(number: str, op: str) -> None:
    graph = graph_of(parsed("float[2,3] x", BRANCH.format(number)))
    assert [node.op.op_type for node in graph.nodes if node.op.op_type != "Identity"] == [op]


def test_a_loop_of_constant_length_is_unrolled() -> None:
    body = """
        n = Constant<value = int64 {3}>()
        go = Constant<value = bool {1}>()
        y = Loop (n, go, x) <body = step (int64 i, bool on, float[2,3] s) => (bool on2, float[2,3] s2) {
            on2 = Identity(on)
            s2 = Add(s, x)
        }>
    """
    graph = graph_of(parsed("float[2,3] x", body))
    assert [node.op.op_type for node in graph.nodes].count("Add") == 3
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(Executor(graph).run({"x": x})["y"], 4 * x)


def test_a_function_of_the_model_is_inlined_with_its_attributes() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 17, "own" : 1]>
        net (float[2,3] x) => (float[2,3] y) { y = own.scaled<by = 0.25>(x) }
        <domain: "own", opset_import: ["" : 17]>
        scaled <by> (v) => (w) { a = LeakyRelu<alpha: float = @by>(v)  w = Neg(a) }
    """
    graph = graph_of(onnx.parser.parse_model(text))
    assert [repr(node.op) for node in graph.nodes] == ["LeakyRelu(alpha=0.25)", "Neg()"]
    assert {node.origin.module for node in graph.nodes} == {"y"}


def weights_model(tensor: TensorProto) -> ModelProto:
    """Return a model that adds a constant of shape (64, 32)."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (64, 32))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (64, 32))
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "net", [x], [y], [tensor])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


W = np.random.default_rng(0).standard_normal((64, 32)).astype(np.float32)


@pytest.mark.parametrize("form", ["raw", "typed", "external"])
def test_weights_are_views_of_the_file(form: str, tmp_path: Path) -> None:
    typed = helper.make_tensor("w", TensorProto.FLOAT, W.shape, W.reshape(-1))
    model = weights_model(typed if form == "typed" else onnx.numpy_helper.from_array(W, "w"))
    file = tmp_path / "net.onnx"
    onnx.save(model, file, save_as_external_data=form == "external", location="w.bin", size_threshold=0)
    graph = graph_of(file)
    (weight,) = graph.constants()
    assert weight.data is not None
    found = weight.data.numpy()
    np.testing.assert_array_equal(found, W)
    assert not found.flags.owndata and not found.flags.writeable
    (tmp_path / "w.bin").unlink(missing_ok=True)
    if form == "external":
        with pytest.raises(CaffeforgeError, match=r"tensor w lies in w\.bin, which cannot be read"):
            graph_of(file)


def test_sparse_and_packed_weights_are_read() -> None:
    values = onnx.numpy_helper.from_array(np.array([5.0, 7.0], np.float32), "w")
    places = onnx.numpy_helper.from_array(np.array([1, 5], np.int64), "at")
    model = weights_model(TensorProto())
    del model.graph.initializer[:]
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [1, 32]))
    (weight,) = graph_of(model).constants()
    assert weight.data is not None
    assert [int(i) for i in np.flatnonzero(weight.data.numpy())] == [1, 5]
    packed = helper.make_tensor("w", TensorProto.INT4, [3], [-8, 7, 1])
    array = Importer(open_model(weights_model(packed))).tensors.array(packed).numpy()
    assert array.astype(np.int32).tolist() == [-8, 7, 1]


def test_an_op_of_a_custom_domain_is_kept_under_its_name() -> None:
    model = parsed("float[2,3] x", "y = own.Mystery<size = 3>(x)")
    model.graph.output[0].type.CopyFrom(model.graph.input[0].type)
    importer = Importer(open_model(model))
    text = importer.run().dump()
    assert "y = own.Mystery(x, size=3)" in text
    assert importer.reasons == {"y": "it is an op of a custom domain"}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "seems to be an empty file"),
        (b"layer { name: 'a' }", "this is no ONNX model"),
        (b"PK\x03\x04rest", "seems to be a zip archive"),
        (b"\x00\x01\x02\x03" * 9, "this is no ONNX model"),
        (
            weights_model(onnx.numpy_helper.from_array(W, "w")).SerializeToString()[:2000],
            "this is no ONNX model",
        ),
    ],
)
def test_what_is_no_model_is_said_so(content: bytes, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(content)
    with pytest.raises(CaffeforgeError, match=sentence):
        read(tmp_path / "net.onnx")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("y = Nonsense(x)", r"node y \(number 0, Nonsense of \(float32\[2, 3\]\)\): ONNX has no operator"),
        ("r = Relu(x) y = Add(r, gone)", r"node y \(number 1, Add-14 of .*it reads gone"),
        ("y = Relu<alpha = 1.0>(x)", r"node y \(number 0, Relu-14 of .*has no attribute alpha"),
        ("y = Cast(x)", "lacks the attribute 'to'"),
        ("r = Relu(x) y = MatMul(r, x)", r"number 1, MatMul-13 of \(float32\[2, 3\], float32\[2, 3\]\)"),
    ],
)
def test_an_error_names_node_index_version_and_operands(body: str, sentence: str) -> None:
    with pytest.raises(CaffeforgeError) as caught:
        graph_of(parsed("float[2,3] x", body))
    assert re.search(sentence, str(caught.value)), str(caught.value)


def test_an_input_takes_only_the_sizes_that_the_model_leaves_open() -> None:
    model = parsed("float[N,3] x", "y = Relu(x)")
    assert read(model, (5, 3)).graph.inputs[0].dims == (5, 3)
    with pytest.raises(CaffeforgeError, match=r"shape \[5, 4\] is given, the model declares \[N, 3\]"):
        read(model, (5, 4))
    with pytest.raises(CaffeforgeError, match="its sizes are not all known"):
        read(model)
