"""Winograd's form of convolutions: the same numbers as PyTorch's in float64, and where it is taken."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from caffeforge.generated import bvlc, hub
from caffeforge.runtime.array import Dense, NDArray
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.graph import Graph, Node
from caffeforge.runtime.loaded import load
from caffeforge.runtime.sides.caffe_side import CaffeSide
from caffeforge.runtime.winograd import winograd
from caffeforge.runtime.winograd_cost import tile
from caffeforge.runtime.winograd_form import form

ERRORS = {2: 1e-6, 4: 3e-6}  # part of the greatest result; a direct sum in float32 has 3e-7


@pytest.mark.parametrize("size", [2, 4])
def test_matrices_give_the_sums_of_a_convolution(size: int) -> None:
    m, rng = form(size), np.random.default_rng(0)
    assert (m.tile, m.span) == (size, size + 2)
    operands, weights = rng.standard_normal(size + 2), rng.standard_normal(3)
    results = m.results @ ((m.weights @ weights) * (m.operands @ operands))
    np.testing.assert_allclose(results, np.correlate(operands, weights, "valid"), rtol=0, atol=1e-13)


@pytest.mark.parametrize("size", [2, 4])
def test_what_multiplies_operands_and_results_is_exact(size: int) -> None:
    for matrix in (form(size).results, form(size).operands):
        products = np.einsum("ai,bj->abij", matrix, matrix)
        np.testing.assert_array_equal(products, products.astype(np.float32))


def arrays(shapes: Mapping[str, tuple[int, ...]], seed: int = 0) -> dict[str, NDArray]:
    """Return random weights; those of `BatchNormalization` are no such numbers as cancel all else."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, shape in shapes.items():
        normal = name.startswith(("w", "x"))
        found[name] = (rng.standard_normal(shape) if normal else rng.uniform(0.5, 2, shape)).astype(
            np.float32
        )
    return found


def graph_of(
    x: tuple[int, ...], body: str, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[Graph, dict[str, NDArray]]:
    """Return a graph of a float32 input `x`, and its weights."""
    weights = arrays(shapes)
    types = ", ".join(f"{name}: float32[{', '.join(map(str, shape))}]" for name, shape in shapes.items())
    text = (
        f"def g(x: float32[{', '.join(map(str, x))}], *, {types}):\n  {body.replace('; ', chr(10) + '  ')}\n"
    )
    return Graph.parse(text, {name: Dense(array) for name, array in weights.items()}), weights


def is_multiplied(node: Node, size: int) -> bool:
    """Tell whether a node makes the products of a form."""
    op = node.op
    return isinstance(op, hub.Conv) and op.group == (size + 2) ** 2 and op.kernel_shape == (1, 1)


def assert_close(result: NDArray, expected: NDArray, sums: NDArray, size: int) -> None:
    """Compare by the scale of what the convolution yields."""
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=0, atol=ERRORS[size] * np.abs(sums).max())


@pytest.mark.parametrize("pads", [(1, 1, 1, 1), (0, 0, 0, 0), (2, 2, 2, 2), (0, 1, 2, 0), (1, 0, 0, 2)])
@pytest.mark.parametrize("plane", [(8, 12), (13, 7), (3, 4)])
@pytest.mark.parametrize("channels", [(16, 32), (3, 5)])
@pytest.mark.parametrize("size", [2, 4])
def test_convolution_of_any_plane_is_pytorchs(
    pads: tuple[int, ...], plane: tuple[int, int], channels: tuple[int, int], size: int
) -> None:
    ins, outs = channels
    body = f"y = Conv(x, w, b, kernel_shape=(3, 3), pads={pads}); return y"
    graph, weights = graph_of((2, ins, *plane), body, {"w": (outs, ins, 3, 3), "b": (outs,)})
    winograd(graph, lambda node: size)
    graph.verify()
    assert sum(is_multiplied(node, size) for node in graph.nodes) == 1
    x = arrays({"x": (2, ins, *plane)}, 1)["x"]
    given = {name: torch.from_numpy(array).double() for name, array in weights.items()}
    padded = functional.pad(torch.from_numpy(x).double(), (pads[1], pads[3], pads[0], pads[2]))
    expected = functional.conv2d(padded, given["w"], given["b"]).numpy()
    assert_close(Executor(graph, exact=True).run({"x": x})["y"], expected, expected, size)


