"""Building hub nodes one after the other, with shapes inferred before the next condition is read."""

from __future__ import annotations

from collections.abc import Sequence

from caffeforge.runtime.array import Array, Full
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.fold import fold, is_foldable
from caffeforge.runtime.graph import Node, Origin, Value, constant
from caffeforge.runtime.op import Op
from caffeforge.runtime.refusal import Refused

Operand = Value | Array | float | None


class Builder:
    """Collects new nodes; inner values and nodes are named after `stem`.

    Args:
        stem: what names begin with.
        origin: where the nodes come from.
        counts: how often each word stands behind the stem already; a builder of the same stem counts on.
    """

    def __init__(self, stem: str, origin: Origin, counts: dict[str, int] | None = None) -> None:
        self.stem = stem
        self.origin = origin
        self.nodes: list[Node] = []
        self._counts = {} if counts is None else counts

    def value(self, op: Op, operands: Sequence[Operand]) -> Value:
        """Apply an op and return its first result."""
        return self.values(op, operands, 1)[0]

    def values(self, op: Op, operands: Sequence[Operand], count: int) -> list[Value]:
        """Apply an op and return its first `count` results; of constants alone they are constants."""
        from caffeforge.runtime.shapes import infer

        inputs = self.operands(operands)
        name = self.fresh(op.op_type)
        results = [
            Value(name if count == 1 else f"{name}.{index}", dtype, dims)
            for index, (dtype, dims) in enumerate(infer(op, inputs, count))
        ]
        node = Node(name, op, inputs, results, self.origin)
        if is_foldable(op, inputs):
            fold(node)
        else:
            self.nodes.append(node)
        return results

    def apply(self, op: Op, operands: Sequence[Operand], results: Sequence[Value]) -> None:
        """Apply an op whose results are `results`, which have their types already.

        Raises:
            GraphError: the op yields another type than the results have.
        """
        from caffeforge.runtime.shapes import infer

        inputs = self.operands(operands)
        for (dtype, dims), result in zip(infer(op, inputs, len(results)), results, strict=True):
            if (dtype, dims) != (result.dtype, result.dims):
                given = Value(result.name, dtype, dims)
                raise GraphError(f"{op!r} yields {given!r}, {result.type_text()} is due", where=self.stem)
        name = self.fresh(op.op_type) if any(n.name == self.stem for n in self.nodes) else self.stem
        self.nodes.append(Node(name, op, inputs, results, self.origin))

    def apply_each(
        self, applications: Sequence[tuple[Op, Sequence[Operand]]], results: Sequence[Value]
    ) -> None:
        """Apply one op for each of `results`; refused if there are more of the ones or the others."""
        if len(applications) != len(results):
            raise Refused(f"the op has {len(results)} results, the rule gives {len(applications)}")
        for (op, operands), result in zip(applications, results, strict=True):
            self.apply(op, operands, (result,))

    def result(self, results: Sequence[Value], index: int) -> Value:
        """Return a piece of a list of results; refused if there is none."""
        if not -len(results) <= index < len(results):
            raise Refused(f"the op has {len(results)} results, the rule gives number {index}, from 0 on")
        return results[index]

    def all_given(self, results: Sequence[Value]) -> None:
        """Refuse a node of which the rule gives a piece of `results` never, or twice."""
        given = [id(value) for node in self.nodes for value in node.outputs]
        for index, result in enumerate(results):
            if given.count(id(result)) != 1:
                times = "twice" if id(result) in given else "not"
                raise Refused(f"result {index} of {len(results)} is {times} given by the rule")

    def operands(self, operands: Sequence[Operand]) -> list[Value | None]:
        """Return operands as values; arrays and numbers (in the first value's dtype) become constants."""
        dtype = next((o.dtype for o in operands if isinstance(o, (Value, Array))), "float32")
        return [self._operand(operand, dtype) for operand in operands]

    def _operand(self, operand: Operand, dtype: str) -> Value | None:
        if operand is None or isinstance(operand, Value):
            return operand
        array = operand if isinstance(operand, Array) else Full((), operand, dtype)
        return constant(self.fresh("constant"), array)

    def fresh(self, word: str) -> str:
        """Return a name under the stem that this builder has not given yet."""
        count = self._counts.get(word, 0)
        self._counts[word] = count + 1
        return f"{self.stem}/{word}" + (f"_{count}" if count else "")
