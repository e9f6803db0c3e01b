"""Sequences and optionals vanish where their length is known; the rest is refused with the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

pytest.importorskip("onnxruntime")

from caffeforge.generated import bvlc
from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.onnx_front import Importer, open_model, read

X = np.random.default_rng(0).standard_normal((2, 6)).astype(np.float32)


def parsed(signature: str, body: str) -> onnx.ModelProto:
    head = '<ir_version: 8, opset_import: ["" : 18, "own" : 1]>'
    return onnx.parser.parse_model(f"{head} net {signature} {{ {body} }}")


def checked(model: onnx.ModelProto, feed: dict[str, Any]) -> list[str]:
    """Compare with onnxruntime; return the ops of the graph."""
    source = read(model, feed)
    found = Executor(source.graph).run(feed)
    expected = source.reference(feed)
    for name, array in found.items():
        np.testing.assert_array_equal(array, expected[name])
    return [node.op.op_type for node in source.graph.nodes]


def test_a_chunk_of_pytorch_goes_to_caffe(tmp_path: Any) -> None:
    """PyTorch writes ``torch.chunk`` as SplitToSequence and SequenceAt."""
    body = """
        n = Constant<value = int64 {2}>()
        p = SplitToSequence<axis = 1>(x, n)
        i = Constant<value = int64 {-1}>()
        q = SequenceAt(p, i)
        y = Relu(q)
    """
    model = parsed("(float[2,6] x) => (float[2,2] y)", body)
    assert checked(model, {"x": X}) == ["Split", "Relu"]
    result = bvlc.export(model, X, tmp_path / "net")
    assert result.verification is not None and result.verification.passed


def test_a_position_that_is_computed_chooses_among_equal_shapes() -> None:
    body = "p = SplitToSequence<axis = 1, keepdims = 0>(x) y = SequenceAt(p, i)"
    model = parsed("(float[2,6] x, int64 i) => (float[2] y)", body)
    for place in (2, -1):
        ops = checked(model, {"x": X, "i": np.array(place)})
        assert ops[-2:] == ["Concat", "Gather"]


def test_a_sequence_as_output_is_one_output_a_tensor() -> None:
    model = parsed("(float[2,6] x) => (float y)", "n = Neg(x) y = SequenceConstruct(x, n)")
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, [2, 6])
    model.graph.output[0].type.CopyFrom(helper.make_sequence_type_proto(kind))
    assert checked(model, {"x": X}) == ["Neg", "Identity", "Identity"]
    assert list(Executor(read(model, X).graph).run({"x": X})) == ["y.0", "y.1"]


def test_a_kept_node_reads_a_sequence() -> None:
    body = """
        n = Neg(x)
        p = SequenceConstruct(x, n)
        y = If (c) <
            then_branch = yes () => (float[a,b] t) { z = Constant<value = int64 {0}>() t = SequenceAt(p, z) },
            else_branch = no () => (float[a,b] e) { e = ConcatFromSequence<axis = 1>(p) } >
    """
    model = parsed("(float[2,6] x, bool c) => (float[2,w] y)", body)
    for condition in (True, False):
        assert checked(model, {"x": X, "c": np.array(condition)}) == ["Neg", "If"]


def test_an_optional_is_what_it_holds() -> None:
    body = """
        o = Optional(x)
        h = OptionalHasElement(o)
        y = If (h) <
            then_branch = yes () => (float[a,b] t) { g = OptionalGetElement(o) t = Relu(g) },
            else_branch = no () => (float[a,b] e) { e = Neg(x) } >
    """
    assert checked(parsed("(float[2,6] x) => (float[2,6] y)", body), {"x": X}) == ["Relu"]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("p = SplitToSequence<axis = 1>(x, n) y = SequenceAt(p, n)", "its position or size is computed"),
        ("p = SequenceConstruct(x) e = SequenceErase(p) y = SequenceAt(e, n)", "holds no tensor"),
        ("o = Optional<type = float>() y = OptionalGetElement(o)", "holds nothing"),
    ],
)
def test_what_is_not_known_is_refused_with_the_reason(body: str, sentence: str) -> None:
    model = parsed("(float[2,6] x, int64 n) => (float[a,b] y)", body.replace("<type = float>", ""))
    with pytest.raises(FrontEndError, match=sentence):
        Importer(open_model(model)).run()


def test_an_identity_does_not_rename_what_it_reads() -> None:
    model = parsed("(float[2,6] x) => (float[2,6] y)", "y = Identity(x)")
    model.graph.input[0].name = model.graph.node[0].input[0] = "y.1"
    graph = Importer(open_model(model)).run()
    assert [value.name for value in graph.inputs] == ["y.1"]


def test_large_weights_of_four_bits_are_packed_for_onnxruntime() -> None:
    numbers = np.random.default_rng(1).integers(-8, 8, (40, 16))
    weight = helper.make_tensor("w", TensorProto.INT4, numbers.shape, numbers.reshape(-1).tolist())
    body = "s = Constant<value = float {0.5}>() d = DequantizeLinear(w, s) y = MatMul(x, d)"
    model = parsed("(float[2,40] x) => (float[2,16] y)", body)
    model.opset_import[0].version = 21
    model.graph.initializer.append(weight)
    x = np.random.default_rng(2).standard_normal((2, 40)).astype(np.float32)
    found = Executor(read(model, x).graph).run({"x": x})["y"]
    np.testing.assert_allclose(found, x @ (numbers * np.float32(0.5)), rtol=1e-4, atol=1e-5)
