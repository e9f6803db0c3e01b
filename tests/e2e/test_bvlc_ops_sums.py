"""Reductions, products of matrices and normalizations as layers: real Caffe against onnxruntime and NumPy."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.e2e.layer_cases import Random
from tests.e2e.op_cases import OpCase, check
from tests.real_caffe.witness import Witness

Function = Callable[..., Any]

REDUCTIONS: dict[str, Function] = {
    "ReduceL1": lambda x, **how: np.abs(x).sum(**how),
    "ReduceMax": np.max,
    "ReduceMean": np.mean,
    "ReduceMin": np.min,
    "ReduceSum": np.sum,
    "ReduceSumSquare": lambda x, **how: (x * x).sum(**how),
}


def reductions(op: str) -> list[OpCase]:
    """Return a reduction over every set of axes."""
    function = REDUCTIONS[op]
    made = []
    for count in range(1, 5):
        for axes, keep in itertools.product(itertools.combinations(range(4), count), (0, 1)):

            def reduced(x: Any, axes: tuple[int, ...] = axes, keep: int = keep) -> Any:
                return function(x.astype(np.float64), axis=axes, keepdims=bool(keep))

            text = f"(x: float32[2, 3, 4, 5]): y = {op}(x, axes={axes}, keepdims={keep})"
            made.append(OpCase(text, expected=reduced, varies=count < 4))
    every = f"(x: float32[2, 3, 4, 5]): y = {op}(x, keepdims=0)"
    return [*made, OpCase(every, varies=False), OpCase(f"(x: float32[2, 3]): y = {op}(x, axes=(-1,))")]


@pytest.mark.parametrize("op", REDUCTIONS)
def test_reduction_over_every_set_of_axes(op: str, caffe: Witness, tmp_path: Path) -> None:
    check(reductions(op), caffe, tmp_path)


def arg_max() -> list[OpCase]:
    """Return cases in which many elements are equal."""
    r = Random(1)
    made = []
    for axis, keep in itertools.product(range(4), (0, 1)):
        for last in (0, 1):
            text = f"ArgMax(x, axis={axis}, keepdims={keep}, select_last_index={last})"
            made.append(OpCase(f"(x: float32[2, 3, 4, 5]): y = {text}", [r.whole(3, 2, 3, 4, 5)]))
        made.append(
            OpCase(
                f"(x: float32[2, 3, 4, 5]): y = ArgMin(x, axis={axis}, keepdims={keep})",
                [r.whole(3, 2, 3, 4, 5)],
            )
        )
    made.append(
        OpCase(
            "(x: float32[5, 7]): y = ArgMax(x, axis=-1)",
            [r.whole(3, 5, 7)],
            expected=lambda x: x.argmax(1)[:, None],
        )
    )
    return made


def test_place_of_the_maximum_with_ties(caffe: Witness, tmp_path: Path) -> None:
    check(arg_max(), caffe, tmp_path)


def products() -> list[OpCase]:
    r = Random(2)
    made = []
    for a, b in (
        ((2, 3, 4), (4, 5)),
        ((3, 4), (4, 5)),
        ((2, 2, 3, 4), (4, 5)),
        ((2, 3, 4), (2, 4, 5)),
        ((2, 2, 3, 4), (2, 2, 4, 5)),
        ((2, 2, 3, 4), (2, 1, 4, 5)),
        ((2, 3, 4), (4,)),
        ((4,), (2, 4, 5)),
    ):
        left, right = (f"float32[{', '.join(map(str, shape))}]" for shape in (a, b))
        product = wide(np.matmul)
        made.append(OpCase(f"(x: {left}, z: {right}): y = MatMul(x, z)", expected=product))
        if len(b) > 1:
            w = r.normal(*b)
            made.append(
                OpCase(
                    f"(x: {left}, *, w: {right}): y = MatMul(x, w)",
                    weights=[w],
                    expected=lambda x, w=w: wide(np.matmul)(x, w),
                )
            )
        if len(a) > 1:
            v = r.normal(*a)
            made.append(
                OpCase(
                    f"(z: {right}, *, w: {left}): y = MatMul(w, z)",
                    weights=[v],
                    expected=lambda z, v=v: wide(np.matmul)(v, z),
                )
            )
    return made


def gemms() -> list[OpCase]:
    r = Random(3)
    made = []
    for turned, back, alpha, beta, addend in itertools.product(
        (0, 1), (0, 1), (1.0, 0.5), (1.0, 2.0), ((), (5,), (1,), (3, 5), (3, 1), (1, 5))
    ):
        w, c = r.normal(*((5, 4) if back else (4, 5))), r.normal(*addend)

        def gemm(
            x: Any,
            w: Any = w,
            c: Any = c,
            t: int = turned,
            b: int = back,
            alpha: float = alpha,
            beta: float = beta,
            given: bool = bool(addend),
        ) -> Any:
            a = np.asarray(x.T if t else x, np.float64)
            return alpha * (a @ (w.T if b else w)) + (beta * c if given else 0)

        shape = "4, 3" if turned else "3, 4"
        extra = f", C: float32[{', '.join(map(str, addend))}]" if addend else ""
        text = (
            f"Gemm(x, w{', C' if addend else ''}, transA={turned}, transB={back}, alpha={alpha}, beta={beta})"
        )
        head = f"(x: float32[{shape}], *, w: float32[{w.shape[0]}, {w.shape[1]}]{extra})"
        made.append(OpCase(f"{head}: y = {text}", weights=[w, c], expected=gemm))
    made.append(OpCase("(x: float32[3, 4], z: float32[5, 4], C: float32[5]): y = Gemm(x, z, C, transB=1)"))
    return made


def wide(function: Function) -> Function:
    """Return a function of NumPy that computes in float64."""
    return lambda *given: function(*(np.asarray(array, np.float64) for array in given))


def test_product_of_matrices(caffe: Witness, tmp_path: Path) -> None:
    check(products() + gemms(), caffe, tmp_path)


def normalizations() -> list[OpCase]:
    r = Random(4)
    six = [r.positive(6), r.normal(6)]

    def over(
        axes: tuple[int, ...], scale: Any, shift: Any, epsilon: float = 1e-5, centre: bool = True
    ) -> Function:
        def normalized(x: Any) -> Any:
            x = x.astype(np.float64)
            x = x - x.mean(axes, keepdims=True) if centre else x
            return x / np.sqrt((x * x).mean(axes, keepdims=True) + epsilon) * scale + shift

        return normalized

    def groups(x: Any) -> Any:
        core = over((2,), 1, 0)(x.reshape(2, 3, -1)).reshape(x.shape)
        return core * six[0][:, None, None] + six[1][:, None, None]

    four, many = [r.positive(4), r.normal(4)], r.positive(6, 4, 5)
    channels = [v[:, None, None] for v in six]
    two = "*, s: float32[6], b: float32[6]"
    return [
        OpCase(
            f"(x: float32[2, 6, 4, 5], {two}): y = GroupNormalization(x, s, b, num_groups=3)",
            [6 * r.normal(2, 6, 4, 5) + 1],
            six,
            groups,
        ),
        OpCase(
            f"(x: float32[2, 6, 4, 5], {two}): y = InstanceNormalization(x, s, b, epsilon=0.01)",
            [0.1 * r.normal(2, 6, 4, 5)],
            six,
            over((2, 3), channels[0], channels[1], epsilon=0.01),
        ),
        OpCase(f"(x: float32[2, 6, 7], {two}): y = InstanceNormalization(x, s, b)", weights=six),
        OpCase(
            "(x: float32[2, 6, 4], *, s: float32[4], b: float32[4]): y = LayerNormalization(x, s, b)",
            weights=four,
            expected=over((2,), four[0], four[1]),
        ),
        OpCase(
            "(x: float32[2, 6, 4], *, s: float32[4]): y = LayerNormalization(x, s)",
            weights=four[:1],
            expected=over((2,), four[0], 0),
        ),
        OpCase(
            "(x: float32[2, 6, 4, 5], *, s: float32[6, 4, 5]): y = LayerNormalization(x, s, axis=1)",
            weights=[many],
            expected=over((1, 2, 3), many, 0),
        ),
        OpCase(
            "(x: float32[2, 6, 4], *, s: float32[4]): y = RMSNormalization(x, s)",
            weights=four[:1],
            expected=over((2,), four[0], 0, centre=False),
        ),
        OpCase("(x: float32[3, 5, 4, 7]): y = MeanVarianceNormalization(x, axes=(2, 3))"),
        OpCase("(x: float32[3, 5, 4, 7]): y = MeanVarianceNormalization(x, axes=(1, -1, -2))"),
        OpCase("(x: float32[3, 5, 4]): y = Softmax(x)"),
        OpCase("(x: float32[3, 5, 4]): y = Softmax(x, axis=1)"),
        OpCase(
            f"(x: float32[2, 6, 4, 5], {two}, m: float32[6], v: float32[6]): "
            "y = BatchNormalization(x, s, b, m, v, epsilon=0.01)",
            weights=[*six, r.normal(6), r.positive(6)],
        ),
    ]


def test_normalizations(caffe: Witness, tmp_path: Path) -> None:
    check(normalizations(), caffe, tmp_path)


def test_second_caffe_agrees(kendryte: Witness, tmp_path: Path) -> None:
    cases = [case for op in REDUCTIONS for case in reductions(op)]
    check([*cases, *arg_max(), *products(), *gemms(), *normalizations()], kendryte, tmp_path)
