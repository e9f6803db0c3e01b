"""Random weights for a net that has none, of the shapes that the rules of its layers ask for.

A rule does not say how many blobs its layer has, nor how large they are; it refuses what does not fit. So the
layer is tried with none, one, two ... blobs without a shape, each of which takes the first that the rule
gives it. The numbers are of a size that keeps a net's values about where they are; they are not those that
the net's fillers would draw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Final
from zlib import crc32

import numpy as np

from caffeforge.runtime.array import Array, NDArray
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.net import Layer
from caffeforge.runtime.refusal import Refused

MOST: Final = 8  # blobs that a layer may have
UNKNOWN: Final = "its shape"  # the symbol that stands for the dimensions of a blob without any


class Blank(Array):
    """A blob that takes the first shape it is given."""

    __slots__ = ("array", "seed")

    def __init__(self, seed: int) -> None:
        super().__init__((), "float32")
        self.seed = seed
        self.array: NDArray | None = None

    def settle(self, shape: Sequence[int]) -> None:
        """Take `shape`, if none was taken before, and draw the numbers."""
        if self.array is not None:
            return
        random = np.random.default_rng(self.seed)
        self.shape = tuple(shape)
        if len(self.shape) > 1:
            numbers = random.standard_normal(self.shape) * (2 / max(prod(self.shape[1:]), 1)) ** 0.5
        elif prod(self.shape) == 1:
            numbers = np.ones(self.shape)  # as the factor of BatchNorm's statistics
        else:
            numbers = random.uniform(0.5, 1.5, self.shape)  # variances and factors are positive
        self.array = numbers.astype(np.float32)

    def rows(self, start: int, stop: int) -> NDArray:
        if self.array is None:
            raise Refused("the rule reads weights before it tells their shape")
        part: NDArray = self.array.reshape(-1, *self.shape[1:])[start:stop]
        return part


class Ones(Blank):
    """A blob that takes the first shape it is given and takes no memory, where no number matters."""

    __slots__ = ()

    def settle(self, shape: Sequence[int]) -> None:
        if self.array is None:
            self.shape = tuple(shape)
            self.array = np.broadcast_to(np.float32(1), self.shape)


def with_random_blobs(
    layer: Layer, seed: int, build: Callable[[Layer], object], kind: type[Blank] = Blank
) -> Layer:
    """Return a layer with the fewest blobs, of a kind, with which `build` does not refuse it.

    Raises:
        Refused: it refuses them all, with what it says that does not concern the blobs.
    """
    refusals = []
    for count in range(MOST + 1):
        blanks = [kind(crc32(f"{seed} {layer.name} {index}".encode())) for index in range(count)]
        trial = replace(layer, blobs=tuple(blanks))
        try:
            build(trial)
        except Refused as refused:
            refusals.append(refused)
            continue
        except GraphError as error:
            refusals.append(Refused(error.what))
            continue
        return trial if all(blank.array is not None for blank in blanks) else layer
    others = [r for r in refusals if "blob" not in r.sentence and UNKNOWN not in r.sentence]
    raise (others or refusals)[0]
