"""Elementwise ops and broadcasting of every shape as layers: real Caffe against onnxruntime and NumPy."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.e2e.layer_cases import Random
from tests.e2e.op_cases import OpCase, check
from tests.real_caffe.witness import Witness

X = (3, 5, 4, 7)
TEXT = "float32[3, 5, 4, 7]"

# Shapes that broadcast into (3, 5, 4, 7): every run of axes, with gaps, and one element.
OPERANDS: tuple[tuple[int, ...], ...] = (
    (5, 1, 1),
    (5, 4, 7),
    (5, 4, 1),
    (4, 7),
    (4, 1),
    (7,),
    (1,),
    (1, 1, 1, 1),
    (1, 5, 1, 1),
    (1, 5, 1, 7),
    (1, 1, 4, 7),
    (3, 1, 1, 1),
    (3, 5, 1, 1),
    (3, 5, 4, 1),
    (3, 1, 4, 1),
    (3, 1, 1, 7),
    (3, 1, 4, 7),
    (3, 5, 1, 7),
)

# Pairs of which each is repeated along some axis of the other, and pairs of other ranks.
PAIRS = (
    ((3, 5, 1, 1), (3, 1, 4, 7)),
    ((3, 5, 4, 1), (1, 5, 4, 7)),
    ((3, 5, 1, 1), (1, 1, 4, 7)),
    ((1, 5, 4, 7), (1, 1, 4, 7)),
    ((1, 5, 4, 7), (1, 5, 1, 1)),
    ((1, 5, 4, 7), (1, 1, 1, 1)),
    ((3, 5), (3, 1)),
    ((3, 5), (5,)),
    ((5,), (3, 1)),
    ((2, 3, 4), (2, 3, 1)),
    ((2, 1, 4), (3, 1)),
    ((2, 3, 4, 5, 6), (3, 1, 5, 1)),
)

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
}

UNARY: dict[str, Callable[[Any], Any]] = {
    "Abs": np.abs,
    "Elu(x, alpha=0.7)": lambda x: np.where(x > 0, x, 0.7 * np.expm1(x)),
    "Exp": np.exp,
    "HardSigmoid(x, alpha=0.3, beta=0.4)": lambda x: np.clip(0.3 * x + 0.4, 0, 1),
    "Identity": lambda x: x,
    "LeakyRelu(x, alpha=0.2)": lambda x: np.where(x > 0, x, 0.2 * x),
    "Neg": np.negative,
    "Relu": lambda x: np.maximum(x, 0),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Softplus": lambda x: np.logaddexp(x, 0),
    "Tanh": np.tanh,
    "Clip(x, min=-0.5)": lambda x: np.maximum(x, -0.5),
    "Clip(x, max=0.7)": lambda x: np.minimum(x, 0.7),
    "Clip(x, min=-0.2, max=0.9)": lambda x: np.clip(x, -0.2, 0.9),
    "Clip(x, min=0.0, max=0.6)": lambda x: np.clip(x, 0, 0.6),
    "Clip(x, min=0.0)": lambda x: np.maximum(x, 0),
    "Clip": lambda x: x,
}

OF_POSITIVE: dict[str, Callable[[Any], Any]] = {
    "Log": np.log,
    "Reciprocal": lambda x: 1 / x,
    "Sqrt": np.sqrt,
}


def listed(shape: tuple[int, ...]) -> str:
    return f"float32[{', '.join(map(str, shape))}]"


def wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of NumPy that computes in float64."""
    return lambda *given: function(*(np.asarray(array, np.float64) for array in given))


def call(op: str) -> str:
    return op if "(" in op else f"{op}(x)"


def test_unary_ops(caffe: Witness, tmp_path: Path) -> None:
    r = Random(1)
    cases = [
        OpCase(f"(x: {TEXT}): y = {call(op)}", [r.normal(*X, scale=2)], expected=wide(function))
        for op, function in UNARY.items()
    ]
    cases += [
        OpCase(f"(x: {TEXT}): y = {call(op)}", [r.positive(*X)], expected=wide(function))
        for op, function in OF_POSITIVE.items()
    ]
    check(cases, caffe, tmp_path)


