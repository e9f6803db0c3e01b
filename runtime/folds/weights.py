"""Weights into which something is folded, as lazy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from caffeforge.runtime.array import Array, NDArray

Factors = npt.NDArray[np.float64]


class Product(Array):
    """An array times float64 factors of its own rank, each of whose axes is 1 or as long as the array's."""

    __slots__ = ("factors", "source")

    def __init__(self, source: Array, factors: Factors) -> None:
        super().__init__(source.shape, "float32")
        self.source = source
        self.factors = factors

    def rows(self, start: int, stop: int) -> NDArray:
        factors = self.factors if self.factors.shape[0] == 1 else self.factors[start:stop]
        result: npt.NDArray[Any] = self.source.rows(start, stop) * factors
        return result.astype(np.float32)


class Ordered(Array):
    """The slabs of an array along an axis, in another order."""

    __slots__ = ("axis", "order", "source")

    def __init__(self, source: Array, order: Sequence[int], axis: int) -> None:
        super().__init__(source.shape, source.dtype)
        self.source = source
        self.order = tuple(order)
        self.axis = axis

    def rows(self, start: int, stop: int) -> NDArray:
        if self.axis:
            return self.source.rows(start, stop).take(self.order, self.axis)
        return np.concatenate([self.source.rows(row, row + 1) for row in self.order[start:stop]])
