"""Ops that move, pick and pad as layers: real Caffe against onnxruntime and NumPy."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.e2e.layer_cases import Random
from tests.e2e.op_cases import OpCase, check
from tests.real_caffe.witness import Witness


def listed(shape: tuple[int, ...]) -> str:
    return f"float32[{', '.join(map(str, shape))}]"


def transposed(shape: tuple[int, ...], perm: tuple[int, ...]) -> OpCase:
    """Return a case of Transpose."""
    text = f"(x: {listed(shape)}): y = Transpose(x, perm={perm})"
    return OpCase(text, expected=lambda x: np.transpose(x, perm))


def transpose() -> list[OpCase]:
    made = [transposed((2, 3, 4, 5), perm) for perm in itertools.permutations(range(4))]
    made += [transposed((2, 3, 4), perm) for perm in itertools.permutations(range(3))]
    made += [transposed((1, 3, 4, 5), perm) for perm in ((0, 2, 3, 1), (0, 3, 1, 2), (1, 0, 2, 3))]
    made += [transposed((2, 3, 1, 5), perm) for perm in ((0, 2, 3, 1), (0, 3, 2, 1), (2, 0, 1, 3))]
    six = ((0, 3, 4, 1, 5, 2), (0, 1, 3, 2, 4, 5), (0, 5, 4, 3, 2, 1), (0, 1, 4, 2, 5, 3))
    return made + [transposed((2, 3, 2, 2, 3, 2), perm) for perm in six]


def gather() -> list[OpCase]:
    r = Random(1)
    rows = (
        r.generator.integers(0, 7, (3, 4)),
        r.generator.integers(0, 4, (6,)),
        r.generator.integers(0, 4, (2, 3)),
    )
    table, deep = r.normal(7, 5), r.normal(7, 2, 3)
    many = r.generator.permutation(400)
    return [
        OpCase("(x: float32[2, 5, 4], *, i: int64[3] = (4, 0, -2)): y = Gather(x, i, axis=1)"),
        OpCase("(x: float32[2, 5, 4], *, i: int64[6] = (1, 2, 3, 3, 0, 1)): y = Gather(x, i, axis=1)"),
        OpCase("(x: float32[2, 5, 4], *, i: int64[] = -2): y = Gather(x, i, axis=1)"),
        OpCase("(x: float32[2, 5, 4], *, i: int64[2, 2] = ((3, 0), (1, 2))): y = Gather(x, i, axis=-1)"),
        OpCase(
            "(x: float32[2, 400, 3], *, i: int64[400]): y = Gather(x, i, axis=1)",
            weights=[many],
            expected=lambda x: x[:, many],
        ),
        OpCase(
            "(i: int64[3, 4], *, w: float32[7, 5]): y = Gather(w, i, axis=0)",
            [rows[0]],
            [table],
            lambda i: table[i],
        ),
        OpCase(
            "(i: int64[3, 4], *, w: float32[7, 2, 3]): y = Gather(w, i, axis=0)",
            [rows[0]],
            [deep],
            lambda i: deep[i],
        ),
        OpCase(
            "(x: float32[4, 3], i: int64[6]): y = Gather(x, i, axis=0)",
            [r.normal(4, 3), rows[1]],
            expected=lambda x, i: x[i],
        ),
        OpCase(
            "(x: float32[4, 3, 2], i: int64[2, 3]): y = Gather(x, i, axis=0)",
            [r.normal(4, 3, 2), rows[2]],
            expected=lambda x, i: x[i],
        ),
    ]


def slices() -> list[OpCase]:
    """Return cuts: ONNX's fields, and the same in NumPy."""
    every = slice(None)
    cuts: list[tuple[str, tuple[slice, ...]]] = [
        ("starts=(1,), ends=(3,)", (slice(1, 3),)),
        ("starts=(0, 1), ends=(100, -1), axes=(1, 2)", (every, every, slice(1, -1))),
        ("starts=(2,), ends=(4,), axes=(-1,)", (every, every, every, slice(2, 4))),
        ("starts=(1, 1, 0), ends=(4, 3, 2), axes=(1, 2, 3)", (every, slice(1, 4), slice(1, 3), slice(0, 2))),
        ("starts=(-1,), ends=(-100,), axes=(2,), steps=(-1,)", (every, every, slice(None, None, -1))),
        ("starts=(0,), ends=(100,), axes=(1,), steps=(2,)", (every, slice(None, None, 2))),
        (
            "starts=(1, 0), ends=(100, 100), axes=(2, 3), steps=(2, 3)",
            (every, every, slice(1, None, 2), slice(None, None, 3)),
        ),
        ("starts=(5,), ends=(1,), axes=(3,), steps=(-2,)", (every, every, every, slice(5, 1, -2))),
        (
            "starts=(1, 1), ends=(9, 9), axes=(1, 3), steps=(2, 2)",
            (every, slice(1, None, 2), every, slice(1, None, 2)),
        ),
    ]

    def of(cut: tuple[slice, ...]) -> Callable[[Any], Any]:
        return lambda x: x[cut]

    return [OpCase(f"(x: float32[3, 5, 4, 7]): y = Slice(x, {text})", expected=of(cut)) for text, cut in cuts]


