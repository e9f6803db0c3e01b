"""What a generated reader is handed: one layer's bottoms, blobs and tops, and a Builder of hub nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from caffeforge.runtime.array import Array, Cast
from caffeforge.runtime.builder import Builder, Operand
from caffeforge.runtime.graph import Symbol, Value, constant
from caffeforge.runtime.net import Layer
from caffeforge.runtime.random_weights import UNKNOWN, Blank
from caffeforge.runtime.refusal import Refused, Refusing


class Blobs(Sequence[Value]):
    """A layer's weights; reading one that is not there refuses."""

    def __init__(self, layer: Layer) -> None:
        self._layer = layer
        self._values = [_constant(f"{layer.name}/blob_{i}", array) for i, array in enumerate(layer.blobs)]

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, index: int) -> Value: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Value]: ...

    def __getitem__(self, index: int | slice) -> Value | Sequence[Value]:
        if isinstance(index, int) and not -len(self._values) <= index < len(self._values):
            given = (
                f"it has {len(self._values)}" if self._values else "it has none: is the caffemodel missing?"
            )
            raise Refused(f"the layer needs blob {index}, {given}")
        return self._values[index]


def _constant(name: str, array: Array) -> Value:
    """Return weights as a value, doubles as floats; random ones have no shape before the rule tells it."""
    if isinstance(array, Blank) and array.array is None:
        return Value(name, array.dtype, (Symbol(UNKNOWN),), array)
    return constant(name, Cast(array, "float32") if array.dtype == "float64" else array)


class Read(Builder, Refusing):
    """Builds the nodes of one layer and remembers what its tops hold."""

    def __init__(self, layer: Layer, bottoms: Sequence[Value]) -> None:
        super().__init__(layer.name, layer.origin)
        self.layer = layer
        self.bottoms = tuple(bottoms)
        self.blobs = Blobs(layer)
        self.tops = layer.tops
        self.input_shapes: list[tuple[int, ...]] = []
        self.held: dict[int, Value] = {}

    def one_bottom(self) -> Value:
        """Return the only bottom; refused if there is none, or more than the layer's rule reads."""
        if len(self.bottoms) != 1:
            raise Refused(f"one bottom is due, {len(self.bottoms)} are given")
        return self.bottoms[0]

    def top(self, index: int, operand: Operand) -> None:
        """Say what a top holds."""
        if not 0 <= index < len(self.tops):
            raise Refused(f"the layer computes top {index}, which is not named")
        (value,) = self.operands([operand])
        if value is None:
            raise Refused(f"top {index} holds nothing")
        self.held[index] = value

    def some_tops(self, indices: Sequence[int], values: Sequence[Value]) -> None:
        """Say what some of the tops hold."""
        for index, value in zip(indices, values, strict=True):
            self.top(index, value)

    def all_tops(self, values: Sequence[Operand]) -> None:
        """Say what all tops hold."""
        for index, value in enumerate(values):
            self.top(index, value)

    def inputs(self, shapes: Sequence[Sequence[int]]) -> None:
        """Say that the tops are inputs of the net: one shape for each, or one for all."""
        if len(shapes) not in (1, len(self.tops)) or not all(shapes):
            raise Refused(f"{len(self.tops)} tops need as many shapes, {len(shapes)} are given")
        self.input_shapes = [tuple(shapes[i if len(shapes) > 1 else 0]) for i in range(len(self.tops))]

    def results(self) -> Iterator[Value]:
        """Yield what the tops hold, in order; refused if the rule left one out."""
        for index, name in enumerate(self.tops):
            if index not in self.held:
                raise Refused(f"top {name} is not among what the layer computes")
            yield self.held[index]