def with_constants(op: str, function: Callable[[Any, Any], Any]) -> list[OpCase]:
    r = Random(2)
    made = []
    for shape in OPERANDS:
        w = r.positive(*shape)
        text = f"*, w: {listed(shape)}"

        def swapped(x: Any, w: Any = w) -> Any:
            return wide(function)(w, x)

        def straight(x: Any, w: Any = w) -> Any:
            return wide(function)(x, w)

        made.append(OpCase(f"(x: {TEXT}, {text}): y = {op}(x, w)", [r.normal(*X)], [w], straight))
        made.append(OpCase(f"(x: {TEXT}, {text}): y = {op}(w, x)", [r.positive(*X)], [w], swapped))
    small, large = r.positive(3, 5, 1, 1), r.positive(5, 4, 7)
    made.append(
        OpCase(
            f"(x: {listed(small.shape)}, *, w: {listed(large.shape)}): y = {op}(x, w)",
            [small],
            [large],
            lambda x: wide(function)(x, large),
        )
    )
    scalar = OpCase(
        f"(x: {TEXT}, *, w: float32[] = 2.5): y = {op}(x, w)",
        expected=lambda x: wide(function)(x, np.float64(2.5)),
    )
    return [*made, scalar]


def of_two(op: str, function: Callable[[Any, Any], Any]) -> list[OpCase]:
    r = Random(3)
    pairs = [(X, X), *((X, shape) for shape in OPERANDS), *((shape, X) for shape in OPERANDS), *PAIRS]
    return [
        OpCase(
            f"(x: {listed(a)}, z: {listed(b)}): y = {op}(x, z)",
            [r.normal(*a), r.positive(*b)],
            expected=wide(function),
        )
        for a, b in pairs
    ]


@pytest.mark.parametrize("op", ARITHMETIC)
def test_arithmetic_with_a_constant(op: str, caffe: Witness, tmp_path: Path) -> None:
    check(with_constants(op, ARITHMETIC[op]), caffe, tmp_path)


@pytest.mark.parametrize("op", ARITHMETIC)
def test_arithmetic_of_two_tensors(op: str, caffe: Witness, tmp_path: Path) -> None:
    check(of_two(op, ARITHMETIC[op]), caffe, tmp_path)


def test_second_caffe_agrees(kendryte: Witness, tmp_path: Path) -> None:
    cases = [c for op, f in ARITHMETIC.items() for c in (*with_constants(op, f), *of_two(op, f))]
    check(cases, kendryte, tmp_path)


@pytest.mark.parametrize("exponent", [2.0, 3.0, 0.5, -1.5, -2.0])
def test_power_with_a_known_exponent(exponent: float, caffe: Witness, tmp_path: Path) -> None:
    x = Random(4).positive(*X)
    case = OpCase(
        f"(x: {TEXT}, *, e: float32[] = {exponent}): y = Pow(x, e)", [x], expected=wide(lambda x: x**exponent)
    )
    check([case], caffe, tmp_path)


def test_power_of_a_known_base(caffe: Witness, tmp_path: Path) -> None:
    case = OpCase(f"(x: {TEXT}, *, b: float32[] = 2.5): y = Pow(b, x)", expected=wide(lambda x: 2.5**x))
    check([case], caffe, tmp_path)


def test_prelu_of_every_slope(caffe: Witness, tmp_path: Path) -> None:
    r = Random(5)
    made = []
    for shape in ((5, 1, 1), (1,), (1, 1, 1), (5, 4, 7), (7,), (4, 1)):
        slope = r.normal(*shape)

        def prelu(x: Any, slope: Any = slope) -> Any:
            return np.where(x > 0, x, x.astype(np.float64) * slope)

        text = f"(x: {TEXT}, *, s: {listed(shape)}): y = PRelu(x, s)"
        made.append(OpCase(text, [r.normal(*X)], [slope], prelu))
    made.append(OpCase("(x: float32[3, 5], *, s: float32[5]): y = PRelu(x, s)", weights=[r.normal(5)]))
    check(made, caffe, tmp_path)


