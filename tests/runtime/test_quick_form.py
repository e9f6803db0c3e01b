"""Graphs in the form for onnxruntime's optimizer: which ops are left, and that they compute the same."""

from __future__ import annotations

import numpy as np
import pytest

from caffeforge.runtime.array import Array, Dense, Full
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.graph import Graph
from caffeforge.runtime.quick_form import quick_form

SIX = {"six": Full((2, 3, 7, 7), -6.0), "minus": Full((), -1.0), "one": Full((), 1.0)}
HEAD = "def g(x: float32[2, 3, 7, 7], *, six: float32[2, 3, 7, 7], minus: float32[], one: float32[]):\n"
BOUND = "ReduceMean(x, axes=(0, 1, 2, 3), keepdims=0)"
POOL = "def g(x: float32[2, 3, 6, 6]):\n"

CASES = {
    "relu6 as Caffe has it": (
        HEAD
        + "  r = Relu(x)\n  c = Identity(six)\n  n = Mul(r, minus)\n  m = Max(n, c)\n  y = Mul(m, minus)\n"
        "  return y\n",
        ["Clip"],
    ),
    "two bounds that cross": (
        HEAD + "  a = Min(x, six)\n  y = Max(a, one)\n  return y\n",
        ["Clip", "Clip"],
    ),
    "two bounds that cross, of the negative": (
        HEAD + "  r = Relu(x)\n  n = Mul(r, minus)\n  b = Clip(n, min=2.0, max=1.0)\n  y = Mul(b, minus)\n"
        "  return y\n",
        ["Relu", "Mul", "Clip", "Mul"],
    ),
    "a bound that is computed": (
        HEAD + f"  o = {BOUND}\n  r = Relu(x)\n  y = Clip(r, o)\n  return y\n",
        ["ReduceMean", "Relu", "Clip"],
    ),
    "a bound of the negative that is computed": (
        HEAD + f"  o = {BOUND}\n  r = Relu(x)\n  n = Mul(r, minus)\n  b = Clip(n, o)\n"
        "  y = Mul(b, minus)\n  return y\n",
        ["ReduceMean", "Relu", "Mul", "Clip", "Mul"],
    ),
    "a bound that is read too": (
        HEAD + "  a = Max(one, x)\n  b = Min(a, one)\n  y = Add(a, b)\n  return y\n",
        ["Clip", "Clip", "Add"],
    ),
    "a bound that is an output": (
        HEAD + "  r = Relu(x)\n  y = Max(r, one)\n  return r, y\n",
        ["Relu", "Clip"],
    ),
    "a factor that is no sign": (
        HEAD + "  n = Mul(x, minus)\n  m = Max(n, six)\n  y = Mul(m, six)\n  return y\n",
        ["Mul", "Clip", "Mul"],
    ),
    "a number that makes the result larger": (
        "def g(x: float32[3], *, wide: float32[2, 3]):\n  y = Max(x, wide)\n  return y\n",
        ["Max"],
    ),
    "a pool of Caffe, cut": (
        POOL + "  p = MaxPool(x, kernel_shape=(3, 3), pads=(1, 1, 2, 2), strides=(2, 2))\n"
        "  a, b = Split(p, axis=2, split=(3, 1))\n  y, d = Split(a, axis=3, split=(3, 1))\n  return y\n",
        ["MaxPool"],
    ),
    "a pool whose rest is read": (
        POOL + "  p = MaxPool(x, kernel_shape=(3, 3), pads=(1, 1, 2, 2), strides=(2, 2))\n"
        "  a, b = Split(p, axis=2, split=(3, 1))\n  return a, b\n",
        ["MaxPool", "Split"],
    ),
    "a pool that would keep a window": (
        POOL + "  p = MaxPool(x, kernel_shape=(1, 1), strides=(1, 1))\n"
        "  a, b = Split(p, axis=2, split=(3, 3))\n  return a\n",
        ["MaxPool", "Split"],
    ),
    "a pool cut by channels": (
        POOL + "  p = MaxPool(x, kernel_shape=(2, 2))\n  a, b = Split(p, axis=1, split=(2, 1))\n  return a\n",
        ["MaxPool", "Split"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_fewer_nodes_compute_the_same(case: str) -> None:
    text, ops = CASES[case]
    wide: dict[str, Array] = {"wide": Full((2, 3), 0.5)}
    graph = Graph.parse(text, SIX | wide)
    before = graph.dump()
    quick = quick_form(graph)
    quick.verify()
    assert [node.op.op_type for node in quick.nodes] == ops
    assert graph.dump() == before
    x = np.random.default_rng(0).normal(0, 5, graph.inputs[0].shape[:]).astype(np.float32)
    executor, names = Executor(graph), [value.name for value in graph.outputs]
    as_written = executor.run({"x": x}, executor.results)
    for name, array in executor.run({"x": x}, names).items():
        np.testing.assert_array_equal(array, as_written[name])


def test_convolution_and_normalization_are_one_for_the_optimizer() -> None:
    rng = np.random.default_rng(1)
    shapes: dict[str, tuple[int, ...]] = {
        "w": (300, 3, 3, 3), "s": (300,), "b": (300,), "m": (300,), "v": (300,), "k": (300, 1, 1),
    }  # fmt: skip
    weights = {name: Dense(rng.uniform(0.5, 2, shape).astype(np.float32)) for name, shape in shapes.items()}
    stars = ", ".join(f"{name}: float32[{', '.join(map(str, shape))}]" for name, shape in shapes.items())
    graph = Graph.parse(
        f"def g(x: float32[2, 3, 7, 7], *, {stars}):\n  c = Conv(x, w, kernel_shape=(3, 3))\n"
        "  n = BatchNormalization(c, s, b, m, v)\n  p = Mul(n, k)\n  y = Add(p, k)\n  return y\n",
        weights,
    )
    x = rng.standard_normal((2, 3, 7, 7)).astype(np.float32)
    executor = Executor(graph)
    as_written = executor.run({"x": x}, ["c", "y"])
    np.testing.assert_allclose(executor.run({"x": x})["y"], as_written["y"], rtol=1e-4, atol=1e-4)
