"""Single layers of Caffe 1.0 beside each other in one net, run by real Caffe and by our reader.

One net holds many cases, because Caffe takes most of a second to start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from caffeforge.generated.bvlc import BACKEND, layers
from caffeforge.runtime.array import Dense
from caffeforge.runtime.caffe_files import write_files
from caffeforge.runtime.loaded import load
from caffeforge.runtime.message import LayerParam
from caffeforge.runtime.net import Layer, Net
from tests.real_caffe.witness import Witness

Floats = npt.NDArray[np.float32]
TOLERANCE = 1e-5  # of the largest magnitude


@dataclass(frozen=True)
class LayerCase:
    """One layer with its bottoms and blobs.

    Attributes:
        tops: how many it has.
        varies: whether its results differ from place to place, as nearly all do.
    """

    param: LayerParam
    bottoms: Sequence[Floats] = ()
    blobs: Sequence[Floats] = field(default=(), repr=False)
    tops: int = 1
    varies: bool = True

    def __str__(self) -> str:
        shapes = " ".join(str(list(bottom.shape)) for bottom in self.bottoms)
        return f"{self.param!r} of {shapes or 'nothing'}"


SERIES: ContextVar[int] = ContextVar("SERIES", default=0)  # 0 is what tests use; others are other numbers


class Random:
    """Arrays of float32, always the same for one seed of one series."""

    def __init__(self, seed: int) -> None:
        series = SERIES.get()
        self.generator = np.random.default_rng([seed, series] if series else seed)

    def normal(self, *shape: int, scale: float = 1.0) -> Floats:
        """Return normally distributed numbers."""
        return (scale * self.generator.standard_normal(shape)).astype(np.float32)

    def positive(self, *shape: int) -> Floats:
        """Return numbers between 0.3 and 3."""
        return self.generator.uniform(0.3, 3.0, shape).astype(np.float32)

    def whole(self, limit: int, *shape: int) -> Floats:
        """Return whole numbers from 0 to below `limit`."""
        return self.generator.integers(0, limit, shape).astype(np.float32)

    def size(self, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`, both included."""
        return int(self.generator.integers(low, high + 1))

    def pick(self, choices: Sequence[Any]) -> Any:
        """Return one of `choices`."""
        return choices[self.size(0, len(choices) - 1)]


def net_of(cases: Sequence[LayerCase]) -> tuple[Net, dict[str, Floats]]:
    """Return a net that holds `cases` as independent branches, and its inputs."""
    made: list[Layer] = []
    inputs: dict[str, Floats] = {}
    for index, case in enumerate(cases):
        bottoms = tuple(f"x{index}_{place}" for place in range(len(case.bottoms)))
        for name, bottom in zip(bottoms, case.bottoms, strict=True):
            shape = layers.BlobShape(dim=bottom.shape)
            made.append(Layer(name, layers.Input(shape=(shape,)), (), (name,)))
            inputs[name] = bottom
        blobs = tuple(Dense(blob) for blob in case.blobs)
        made.append(Layer(f"layer{index}", case.param, bottoms, tops_of(index, case), blobs))
    return Net("cases", made), inputs


def tops_of(index: int, case: LayerCase) -> tuple[str, ...]:
    """Return the names of a case's tops."""
    return tuple(f"y{index}_{place}" for place in range(case.tops))


def check(cases: Sequence[LayerCase], witness: Witness, folder: Path) -> float:
    """Run all cases both ways; return the largest error as a part of the scale, fail if one is too large."""
    net, inputs = net_of(cases)
    prototxt, caffemodel, _ = write_files(net, BACKEND, folder / "net", "{}\n")
    names = [name for index, case in enumerate(cases) for name in tops_of(index, case)]
    expected = witness.run(prototxt, caffemodel, inputs, names)
    found = load(prototxt, caffemodel, BACKEND).run(inputs, names)
    errors = {}
    for index, case in enumerate(cases):
        for name in tops_of(index, case):
            assert not case.varies or expected[name].std() > 0, f"{case}: all results are alike"
            errors[f"{case} top {name}"] = difference(found[name], expected[name])
    return worst(errors)


def difference(found: npt.NDArray[Any], expected: npt.NDArray[Any]) -> float:
    """Return the largest error as a part of the scale; infinite for another shape or infinite numbers."""
    if found.shape != expected.shape or not np.isfinite(expected).all():
        return float("inf")
    wide = expected.astype(np.float64)
    scale = np.abs(wide).max(initial=0.0)
    return float(np.abs(found - wide).max(initial=0.0) / (scale if scale else 1.0))


def worst(errors: Mapping[str, float]) -> float:
    """Return the largest error; fail with all cases whose error is too large."""
    wrong = {name: error for name, error in errors.items() if not error <= TOLERANCE}
    listed = "\n".join(f"{error:9.2e}  {name}" for name, error in wrong.items())
    assert not wrong, f"{len(wrong)} of {len(errors)} results differ from real Caffe:\n{listed}"
    return max(errors.values())