CONV = "c = Conv(x, w, kernel_shape=(3, 3), pads=(1, 1, 1, 1))"
POOL = "MaxPool(r, kernel_shape=(2, 2), strides=(2, 2))"
BEHIND = {
    "batch norm and scale of Caffe": (
        f"{CONV}; n = BatchNormalization(c, s, b, m, v); p = Mul(n, k); a = Add(p, k); y = Relu(a); return y",
        [],
    ),
    "a scale in front of a sum of channels": (f"{CONV}; p = Mul(k, c); y = Add(p, q); return y", ["Add"]),
    "bounds": (f"{CONV}; y = Clip(c, min=-1.0, max=2.0); return y", []),
    "bounds that are computed": (
        f"o = ReduceMax(x, axes=(0, 1, 2, 3), keepdims=0); u = Neg(o); {CONV}; y = Clip(c, u, o); return y",
        ["ReduceMax", "Neg", "Clip"],
    ),
    "another activation": (f"{CONV}; y = Sigmoid(c); return y", []),
    "two activations": (f"{CONV}; r = Relu(c); y = Sigmoid(r); return y", ["Sigmoid"]),
    "a pool": (f"{CONV}; r = Relu(c); y = {POOL}; return y", []),
    "a pool without activation": (f"{CONV}; r = Add(c, k); y = {POOL}; return y", []),
    "a pool of an activation that may fall": (
        f"{CONV}; r = LeakyRelu(c, alpha=-0.5); y = {POOL}; return y",
        ["MaxPool"],
    ),
    "a pool that overlaps": (
        f"{CONV}; r = Relu(c); y = MaxPool(r, kernel_shape=(3, 3), strides=(2, 2)); return y",
        ["MaxPool"],
    ),
    "a result that is read twice": (f"{CONV}; r = Relu(c); y = Add(r, c); return y", ["Relu", "Add"]),
    "a result that is asked for": (f"{CONV}; y = Relu(c); return c, y", ["Relu"]),
    "an activation that is asked for": (f"{CONV}; r = Relu(c); y = {POOL}; return r, y", ["MaxPool"]),
}


@pytest.mark.parametrize("case", BEHIND)
@pytest.mark.parametrize(("plane", "size"), [((14, 14), 4), ((6, 9), 2), ((5, 10), 4)])
def test_what_follows_is_computed_with_it(case: str, plane: tuple[int, int], size: int) -> None:
    body, left = BEHIND[case]
    shapes = {"w": (16, 16, 3, 3), "k": (16, 1, 1), "q": (16, *plane)}
    shapes |= dict.fromkeys("sbmv", (16,))
    graph, _ = graph_of((1, 16, *plane), body, shapes)
    x = arrays({"x": (1, 16, *plane)}, 1)["x"]
    names = [value.name for value in graph.outputs]
    executor = Executor(graph, exact=True)
    as_written = executor.run({"x": x}, executor.results)
    winograd(graph, lambda node: size)
    graph.verify()
    assert [value.name for value in graph.outputs] == names
    assert [node.op.op_type for node in graph.nodes if "/winograd" not in node.name] == left
    for name, array in Executor(graph, exact=True).run({"x": x}).items():
        assert_close(array, as_written[name], as_written["c"], size)


