"""Ops that all backends say by other ops, as Caffe's layers: real Caffe against onnxruntime and NumPy."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import interpolate

from caffeforge.generated.hub.examples import EXAMPLES
from caffeforge.generated.hub.lowerings import RULES
from caffeforge.runtime.array import Dense
from caffeforge.runtime.graph import Graph
from caffeforge.runtime.notation import constants_of
from tests.e2e.layer_cases import Floats, Random, difference
from tests.e2e.op_cases import OpCase, check, written
from tests.real_caffe.witness import Witness

NAMES = {op.op_type for op in RULES}

PARTIAL = ("Acosh", "Atanh", "ReduceLogSum")  # of some numbers they are NaN


@dataclass(frozen=True)
class Example(OpCase):
    """An example of a rule, which is a graph already."""

    def graph(self) -> Graph:
        """Return the graph, with random constants."""
        r = Random(1)
        return Graph.parse(
            self.text, {name: Dense(r.positive(*shape)) for name, shape in constants_of(self.text).items()}
        )


def examples() -> list[OpCase]:
    """Return all that read floats and give numbers for any of them.

    Not an antialiased Resize: ours is PyTorch's, and onnxruntime's another.
    """
    found = [(name, text) for name, _, text in EXAMPLES if name in NAMES and "antialias" not in text]
    floats = [(n, t) for n, t in found if t.startswith("def example(x0") and not re.search(r"x\d: int64", t)]
    return [Example(text, varies=name != "IsNaN") for name, text in floats if name not in PARTIAL]


def test_examples_of_all_lowerings(caffe: Witness, tmp_path: Path) -> None:
    check(examples(), caffe, tmp_path)


def test_second_caffe_agrees(kendryte: Witness, tmp_path: Path) -> None:
    check(examples(), kendryte, tmp_path)


def angles() -> Floats:
    return Random(2).generator.uniform(-300, 300, (2, 3, 40)).astype(np.float32)


def halves() -> Floats:
    """Return numbers with and without a fraction of one half, of both signs."""
    return (Random(3).generator.integers(-9, 9, (2, 3, 40)) / 2).astype(np.float32)


def test_antialiased_resize_is_pytorchs(caffe: Witness, tmp_path: Path) -> None:
    filtered = "mode='linear', antialias=1, exclude_outside=1"
    text = f"(x: float32[1, 2, 9, 8]): y = Resize(x, None, sizes=(1, 2, 4, 3), {filtered})"
    _, prototxt, caffemodel = written([OpCase(text).graph()], tmp_path)
    x = Random(5).normal(1, 2, 9, 8)
    expected = interpolate(torch.from_numpy(x), (4, 3), mode="bilinear", antialias=True).numpy()
    assert difference(caffe.run(prototxt, caffemodel, {"x": x})["y"], expected) < 1e-5


@pytest.mark.parametrize("op", ["Sin", "Cos"])
def test_functions_of_large_angles(op: str, caffe: Witness, tmp_path: Path) -> None:
    def exact(x: Any) -> Any:
        return {"Sin": np.sin, "Cos": np.cos}[op](x.astype(np.float64))

    case = OpCase(f"(x: float32[2, 3, 40]): y = {op}(x)", [angles()], expected=exact)
    assert check([case], caffe, tmp_path) < 1e-6


@pytest.mark.parametrize("op", ["Round", "Floor", "Ceil", "Sign"])
def test_rounding_is_exact(op: str, caffe: Witness, tmp_path: Path) -> None:
    functions: dict[str, Callable[..., Any]] = {
        "Round": np.round,
        "Floor": np.floor,
        "Ceil": np.ceil,
        "Sign": np.sign,
    }
    numbers = [halves(), angles(), (angles() * 1e4).astype(np.float32)]
    text = f"(x: float32[2, 3, 40]): y = {op}(x)"
    assert check([OpCase(text, [x], expected=functions[op]) for x in numbers], caffe, tmp_path) == 0


def test_largest_and_smallest_elements(caffe: Witness, tmp_path: Path) -> None:
    """Also of equal elements: torch's are as ONNX's, the first ones first."""
    head = "(x: float32[2, 9, 4]): y, z = TopK(x, "
    settings = (
        "K=3, axis=1",
        "K=9, axis=1",
        "K=2, axis=-1, largest=0",
        "K=1, axis=1, largest=0",
        "K=2, axis=2",
    )
    cases = [OpCase(f"{head}{text})") for text in settings]
    cases += [
        OpCase(f"{head}{text})", [ties], varies=False) for text in settings for ties in [whole_numbers()]
    ]
    cases += [OpCase("(x: float32[1, 7]): y, z = TopK(x, K=4, axis=1, largest=0)")]
    assert check(cases, caffe, tmp_path) == 0


def whole_numbers() -> Floats:
    """Return few different numbers, so that many are equal."""
    return Random(6).generator.integers(-2, 3, (2, 9, 4)).astype(np.float32)


def test_others(caffe: Witness, tmp_path: Path) -> None:
    r = Random(4)
    places = r.generator.integers(0, 5, (2, 3))
    two = "*, s: float32[] = 0): a = Greater(x, s); b = Greater(z, s)"
    cases = [
        OpCase("(x: float32[2, 3, 40]): y = Acosh(x)", [np.abs(angles()) + 1]),
        OpCase("(x: float32[2, 3, 40]): y = Shrink(x)", [halves()]),
        OpCase("(x: float32[2, 3, 40]): y = Shrink(x, bias=0.3, lambd=0.4)", [halves()]),
        OpCase("(i: int64[2, 3], *, v: float32[2] = (0.5, 2.0)): y = OneHot(i, None, v, depth=5)", [places]),
        OpCase(
            "(i: int64[2, 3], *, v: float32[2] = (0, 1)): y = OneHot(i, None, v, depth=5, axis=1)", [places]
        ),
        OpCase("(x: float32[2, 5, 4]): y, z = TopK(x, K=1, axis=1)"),
        OpCase(
            "(x: float32[2, 4]): y = IsNaN(x)",
            [np.array([[0, np.nan, -1, 1], [-np.inf, np.inf, -np.nan, 9]])],
        ),
        OpCase(
            "(x: float32[2, 8, 9]): "
            "y = Col2Im(x, image_shape=(5, 6), block_shape=(2, 2), dilations=(2, 1), strides=(1, 2))"
        ),
        OpCase(f"(x: float32[2, 4, 5], z: float32[4, 5], {two}; y = Xor(a, b)"),
    ]
    check(cases, caffe, tmp_path)