def test_maximum_minimum_sum_and_mean(caffe: Witness, tmp_path: Path) -> None:
    r = Random(6)
    three = f"(x: {TEXT}, z: {TEXT}, w: {TEXT}): y = "
    made = [OpCase(f"{three}{op}(x, z, w)") for op in ("Max", "Min", "Sum", "Mean")]
    for op in ("Max", "Min", "Sum"):
        made += [
            OpCase(f"(x: {TEXT}, z: float32[5, 1, 1], w: float32[3, 1, 4, 1]): y = {op}(x, z, w)"),
            OpCase(f"(x: {TEXT}): y = {op}(x)"),
        ]
    for op in ("Max", "Min"):
        made += [
            OpCase(f"(x: {TEXT}, *, w: float32[5, 1, 1]): y = {op}(x, w)", weights=[r.normal(5, 1, 1)]),
            OpCase(f"(x: {TEXT}, *, w: float32[4, 7]): y = {op}(w, x)", weights=[r.normal(4, 7)]),
            OpCase(f"(x: {TEXT}, *, w: float32[] = 0.3): y = {op}(x, w)"),
            OpCase(f"(x: {TEXT}, *, w: float32[1] = (0.3,)): y = {op}(w, x)"),
        ]
    check(made, caffe, tmp_path)


def test_comparisons_and_logic(caffe: Witness, tmp_path: Path) -> None:
    r = Random(7)
    made = []
    for op in ("Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal"):
        x, z = r.whole(3, 2, 3, 4), r.whole(3, 2, 3, 4)
        made += [
            OpCase(f"(x: float32[2, 3, 4], z: float32[2, 3, 4]): y = {op}(x, z)", [x, z]),
            OpCase(f"(x: float32[2, 3, 4], z: float32[3, 1]): y = {op}(x, z)", [x, r.whole(3, 3, 1)]),
            OpCase(f"(x: float32[2, 3, 4], *, z: float32[] = 1): y = {op}(x, z)", [x]),
            OpCase(f"(x: float32[2, 3, 4], *, z: float32[] = 1): y = {op}(z, x)", [x]),
        ]
    two = (
        "(x: float32[2, 3, 4], z: float32[3, 1], *, s: float32[] = 0): a = Greater(x, s); b = Greater(z, s); "
    )
    made += [OpCase(f"{two}y = {op}(a, b)") for op in ("And", "Or")]
    one = "(x: float32[2, 3, 4], *, s: float32[] = 0): a = Greater(x, s); "
    made.append(OpCase(f"{one}b = Not(a); y = Cast(b, to=1)"))
    check(made, caffe, tmp_path)


def test_where(caffe: Witness, tmp_path: Path) -> None:
    mask = Random(8).normal(3, 4) > 0
    made = [
        OpCase(
            "(x: float32[2, 3, 4], z: float32[2, 3, 4], w: float32[1, 3, 1], *, s: float32[] = 0): "
            "a = Greater(x, s); y = Where(a, z, w)"
        ),
        OpCase("(x: float32[2, 3, 4], *, s: float32[] = 0): a = Greater(x, s); y = Where(a, x, s)"),
        OpCase(
            "(x: float32[2, 3, 4], *, m: bool[3, 4], s: float32[] = 2): y = Where(m, x, s)", weights=[mask]
        ),
        OpCase(
            "(x: float32[2, 3, 4], *, m: bool[3, 4], s: float32[] = 2): y = Where(m, s, x)", weights=[mask]
        ),
    ]
    check(made, caffe, tmp_path)


@pytest.mark.parametrize("bounds", ["min=0.0, max=6.0", "min=-1.0, max=1.0", "min=-1.0", "max=6.0"])
def test_clip_keeps_small_numbers_bit_by_bit(bounds: str, caffe: Witness, tmp_path: Path) -> None:
    x = Random(9).normal(*X, scale=1e-4)
    x[0, 0] = Random(10).normal(4, 7, scale=100)
    assert check([OpCase(f"(x: {TEXT}): y = Clip(x, {bounds})", [x])], caffe, tmp_path) == 0
    case = OpCase(f"(x: {TEXT}): y = Clip(x, {bounds})", [1e-30 * x])
    assert check([case], caffe, tmp_path) == 0
