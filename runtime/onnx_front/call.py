"""What a conversion is given: one node of the file, bound to its version's class, and the hub to build in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from caffeforge.runtime.array import Array, Dense, NDArray
from caffeforge.runtime.graph import Dim, Value, constant
from caffeforge.runtime.op import Op, VersionedOp


class Unconvertible(Exception):
    """The hub cannot say this node; the text says why. The importer then keeps the node as it is."""


class Builder(Protocol):
    """Where a call's nodes go.

    Attributes:
        producer: what the file says wrote it.
    """

    producer: str

    def apply(self, op: Op, operands: Sequence[Value | None], count: int) -> list[Value]:
        """Add a node, or fold it, and return its first `count` results."""

    def elements(self, value: Value) -> tuple[Dim | None, ...] | None:
        """Return what is known of an integer tensor's elements."""

    def note(self, text: str) -> None:
        """Say of the node what was chosen."""


class Call:
    """One node.

    Attributes:
        op: the op as the file's opset defines it, with attributes that are left out filled in.
        inputs: its operands at ONNX's positions, None for one that is absent.
        used: for each output up to the last one that is read whether it is.
        outputs: how many outputs the node names.
        elements: what is known of an integer tensor's elements before the model runs.
        producer: what the file says wrote it.
        note: says of the node what was chosen where those who run it differ.
    """

    def __init__(
        self,
        op: VersionedOp,
        inputs: Sequence[Value | None],
        used: Sequence[bool],
        outputs: int,
        builder: Builder,
    ) -> None:
        self.op = op
        self.inputs = list(inputs)
        self.used = tuple(used)
        self.outputs = outputs
        self._builder = builder
        self.elements: Callable[[Value], tuple[Dim | None, ...] | None] = builder.elements
        self.producer = builder.producer
        self.note = builder.note

    def operand(self, index: int) -> Value | None:
        """Return an input, None if it is absent."""
        return self.inputs[index] if index < len(self.inputs) else None

    def value(self, index: int) -> Value:
        """Return an input that must be there.

        Raises:
            Unconvertible: it is absent.
        """
        found = self.operand(index)
        if found is None:
            raise Unconvertible(f"input {index} is missing")
        return found

    def constant(self, index: int) -> NDArray | None:
        """Return the elements of an input that is a constant, None if it is none or absent."""
        found = self.operand(index)
        return found.data.numpy() if found is not None and found.data is not None else None

    def emit(self, op: Op, *operands: Value | Array | None, count: int = 1) -> list[Value]:
        """Add a node; of constants alone its results are constants."""
        given = [constant("", o) if isinstance(o, Array) else o for o in operands]
        return self._builder.apply(op, given, count)

    def one(self, op: Op, *operands: Value | Array | None) -> Value:
        """Add a node and return its one result."""
        return self.emit(op, *operands)[0]

    def ints(self, numbers: Sequence[int]) -> Value:
        """Return integers as a constant int64 operand."""
        return constant("", Dense(np.array(numbers, np.int64)))


def static_dims(value: Value, axes: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of some axes.

    Raises:
        Unconvertible: one of them is known only when the model runs.
    """
    dims = [value.dims[axis] for axis in axes]
    found = tuple(dim for dim in dims if isinstance(dim, int))
    if len(found) < len(dims):
        raise Unconvertible(f"the sizes {', '.join(map(str, dims))} must be known before the model runs")
    return found