def pads() -> list[OpCase]:
    made = []
    named = {"reflect": "reflect", "edge": "edge", "wrap": "wrap", "constant": "constant"}
    for mode, numpy_mode in named.items():
        for pad in (
            (0, 0, 1, 2, 0, 0, 2, 1),
            (0, 0, 0, 1, 0, 0, 1, 0),
            (0, 1, 0, 2, 0, 2, 0, 0),
            (1, 0, 1, 0, 0, 0, 0, 1),
            (0, 0, 0, 0, 0, 0, 0, 0),
        ):
            pairs = list(zip(pad[:4], pad[4:], strict=True))

            def padded(x: Any, pairs: Any = pairs, how: Any = numpy_mode) -> Any:
                return np.pad(x, pairs, how)

            made.append(
                OpCase(f"(x: float32[2, 3, 4, 5]): y = Pad(x, pads={pad}, mode='{mode}')", expected=padded)
            )
        made.append(
            OpCase(f"(x: float32[2, 3, 4, 5]): y = Pad(x, pads=(0, 0, -1, 2, 0, 0, 1, -1), mode='{mode}')")
        )
    for value in (0.0, 2.5, -1.0):
        text = f"Pad(x, pads=(1, 2, 2, 0), axes=(2, -1), constant_value={value})"
        made.append(OpCase(f"(x: float32[2, 3, 4, 5]): y = {text}"))
    made.append(OpCase("(x: float32[2, 3, 4]): y = Pad(x, pads=(1, 2), axes=(2,))"))
    made.append(OpCase("(x: float32[2, 3, 4, 3, 2]): y = Pad(x, pads=(1, 0, 1, 0, 1, 2), axes=(2, 3, 4))"))
    made.append(OpCase("(x: float32[2, 3]): y = Pad(x, pads=(1, 2), axes=(1,))"))
    return made


def shapes() -> list[OpCase]:
    r = Random(2)
    return [
        OpCase("(x: float32[2, 3], *, w: float32[2, 4]): y = Concat(x, w, axis=1)", weights=[r.normal(2, 4)]),
        OpCase("(x: float32[1, 3], *, w: float32[1, 4]): y = Concat(w, x, axis=1)", weights=[r.normal(1, 4)]),
        OpCase("(x: float32[2, 3], *, w: float32[1, 3]): y = Concat(w, x, axis=0)", weights=[r.normal(1, 3)]),
        OpCase("(x: float32[2, 3], z: float32[2, 1], w: float32[2, 5]): y = Concat(x, z, w, axis=-1)"),
        OpCase("(x: float32[2, 9]): a, b, c = Split(x, axis=1, split=(2, 3, 4)); y = Neg(c)"),
        OpCase("(x: float32[2, 9]): a, b, c = Split(x, axis=-1, num_outputs=3); y = Neg(b)"),
        OpCase("(x: float32[2, 1, 3, 1]): y = Squeeze(x, axes=(1, 3))"),
        OpCase("(x: float32[1, 3]): y = Squeeze(x)"),
        OpCase("(x: float32[2, 3]): y = Unsqueeze(x, axes=(0, 2))"),
        OpCase("(x: float32[2, 3]): y = Unsqueeze(x, axes=(-1,))"),
        OpCase("(x: float32[2, 3, 4]): y = Flatten(x)"),
        OpCase("(x: float32[2, 3, 4]): y = Flatten(x, axis=2)"),
        OpCase("(x: float32[2, 3, 4]): y = Flatten(x, axis=0)"),
        OpCase("(x: float32[2, 3, 4]): y = Reshape(x, shape=(0, -1, 2))"),
        OpCase("(x: float32[1, 5, 1, 7]): y = Expand(x, shape=(3, 1, 4, 1))"),
        OpCase("(x: float32[5, 1]): y = Expand(x, shape=(3, 5, 4))"),
        OpCase("(x: float32[2, 3, 4]): y = Tile(x, repeats=(2, 1, 3))"),
        OpCase("(x: float32[2, 3, 4]): y = Tile(x, repeats=(1, 1, 1))"),
    ]


CASES = {"Transpose": transpose, "Gather": gather, "Slice": slices, "Pad": pads, "others": shapes}


@pytest.mark.parametrize("op", CASES)
def test_op_as_layers(op: str, caffe: Witness, tmp_path: Path) -> None:
    check(CASES[op](), caffe, tmp_path)


def test_second_caffe_agrees(kendryte: Witness, tmp_path: Path) -> None:
    check([case for cases in CASES.values() for case in cases()], kendryte, tmp_path)


def test_a_transpose_multiplies_nothing(caffe: Witness, tmp_path: Path) -> None:
    """So an element too large to be multiplied does not spoil its neighbours."""
    x = Random(3).normal(2, 3, 4, 5)
    x[0, 1, 2, 3] = 3e38
    text = "(x: float32[2, 3, 4, 5]): y = Transpose(x, perm=(0, 2, 3, 1))"
    assert check([OpCase(text, [x], varies=False)], caffe, tmp_path) == 0
