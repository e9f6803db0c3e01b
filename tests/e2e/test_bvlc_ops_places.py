"""Gathering and writing at known places, products of named axes, sampling: real Caffe against others."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from tests.e2e.layer_cases import Random
from tests.e2e.op_cases import OpCase, check
from tests.real_caffe.witness import Witness

R = Random(11)


def whole(limit: int, *shape: int) -> Any:
    return R.whole(limit, *shape).astype(np.int64)


def listed(array: Any) -> str:
    """Return an array as the text of a constant."""
    return repr(array.tolist()).replace("[", "(").replace("]", ",)")


def gathers() -> list[OpCase]:
    own = np.repeat(whole(4, 1, 5, 3), 2, 0)
    made = []
    for indices, axis in ((own, 1), (whole(4, 2, 5, 3), 1), (whole(3, 2, 4, 6), 2), (whole(2, 3, 4, 3), 0)):
        head = f"(x: float32[2, 4, 3], *, i: int64{list(indices.shape)})"
        made.append(OpCase(f"{head}: y = GatherElements(x, i, axis={axis})", weights=[indices]))
    for indices, batch in ((whole(2, 5, 2), 0), (whole(2, 3, 1), 0), (np.repeat(whole(3, 1, 5, 2), 2, 0), 1)):
        head = f"(x: float32[2, 4, 3], *, i: int64{list(indices.shape)})"
        made.append(OpCase(f"{head}: y = GatherND(x, i, batch_dims={batch})", weights=[indices]))
    made.append(
        OpCase("(x: float32[2, 4, 6]): v, p = TopK(x, K=2, axis=2); y = GatherElements(x, p, axis=2)")
    )
    made.append(
        OpCase("(x: float32[2, 4, 6]): v, p = TopK(x, K=1, axis=1); y = GatherElements(x, p, axis=1)")
    )
    return made


def scatters() -> list[OpCase]:
    own = np.repeat(np.stack([R.generator.permutation(4)[:2] for _ in range(3)], 1)[None], 2, 0)
    other = np.stack([R.generator.permutation(4)[:2] for _ in range(6)]).reshape(2, 3, 2).transpose(0, 2, 1)
    made = []
    for indices in (own, other):
        head = f"(x: float32[2, 4, 3], u: float32[2, 2, 3], *, i: int64[2, 2, 3] = {listed(indices)})"
        for reduction in ("none", "add", "mul", "max", "min"):
            made.append(OpCase(f"{head}: y = ScatterElements(x, i, u, axis=1, reduction='{reduction}')"))
    twice = listed(whole(4, 2, 5, 3))
    head = f"(x: float32[2, 4, 3], u: float32[2, 5, 3], *, i: int64[2, 5, 3] = {twice})"
    for reduction in ("add", "max", "min"):
        made.append(OpCase(f"{head}: y = ScatterElements(x, i, u, axis=1, reduction='{reduction}')"))
    head = "(x: float32[3, 4, 2], u: float32[2, 4, 2], *, i: int64[2, 1] = ((2,), (0,)))"
    for reduction in ("none", "add", "mul", "max", "min"):
        made.append(OpCase(f"{head}: y = ScatterND(x, i, u, reduction='{reduction}')"))
    made.append(
        OpCase(
            "(u: float32[2, 3, 2], *, z: float32[4, 3, 2], i: int64[2, 1]): y = ScatterND(z, i, u)",
            weights=[np.zeros((4, 3, 2), np.float32), np.array([[3], [1]])],
        )
    )
    return made


def einsums() -> list[OpCase]:
    made = []
    for equation, shapes, constants in (
        ("nctv,vw->nctw", [(2, 3, 4, 5), (5, 6)], 1),
        ("bchw,kc->bkhw", [(2, 3, 4, 5), (6, 3)], 1),
        ("kc,bchw->bkhw", [(6, 3), (2, 3, 4, 5)], 0),
        ("bhwc,hkc->bhwk", [(2, 4, 5, 3), (4, 6, 3)], 1),
        ("bhwc,hkc->bhwk", [(2, 4, 5, 3), (4, 6, 3)], 0),
        ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)], 0),
        ("bhqk,bkhd->bqhd", [(2, 3, 4, 6), (2, 6, 3, 5)], 0),
        ("bij,bkj->bik", [(2, 3, 4), (2, 5, 4)], 0),
        ("i,j->ij", [(3,), (4,)], 0),
        ("bi,bi->b", [(3, 4), (3, 4)], 0),
        ("bij,jk", [(2, 3, 4), (4, 5)], 0),
        ("...ij,jk->...ik", [(2, 3, 4, 5), (5, 6)], 1),
        ("...i,...j->...ij", [(2, 3, 4), (2, 3, 5)], 0),
        ("bij->bj", [(2, 3, 4)], 0),
        ("bij->jb", [(2, 3, 4)], 0),
        ("bij->b", [(2, 3, 4)], 0),
        ("bij,bjk,bkl->bil", [(2, 3, 4), (2, 4, 5), (2, 5, 3)], 0),
        ("bi,oij,bj->bo", [(2, 3), (5, 3, 4), (2, 4)], 0),
        ("bic,bjc,bc->bij", [(2, 3, 4), (2, 5, 4), (2, 4)], 0),
    ):
        named = [f"x{i}: float32{list(shape)}" for i, shape in enumerate(shapes)]
        head = ", ".join([*named[: len(named) - constants], *(["*"] if constants else [])])
        head = ", ".join([head, *named[len(named) - constants :]]) if constants else head
        weights = [R.normal(*shape) for shape in shapes[len(shapes) - constants :]] if constants else []
        operands = ", ".join(f"x{i}" for i in range(len(shapes)))

        def exact(*given: Any, text: str = equation, weights: Any = tuple(weights)) -> Any:
            return np.einsum(text, *[x.astype(np.float64) for x in (*given, *weights)])

        made.append(
            OpCase(
                f"({head}): y = Einsum({operands}, equation='{equation}')", weights=weights, expected=exact
            )
        )
    return made


def samples() -> list[OpCase]:
    made = []
    for align in (0, 1):
        for mode, padding in (("linear", "zeros"), ("linear", "border"), ("nearest", "zeros")):
            for constant in (False, True):
                grid = R.generator.uniform(-1.3, 1.3, (2, 3, 4, 2)).astype(np.float32)
                grid[1] = grid[0] if constant else grid[1]

                def torchs(
                    x: Any, g: Any = grid, mode: str = mode, padding: str = padding, align: int = align
                ) -> Any:
                    own = {"linear": "bilinear"}.get(mode, mode)
                    return functional.grid_sample(
                        torch.from_numpy(x), torch.from_numpy(g), own, padding, bool(align)
                    ).numpy()

                fields = f"mode='{mode}', padding_mode='{padding}', align_corners={align}"
                text = f"y = GridSample(x, g, {fields})"
                if constant:
                    head = "(x: float32[2, 3, 5, 7], *, g: float32[2, 3, 4, 2])"
                    made.append(OpCase(f"{head}: {text}", weights=[grid], expected=torchs))
                else:
                    r = R.normal(2, 3, 5, 7)
                    head = "(x: float32[2, 3, 5, 7], g: float32[2, 3, 4, 2])"
                    made.append(OpCase(f"{head}: {text}", [r, grid], expected=lambda x, g, f=torchs: f(x, g)))
    return made


def others() -> list[OpCase]:
    odd = np.array([[np.inf, -np.inf, 1.0, -3e38], [np.nan, 0.0, np.inf, 3e38]], np.float32)
    made = [
        OpCase(f"(x: float32[2, 4]): b = IsInf(x, {fields}); y = Cast(b, to=1)", [odd])
        for fields in ("detect_negative=1", "detect_negative=0", "detect_positive=0")
    ]
    made += [OpCase("(x: float32[2, 3, 4], z: float32[2, 3, 4]): y = Mod(x, z, fmod=1)")]
    made += [
        OpCase(
            "(x: float32[5, 3, 2], *, l: int64[3] = (5, 2, 4)):"
            " y = ReverseSequence(x, l, time_axis=0, batch_axis=1)"
        ),
        OpCase(
            "(x: float32[3, 5, 2], *, l: int64[3] = (5, 5, 5)):"
            " y = ReverseSequence(x, l, time_axis=1, batch_axis=0)"
        ),
        OpCase("(x: float32[3, 4]): e = EyeLike(x, k=1); y = Add(e, x)"),
        OpCase("(x: float32[2, 16]): w = HannWindow(size=16); y = Mul(x, w)"),
        OpCase("(x: float32[2, 16]): w = HammingWindow(size=16, periodic=0); y = Mul(x, w)"),
        OpCase("(x: float32[2, 16]): w = BlackmanWindow(size=16); y = Mul(x, w)"),
    ]
    return made


CASES = {"gathers": gathers, "scatters": scatters, "einsums": einsums, "samples": samples, "others": others}


@pytest.mark.parametrize("name", CASES)
def test_ops_as_layers(name: str, caffe: Witness, tmp_path: Path) -> None:
    check(CASES[name](), caffe, tmp_path)