OTHERS = {
    "stride": "y = Conv(x, w, kernel_shape=(3, 3), strides=(2, 2)); return y",
    "dilation": "y = Conv(x, w, kernel_shape=(3, 3), dilations=(2, 2)); return y",
    "kernel": "y = Conv(x, w5, kernel_shape=(5, 5)); return y",
    "groups": "y = Conv(x, wg, kernel_shape=(3, 3), group=2); return y",
    "weights that are computed": "v = Relu(w); y = Conv(x, v, kernel_shape=(3, 3)); return y",
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_convolutions_stay(case: str) -> None:
    shapes = {"w": (16, 16, 3, 3), "w5": (16, 16, 5, 5), "wg": (16, 8, 3, 3)}
    used = {
        name: shape
        for name, shape in shapes.items()
        if f" {name}," in OTHERS[case] or f"({name})" in OTHERS[case]
    }
    graph, _ = graph_of((1, 16, 14, 14), OTHERS[case], used)
    before = graph.dump()
    winograd(graph, lambda node: 4)
    assert graph.dump() == before


@pytest.mark.parametrize(
    ("ins", "outs", "plane", "fastest"),
    [
        (512, 512, 28, 4),
        (64, 64, 56, 4),
        (512, 512, 14, 2),  # tiles of 4 are as fast and have more weights
        (64, 64, 224, 0),  # memory is what it waits for
        (512, 512, 7, 0),  # weights are
        (32, 32, 28, 0),  # it is done too soon
        (24, 512, 28, 0),  # no whole blocks of channels
    ],
)
def test_form_is_taken_that_was_measured_to_be_the_fastest(
    ins: int, outs: int, plane: int, fastest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "y = Conv(x, w, kernel_shape=(3, 3), pads=(1, 1, 1, 1)); return y"
    graph, _ = graph_of((1, ins, plane, plane), body, {"w": (outs, ins, 3, 3)})
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert tile(graph.nodes[0]) == fastest
    monkeypatch.setattr(platform, "machine", lambda: "another")
    assert tile(graph.nodes[0]) == 0


def test_executor_takes_the_form_for_outputs_alone_and_not_for_exact_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Six layers one behind the other, as deep nets have them: the error stays that of few."""
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    lines, last = [], "x"
    for index in range(6):
        lines.append(f"c{index} = Conv({last}, w{index}, kernel_shape=(3, 3), pads=(1, 1, 1, 1))")
        lines.append(f"r{index} = Relu(c{index})")
        last = f"r{index}"
    body = "; ".join([*lines, f"return {last}"])
    graph, weights = graph_of((1, 96, 28, 28), body, {f"w{index}": (96, 96, 3, 3) for index in range(6)})
    x = arrays({"x": (1, 96, 28, 28)}, 1)["x"]
    expected = torch.from_numpy(x).double()
    for index in range(6):
        expected = functional.conv2d(
            expected, torch.from_numpy(weights[f"w{index}"]).double(), padding=1
        ).relu()
    quick, exact = Executor(graph), Executor(graph, exact=True)
    results = {
        "quick": quick.run({"x": x})[last],
        "exact": exact.run({"x": x})[last],
        "with inner values": quick.run({"x": x}, ["c0", last])[last],
    }
    errors = {name: np.abs(result - expected.numpy()).max() for name, result in results.items()}
    scale = float(expected.abs().max())
    assert errors["quick"] < ERRORS[4] * scale
    assert errors["exact"] < errors["quick"] / 2
    assert errors["with inner values"] < errors["quick"] / 2


def test_comparisons_ask_for_exact_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    torch.manual_seed(0)
    x = torch.randn(1, 96, 28, 28)
    files = bvlc.export(torch.nn.Conv2d(96, 96, 3, padding=1).eval(), (x,), tmp_path / "net", verify=False)
    assert files.caffemodel is not None
    quick, exact = (load(files.prototxt, files.caffemodel, exact=exact) for exact in (False, True))
    feed = {name: x.numpy() for name in exact.inputs}
    ((name, expected),) = exact.run(feed).items()
    side = CaffeSide(files.prototxt, files.caffemodel, "bvlc", ("CPUExecutionProvider",))
    (compared,) = side.run(feed, inner=False).values()
    np.testing.assert_array_equal(compared, expected)
    assert (quick.run(feed)[name] != expected).any(), "a convolution of this size has the form"


def test_what_is_asked_for_later_has_weights_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind ``p`` alone the convolution takes the scale in; with ``c`` it cannot."""
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    shapes = {"w": (96, 96, 3, 3), "k": (96, 1, 1)}
    graph, _ = graph_of((1, 96, 28, 28), f"{CONV}; p = Mul(c, k); return c, p", shapes)
    x = arrays({"x": (1, 96, 28, 28)}, 1)["x"]
    expected = Executor(graph, exact=True).run({"x": x})
    quick = Executor(graph)
    for asked in (None, ["p"], ["c"]):
        for name, array in quick.run({"x": x}, asked).items():
            assert (array != expected[name]).any(), "a convolution of this size has the form"
            assert_close(array, expected[name], expected[name], 4)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("size", [2, 4])
def test_what_is_no_number_spreads_within_tiles_and_not_in_exact_results(
    number: float, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("caffeforge.runtime.executor.tile", lambda node: size)
    graph, _ = graph_of((1, 16, 20, 20), f"{CONV}; return c", {"w": (16, 16, 3, 3)})
    x = arrays({"x": (1, 16, 20, 20)}, 1)["x"]
    x[0, 3, 9, 9] = number
    rows = {}
    for exact in (False, True):
        result = Executor(graph, exact=exact).run({"x": x})["c"]
        lost = ~np.isfinite(result).all(axis=(0, 1))
        np.testing.assert_array_equal(lost, lost.T)  # as far along both axes
        rows[exact] = set(np.flatnonzero(lost.any(axis=0)))
    assert rows[True] == {8, 9, 10}
    assert rows[True] <= rows[False] <= {8, 9, 10, 11}  # whole tiles
