"""Broken and hostile files: each is refused in one sentence that says where, or read as what it is."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

pytest.importorskip("onnxruntime")

from caffeforge.runtime import onnx_front
from caffeforge.runtime.cli import main
from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.onnx_front import Importer, open_model, read

FLOAT = TensorProto.FLOAT


def model(*nodes: Any, init: tuple[Any, ...] = (), opset: int = 17, ir: int = 8) -> ModelProto:
    """Return a model of x, float32[2, 3], that yields y."""
    x = helper.make_tensor_value_info("x", FLOAT, (2, 3))
    y = helper.make_tensor_value_info("y", FLOAT, None)
    graph = helper.make_graph(list(nodes), "net", [x], [y], list(init))
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir)


def node(op: str, *inputs: str, outputs: str = "y", **attributes: Any) -> Any:
    return helper.make_node(op, inputs or ("x",), outputs.split(), **attributes)


def product(weight: Any) -> ModelProto:
    return model(node("MatMul", "x", "w"), init=(weight,))


def tensor(*dims: int, kind: int = FLOAT, size: int = 48) -> TensorProto:
    made = TensorProto(name="w", data_type=kind, dims=dims)
    made.raw_data = bytes(size)
    return made


def outside(location: str, offset: Any = 0) -> ModelProto:
    made = TensorProto(name="w", data_type=FLOAT, dims=(3, 4), data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, "offset": offset, "length": 48}.items():
        made.external_data.add(key=key, value=str(value))
    return product(made)


def sparse(indices: list[int], *dims: int) -> ModelProto:
    values = numpy_helper.from_array(np.ones(len(indices), np.float32), "w")
    made = model(node("MatMul", "x", "w"))
    places = numpy_helper.from_array(np.array(indices))
    made.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, dims))
    return made


def constant(name: str, *numbers: int) -> TensorProto:
    return helper.make_tensor(name, TensorProto.INT64, [len(numbers)], numbers)


def untyped() -> ModelProto:
    made = model(node("Relu"))
    made.graph.input[0].ClearField("type")
    return made


def endless() -> ModelProto:
    made = model(node("f", domain="own"))
    body = [helper.make_node("f", ["a"], ["b"], domain="own")]
    made.functions.append(
        helper.make_function("own", "f", ["a"], ["b"], body, [helper.make_opsetid("own", 1)])
    )
    return made


def without_outputs() -> ModelProto:
    made = model(node("Relu"))
    del made.graph.output[:]
    return made


WHOLE = product(numpy_helper.from_array(np.ones((3, 2000), np.float32), "w")).SerializeToString()

FILES: dict[str, tuple[Callable[[], ModelProto | bytes], str]] = {
    "cut in half": (lambda: WHOLE[: len(WHOLE) // 2], "or only a part of one"),
    "without its last bytes": (lambda: WHOLE[:-3], "or only a part of one"),
    "zeros": (lambda: bytes(5000), "this is no ONNX model"),
    "opset 99": (lambda: model(node("Relu"), opset=99), "opset 99 of ONNX; opsets 1 to 28 are known"),
    "opset -3": (lambda: model(node("Relu"), opset=-3), "opset -3 of ONNX"),
    "IR version 99": (lambda: model(node("Relu"), ir=99), "IR version 99; up to"),
    "no outputs": (without_outputs, "the model has no outputs"),
    "an input without type": (untyped, "input x: it is no tensor"),
    "a cycle": (
        lambda: model(node("Add", "x", "b", outputs="a"), node("Relu", "a", outputs="b"), node("Neg", "b")),
        "node a (number 0, Add-14 of (float32[2, 3], -)): it reads b, which no node before it computes",
    ),
    "a weight that is missing": (lambda: model(node("MatMul", "x", "w")), "it reads w, which no node"),
    "a name twice": (lambda: model(node("Relu"), node("Neg")), "node y (number 1, Neg-13 of"),
    "an unknown op": (lambda: model(node("Nonsense")), "ONNX has no operator Nonsense in opset 17"),
    "an unknown domain": (
        lambda: model(node("Odd", domain="own")),
        "node y (number 0, own.Odd of (float32[2, 3])): how many dimensions",
    ),
    "too few operands": (lambda: model(node("Add")), "Add-14 wants its input B"),
    "too many operands": (lambda: model(node("Relu", "x", "x")), "Relu-14 has 1 inputs, 2 are given"),
    "too many results": (lambda: model(node("Relu", outputs="y z")), "Relu-14 has 1 outputs, 2 are given"),
    "an attribute of another type": (
        lambda: model(node("Softmax", axis=1.5)),
        "attribute axis of Softmax-13 is int, not float",
    ),
    "attributes that do not fit": (
        lambda: model(node("MaxPool", kernel_shape=[2], pads=[1])),
        "node y (number 0, MaxPool-12 of (float32[2, 3]))",
    ),
    "an unknown auto_pad": (
        lambda: model(node("MaxPool", kernel_shape=[2], auto_pad="ALL")),
        "auto_pad is ALL, which ONNX does not know",
    ),
    "Constant of nothing": (lambda: model(helper.make_node("Constant", [], ["y"])), "wants one attribute"),
    "Loop without a body": (lambda: model(node("Loop", "", "", "x")), "Loop lacks the attribute body"),
    "a function that calls itself": (endless, "function f calls itself"),
    "a shape of other elements": (
        lambda: model(node("Reshape", "x", "s"), init=(constant("s", 4, 5),)),
        "float32[2, 3] has not the elements of shape [4, 5]",
    ),
    "operands of other types": (
        lambda: model(node("Add", "x", "i"), init=(constant("i", 1, 2, 3),)),
        "Add() of (float32[2, 3], int64[3])",
    ),
    "elements of no type": (lambda: product(tensor(3, 4, kind=0)), "tensor w: it holds elements of no type"),
    "elements of type 77": (lambda: product(tensor(3, 4, kind=77)), "of an unknown type, 77"),
    "a negative size": (lambda: product(tensor(-3, 4)), "its shape [-3, 4] has a negative size"),
    "a huge claim": (lambda: product(tensor(2**31, 2**31)), "tensor w: it does not hold"),
    "too few bytes": (lambda: product(tensor(3, 4, size=40)), "tensor w: it does not hold [3, 4] elements"),
    "a sparse index outside": (lambda: sparse([1, 99], 3, 4), "its indices do not lie in its shape [3, 4]"),
    "a huge sparse tensor": (lambda: sparse([1, 99], 2**20, 2**20), "too large: [1048576, 1048576]"),
    "data that is gone": (lambda: outside("gone.bin"), "lies in gone.bin, which cannot be read"),
    "data outside": (lambda: outside("../../etc/passwd"), "outside the model's folder"),
    "data at a path of the machine": (lambda: outside("/etc/passwd"), "outside the model's folder"),
    "data behind a link": (lambda: outside("link.bin"), "outside the model's folder"),
    "data in the model itself": (lambda: outside(""), "which cannot be read"),
    "data that is too short": (lambda: outside("short.bin"), "which has 10 and gives it 48"),
    "data far away": (lambda: outside("w.bin", 2**62), "wants bytes 4611686018427387904 to"),
    "data before its file": (lambda: outside("w.bin", -4), "tensor w: it does not hold"),
    "data at no number": (lambda: outside("w.bin", "abc"), "tensor w: it does not hold"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_broken_file_is_refused_in_a_sentence(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make, sentence = FILES[name]
    made = make()
    file = tmp_path / "net.onnx"
    file.write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
    (tmp_path / "w.bin").write_bytes(bytes(48))
    (tmp_path / "short.bin").write_bytes(bytes(10))
    os.symlink("/etc/passwd", tmp_path / "link.bin")
    assert main(["dump", str(file)]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("error: ")
    assert sentence in captured.err
    assert len(captured.err.splitlines()) <= 2  # the sentence and a hint


def test_no_conversion_says_itself_where_it_is() -> None:
    """The importer does, for all of them: the node, its index, its op's version, and its operands' types."""
    folder = Path(onnx_front.__file__).parent
    placed = {
        path.name
        for path in folder.glob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id in ("FrontEndError", "GraphError", "CaffeforgeError")
        and any(keyword.arg == "where" for keyword in call.keywords)
    }
    # Those that read tensors, inputs and files, and what rewrites or runs a model: they name what they mean.
    own = {
        "dequantized.py",
        "importer.py",
        "interface.py",
        "kept.py",
        "original.py",
        "running.py",
        "tensors.py",
    }
    assert placed == own


def test_a_kept_node_that_fails_is_named(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    net (float[2,3] x, bool c, int64[2] s) => (float[a,b] y) {
        y = If (c) < then_branch = yes () => (float[a,b] t) { t = Reshape(x, s) },
                     else_branch = no () => (float[a,b] e) { e = Neg(x) } > }"""
    feed = {"x": np.ones((2, 3), np.float32), "c": np.array(True), "s": np.array([4, 5])}
    executor = Executor(read(onnx.parser.parse_model(text), feed).graph)
    with pytest.raises(CaffeforgeError, match=r"^node y: onnx\.If: it fails: "):
        executor.run(feed)


def test_what_would_be_huge_is_not_computed_when_the_model_is_read() -> None:
    """A terabyte of ones is no error of the file: nothing is computed before somebody asks for it."""
    one = helper.make_node("Constant", [], ["one"], value_float=1.0)
    made = model(one, node("Expand", "one", "s"), init=(constant("s", 2**19, 2**19),))
    (last,) = Importer(open_model(made)).run().nodes
    assert last.op.op_type == "Expand"


def test_parts_that_nothing_reads_are_parts_all_the_same() -> None:
    text = '<ir_version: 8, opset_import: ["" : 13]> net (float[2,6] x) => (float[2,3] y) {BODY}'
    for body in ("y, z = Split<axis = 1>(x)", "k = Constant<value = int64[1] {3}>() y, z = TopK(x, k)"):
        x = np.arange(12, dtype=np.float32).reshape(2, 6)
        source = read(onnx.parser.parse_model(text.replace("BODY", body)), x)
        found, expected = Executor(source.graph).run({"x": x}), source.reference({"x": x})
        np.testing.assert_array_equal(found["y"], expected["y"])
