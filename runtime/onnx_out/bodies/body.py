"""Applying ops one after the other, also those whose results have sizes that only a run tells."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from caffeforge.generated import hub
from caffeforge.runtime.array import Dense, Full, NDArray
from caffeforge.runtime.builder import Builder, Operand
from caffeforge.runtime.graph import Dim, Node, Symbol, Value, constant
from caffeforge.runtime.onnx_node import element_type
from caffeforge.runtime.op import Op

_FLOAT = element_type("float32")


class Body:
    """Applies ops by a builder: ``body(hub.Add(), x, y)`` is their sum."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder

    def __call__(self, op: Op, *operands: Operand) -> Value:
        return self._builder.value(op, operands)

    def several(self, op: Op, count: int, *operands: Operand) -> list[Value]:
        """Return the first `count` results of an op."""
        return self._builder.values(op, operands, count)

    def open(self, op: Op, *operands: Operand, dims: Sequence[Dim], dtype: str = "int64") -> Value:
        """Apply an op whose result has such sizes, as far as they are known: ONNX infers less."""
        result = Value(self._builder.fresh(op.op_type), dtype, dims)
        self.give(result, op, *operands)
        return result

    def all_open(self, op: Op, operands: Sequence[Operand], dims: Sequence[Sequence[Dim]]) -> list[Value]:
        """Apply an op with float32 results of such sizes."""
        name = self._builder.fresh(op.op_type)
        results = [Value(f"{name}.{index}", "float32", each) for index, each in enumerate(dims)]
        inputs = [v for operand in operands for v in self._builder.operands([operand])]
        self._builder.nodes.append(Node(name, op, inputs, results, self._builder.origin))
        return results

    def give(self, result: Value, op: Op, *operands: Operand) -> None:
        """Apply an op that yields a result of the whole body."""
        inputs = self._builder.operands(operands)
        self._builder.nodes.append(
            Node(self._builder.fresh(op.op_type), op, inputs, [result], self._builder.origin)
        )

    def size(self, given: Dim, word: str) -> Dim:
        """Return a name for a size that only a run tells: the given one, or one of this body's own."""
        return given if isinstance(given, Symbol) else self.own_size(word)

    def own_size(self, word: str) -> Symbol:
        """Return a size of a name that no other node's body has."""
        return Symbol(re.sub(r"\W", "_", self._builder.fresh(word), flags=re.ASCII))

    def array(self, elements: NDArray) -> Value:
        """Return a constant."""
        return constant(self._builder.fresh("constant"), Dense(np.ascontiguousarray(elements)))

    def reshape(self, value: Value, *shape: int) -> Value:
        return self(hub.Reshape(shape=shape), value)

    def count(self, value: Value) -> Value:
        """Return how many elements a value has, an int64 scalar."""
        return self(hub.Size(), value)

    def zeros(self, value: Value) -> Value:
        """Return as many float32 zeros as a value has numbers, however many that are."""
        if all(isinstance(dim, int) for dim in value.dims):
            return self.array(np.zeros(value.shape[:], np.float32))
        return self(hub.Cast(to=_FLOAT), self(hub.Less(), value, value))

    def ones(self, value: Value) -> Value:
        """Return as many float32 ones."""
        return self(hub.Sub(), Full((), 1.0), self.zeros(value))

    def chosen(self, mask: Value, size: Dim | None = None) -> Value:
        """Return where a mask (count) holds, int64 (found), ascending; `size` tells how often, if known."""
        dims = (1, self.own_size("found") if size is None else size)
        return self(hub.Squeeze(axes=(0,)), self.open(hub.NonZero(), mask, dims=dims))

    def sigmoid(self, value: Value) -> Value:
        """Return float32 sigmoids by the formula, so that all large ones are equal: to 1.

        A kernel of Sigmoid may stop short of it, and of two boxes that are equally sure another one stays.
        """
        power = self(hub.Exp(), self(hub.Neg(), value))
        return self(hub.Div(), Full((), 1.0), self(hub.Add(), Full((), 1.0), power))

    def at_least(self, value: Value, bound: float) -> Value:
        """Return where a value is no less than a number; opset 12 brought an op for that."""
        return self(hub.Not(), self(hub.Less(), value, Full((), bound)))

    def part(self, value: Value, start: int, stop: int, axis: int = -1) -> Value:
        """Return what lies between two places along one axis."""
        axis %= value.rank
        return self(hub.Slice(starts=(start,), ends=(stop,), axes=(axis,), steps=(1,)), value)
