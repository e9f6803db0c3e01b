"""Running hub graphs: against PyTorch and NumPy, any inner value, weights in place, islands, and refusals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest
import torch
import torch.nn.functional as F

from caffeforge.generated import hub
from caffeforge.runtime import reference
from caffeforge.runtime.array import Dense, Full, transpose
from caffeforge.runtime.errors import CaffeforgeError, GraphError, UsageError
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.graph import Graph, Node, Symbol, Value, constant
from caffeforge.runtime.op import Formal, Op

Array = npt.NDArray[Any]
RNG = np.random.default_rng(0)
W1 = RNG.standard_normal((8, 3, 3, 3)).astype(np.float32)
W2 = RNG.standard_normal((10, 512)).astype(np.float32)
WEIGHTS = {"w1": Dense(W1), "w2": Dense(W2)}


def net() -> Graph:
    return Graph.parse(
        """
        def net(x: float32[n, 3, 16, 16], *, w1: float32[8, 3, 3, 3], w2: float32[10, 512]):
            a = Conv(x, w1, kernel_shape=(3, 3), pads=(1, 1, 1, 1))
            b = Relu(a)
            p = MaxPool(b, kernel_shape=(2, 2), strides=(2, 2))
            f = Reshape(p, shape=(0, -1))
            y = Gemm(f, w2, transB=1)
            return y
        """,
        WEIGHTS,
    )


def image(batch: int) -> Array:
    return RNG.standard_normal((batch, 3, 16, 16)).astype(np.float32)


def by_torch(x: Array) -> dict[str, Array]:
    a = F.conv2d(torch.from_numpy(x), torch.from_numpy(W1), padding=1)
    p = F.max_pool2d(a.relu(), 2)
    y = F.linear(p.flatten(1), torch.from_numpy(W2))
    return {"a": a.numpy(), "b": a.relu().numpy(), "p": p.numpy(), "f": p.flatten(1).numpy(), "y": y.numpy()}


def test_outputs_are_those_of_torch_for_any_batch() -> None:
    executor = Executor(net(), threads=1)
    for batch in (1, 3):
        x = image(batch)
        result = executor.run({"x": x})
        assert list(result) == ["y"]
        np.testing.assert_allclose(result["y"], by_torch(x)["y"], rtol=1e-4, atol=1e-4)


def test_every_inner_value_can_be_had() -> None:
    executor = Executor(net(), threads=1)
    x = image(2)
    result = executor.run({"x": x}, executor.results)
    assert list(result) == ["a", "b", "p", "f", "y"]
    for name, expected in by_torch(x).items():
        np.testing.assert_allclose(result[name], expected, rtol=1e-4, atol=1e-4, err_msg=name)


def test_inputs_and_weights_can_be_asked_for() -> None:
    x = image(1)
    result = Executor(net(), threads=1).run({"x": x}, ["w1", "x", "b"])
    np.testing.assert_array_equal(result["w1"], W1)
    np.testing.assert_array_equal(result["x"], x)
    np.testing.assert_allclose(result["b"], by_torch(x)["b"], rtol=1e-4, atol=1e-4)


def test_what_the_asked_values_do_not_need_is_not_run() -> None:
    broken = Graph.parse("def g(x: float32[2]):\n  a = Relu(x)\n  y = Neg(a)\n  return y\n")
    broken.nodes[1].op = hub.Gather(axis=7)  # onnxruntime refuses it
    broken.nodes[1].inputs = [broken.nodes[0].outputs[0], broken.nodes[0].outputs[0]]
    executor = Executor(broken, threads=1)
    np.testing.assert_array_equal(executor.run({"x": np.array([-1, 2], "f4")}, ["a"])["a"], [0, 2])
    with pytest.raises(CaffeforgeError, match=r"^y: onnxruntime refuses the graph: \w\w"):
        executor.run({"x": np.array([-1, 2], "f4")})


def test_weights_are_read_where_they_lie() -> None:
    w = np.ones((32, 32), np.float32)
    graph = Graph.parse(
        "def g(x: float32[1, 32], *, w: float32[32, 32]):\n  y = MatMul(x, w)\n  return y\n", {"w": Dense(w)}
    )
    executor = Executor(graph, threads=1)
    x = np.ones((1, 32), np.float32)
    np.testing.assert_array_equal(executor.run({"x": x})["y"], np.full((1, 32), 32))
    w *= 2  # no copy was made, so the next run sees it
    np.testing.assert_array_equal(executor.run({"x": x})["y"], np.full((1, 32), 64))


@pytest.mark.parametrize("offset", [0, 3], ids=["aligned", "odd address"])
def test_weights_may_lie_in_a_mapped_file(tmp_path: Path, offset: int) -> None:
    file = tmp_path / "weights"
    file.write_bytes(b"\0" * offset + W2.tobytes())
    mapped = np.memmap(file, np.uint8, "r")[offset:].view(np.float32).reshape(W2.shape)
    graph = Graph.parse(
        "def g(x: float32[2, 512], *, w: float32[10, 512]):\n  y = Gemm(x, w, transB=1)\n  return y\n",
        {"w": Dense(mapped)},
    )
    x = RNG.standard_normal((2, 512)).astype(np.float32)
    np.testing.assert_allclose(Executor(graph, threads=1).run({"x": x})["y"], x @ W2.T, rtol=1e-4, atol=1e-4)


def test_lazy_weights_are_computed() -> None:
    graph = Graph.parse(
        "def g(x: float32[2, 512], *, w: float32[512, 10], b: float32[10]):\n"
        "  m = MatMul(x, w)\n  y = Add(m, b)\n  return y\n",
        {"w": transpose(Dense(W2), (1, 0)), "b": Full((10,), 2.0)},
    )
    x = RNG.standard_normal((2, 512)).astype(np.float32)
    np.testing.assert_allclose(
        Executor(graph, threads=1).run({"x": x})["y"], x @ W2.T + 2, rtol=1e-4, atol=1e-4
    )


def test_a_graph_without_nodes_gives_its_input() -> None:
    x = Value("x", "float32", (2,))
    executor = Executor(Graph("same", [x], [x], []))
    np.testing.assert_array_equal(executor.run({"x": np.array([1, 2], "f4")})["x"], [1, 2])


def test_inputs_that_nothing_reads_are_still_checked() -> None:
    graph = Graph.parse("def g(x: float32[2], z: int64[1]):\n  y = Relu(x)\n  return y\n")
    executor = Executor(graph, threads=1)
    x, z = np.array([-1, 1], "f4"), np.zeros(1, np.int64)
    np.testing.assert_array_equal(executor.run({"x": x, "z": z})["y"], [0, 1])
    with pytest.raises(CaffeforgeError, match=r"input z is missing, expected int64\[1\]"):
        executor.run({"x": x})


def test_arrays_in_any_memory_order_are_taken() -> None:
    x = np.asfortranarray(image(2))
    np.testing.assert_allclose(
        Executor(net(), threads=1).run({"x": x})["y"],
        by_torch(np.ascontiguousarray(x))["y"],
        rtol=1e-4,
        atol=1e-4,
    )
    big_endian = x.astype(">f4")
    np.testing.assert_array_equal(Executor(net()).run({"x": big_endian}, ["x"])["x"], x)


def pair() -> Graph:
    return Graph.parse("def g(a: float32[n, 2], b: float32[n, 2]):\n  y = Add(a, b)\n  return y\n")


@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        ({}, r"input a is missing, expected float32\[n, 2\]"),
        ({"a": np.zeros((1, 2), "f4"), "c": np.zeros(1)}, "there is no input c, the graph takes a, b"),
        ({"a": np.zeros((1, 2)), "b": np.zeros((1, 2))}, r"input a is float64, expected float32\[n, 2\]"),
        ({"a": np.zeros((1, 3), "f4")}, r"input a has shape \[1, 3\], expected float32\[n, 2\]"),
        ({"a": np.zeros(2, "f4")}, r"input a has shape \[2\], expected float32\[n, 2\]"),
        ({"a": [[1.0, 2.0]]}, "input a is a list, expected a NumPy array"),
        (
            {"a": np.zeros((1, 2), "f4"), "b": np.zeros((3, 2), "f4")},
            "input b has n = 3, but input a has n = 1",
        ),
    ],
)
def test_a_wrong_input_is_named_with_what_was_expected(inputs: Mapping[str, Array], sentence: str) -> None:
    with pytest.raises(CaffeforgeError, match=sentence):
        Executor(pair(), threads=1).run(inputs)


def test_unknown_values_and_providers_are_refused() -> None:
    with pytest.raises(UsageError, match="the graph has no value q"):
        Executor(pair()).run({"a": np.zeros((1, 2), "f4"), "b": np.zeros((1, 2), "f4")}, ["q"])
    with pytest.raises(UsageError, match="no provider is given"):
        Executor(pair(), providers=())


@pytest.mark.skipif("CUDAExecutionProvider" in onnxruntime.get_available_providers(), reason="CUDA is here")
def test_cuda_where_there_is_none_is_refused_with_what_there_is() -> None:
    with pytest.raises(UsageError, match=r"no CUDAExecutionProvider here, it has .*CPU"):
        Executor(pair(), providers=("CUDAExecutionProvider",))


def test_a_graph_that_declares_wrong_sizes_is_refused() -> None:
    x = Value("x", "float32", (Symbol("n"), 3))
    y = Value("y", "float32", (Symbol("m"), 3))
    z = Value("z", "float32", (Symbol("n"), 3))
    graph = Graph(
        "g", [x], [z], [Node("cat", hub.Concat(axis=0), [x, x], [y]), Node("relu", hub.Relu(), [y], [z])]
    )
    with pytest.raises(GraphError, match=r"z is declared float32\[n, 3\], but float32\[4, 3\] was computed"):
        Executor(graph, threads=1).run({"x": np.zeros((2, 3), "f4")})


def test_ops_that_onnxruntime_knows_at_an_older_opset_only_run_too() -> None:
    graph = Graph.parse(
        """
        def g(x: float32[1, 2, 6, 6], rois: float32[2, 5]):
            a = Swish(x)
            p = MaxRoiPool(a, rois, pooled_shape=(2, 2))
            y = Neg(p)
            return y
        """
    )
    x = RNG.standard_normal((1, 2, 6, 6)).astype(np.float32)
    rois = np.array([[0, 0, 0, 5, 5], [0, 2, 2, 5, 5]], np.float32)  # batch, x1, y1, x2, y2, ends included
    swish = F.silu(torch.from_numpy(x))
    whole, corner = F.max_pool2d(swish, 3), F.max_pool2d(swish[:, :, 2:, 2:], 2)
    result = Executor(graph, threads=1).run({"x": x, "rois": rois})["y"]
    np.testing.assert_allclose(result, -torch.cat([whole, corner]).numpy(), rtol=1e-5, atol=1e-6)


class Twice(Op):
    """An op that ONNX lacks."""

    __slots__ = ()
    op_type, domain = "Twice", "test"
    inputs, outputs = (Formal("X"),), (Formal("Y"),)


def with_islands() -> Graph:
    x = Value("x", "float32", (2, 3))
    a, b, c, d, y = (Value(name, "float32", (2, 3)) for name in "abcdy")
    one = constant("one", Dense(np.ones((2, 3), np.float32)))
    nodes = [
        Node("n1", hub.Relu(), [x], [a]),
        Node("n2", Twice(), [a], [b]),
        Node("n3", Twice(), [one], [c]),
        Node("n4", hub.Add(), [b, c], [d]),
        Node("n5", hub.Add(), [d, a], [y]),  # reads over the island
    ]
    return Graph("islands", [x], [y], nodes)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    monkeypatch.setattr(reference, "_references", {})

    def register(op_class: type[Op], function: Callable[..., Sequence[Array]]) -> None:
        reference.reference(op_class)(function)

    return register


def test_ops_that_onnx_lacks_run_by_their_reference_between_sessions(registered: Callable[..., None]) -> None:
    registered(Twice, lambda op, operands: [operands[0] * 2])
    x = RNG.standard_normal((2, 3)).astype(np.float32)
    executor = Executor(with_islands(), threads=1)
    a = np.maximum(x, 0)
    np.testing.assert_allclose(executor.run({"x": x})["y"], 3 * a + 2, rtol=1e-6)
    inner = executor.run({"x": x}, executor.results)
    for name, expected in {
        "a": a,
        "b": 2 * a,
        "c": np.full((2, 3), 2),
        "d": 2 * a + 2,
        "y": 3 * a + 2,
    }.items():
        np.testing.assert_allclose(inner[name], expected, rtol=1e-6, err_msg=name)


def test_an_op_without_a_reference_is_refused_at_once(registered: Callable[..., None]) -> None:
    with pytest.raises(GraphError, match=r"n2: test\.Twice is not an ONNX operator and has no reference"):
        Executor(with_islands())


def test_a_reference_must_give_every_result(registered: Callable[..., None]) -> None:
    registered(Twice, lambda op, operands: [])
    with pytest.raises(GraphError, match=r"n2: the reference of test\.Twice gives 0 results, 1 is due"):
        Executor(with_islands(), threads=1).run({"x": np.ones((2, 3), np.float32)})


def test_what_a_reference_gives_is_checked(registered: Callable[..., None]) -> None:
    registered(Twice, lambda op, operands: [operands[0].astype(np.float64)])
    x = np.ones((2, 3), np.float32)
    with pytest.raises(GraphError, match=r"b is declared float32\[2, 3\], but float64\[2, 3\] was computed"):
        Executor(with_islands(), threads=1).run({"x": x})


def test_values_that_a_reference_cannot_take_are_told_in_a_sentence(registered: Callable[..., None]) -> None:
    registered(Twice, lambda op, operands: [operands[0][[5]]])
    with pytest.raises(
        CaffeforgeError, match=r"node n2: test\.Twice cannot be computed from these values: index 5"
    ):
        Executor(with_islands(), threads=1).run({"x": np.ones((2, 3), np.float32)})
