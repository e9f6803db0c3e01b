"""Gradient of ``ai.onnx.preview.training``: the chain rule, written out in ops of the hub.

No runtime has this op, and the ops that it differentiates stand before it. So its results are built from
the end of the computation backwards: each node adds to its operands' gradients what its rule says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from onnx import NodeProto

from caffeforge.generated import hub
from caffeforge.runtime.array import Full
from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.graph import Node, Value, constant
from caffeforge.runtime.onnx_front.kept import attribute_value
from caffeforge.runtime.onnx_front.scope import Scope
from caffeforge.runtime.op import Op
from caffeforge.runtime.refusal import Refused

if TYPE_CHECKING:
    from caffeforge.runtime.onnx_front.importer import Importer

DOMAIN: Final = "ai.onnx.preview.training"


def gradient(
    importer: Importer, node: NodeProto, inputs: Sequence[Value | None], scope: Scope
) -> list[Value]:
    """Return the gradients of the tensor that the node names `y` for those that it names `xs`.

    Raises:
        FrontEndError: it is taken at other values than those that were computed, sizes are not known, or an
            op on the way has no rule.
    """
    given = {attribute.name: attribute_value(attribute) for attribute in node.attribute}
    names = [*given["xs"], *given.get("zs", ())]
    free = [scope.read(name) for name in names]
    if list(inputs) != free:
        raise FrontEndError("it takes the gradient at other values than those that the model computes")
    try:
        return _Backward(importer, free).run(scope.read(given["y"]), free[: len(given["xs"])])
    except Refused as refused:
        raise FrontEndError(refused.sentence) from None


class _Backward:
    """One pass over the nodes before a Gradient, from the last to the first."""

    def __init__(self, importer: Importer, free: Sequence[Value]) -> None:
        self.importer = importer
        self.free = set(free)
        self.found: dict[Value, Value] = {}

    def run(self, y: Value, xs: Sequence[Value]) -> list[Value]:
        reached = self._reached()
        self.found[y] = _ones(y)
        for node in reversed(list(self.importer.nodes)):
            (first, *others) = node.outputs
            if first in self.found and first in reached and first not in self.free:
                rule = _RULES.get(type(node.op))
                if rule is None or others:
                    raise FrontEndError(f"the gradient of {node.op.op_type} ({node.name}) has no rule")
                parts = rule(self, node, self.found[first])
                for operand, part in zip(node.inputs, parts, strict=False):
                    if operand is not None and part is not None and operand in reached:
                        self._add(operand, part)
        return [self.found.get(x) or constant("", Full(x.shape[:], 0.0, x.dtype)) for x in xs]

    def one(self, op: Op, *operands: Value) -> Value:
        """Add a node and return its one result."""
        return self.importer.apply(op, operands, 1)[0]

    def _reached(self) -> set[Value]:
        """Return the values that depend on the free ones."""
        reached = set(self.free)
        for node in self.importer.nodes:
            if not reached.isdisjoint(value for value in node.inputs if value is not None):
                reached.update(node.outputs)
        return reached

    def _add(self, operand: Value, part: Value) -> None:
        """Add to a gradient, summed over the axes along which the operand was spread."""
        extra = part.rank - operand.rank
        axes = [*range(extra)] + [
            axis + extra for axis, size in enumerate(operand.shape) if size == 1 != part.dims[axis + extra]
        ]
        if axes:
            part = self.one(hub.ReduceSum(axes=tuple(axes), keepdims=0), part)
            part = self.one(hub.Reshape(shape=operand.shape[:]), part)
        before = self.found.get(operand)
        self.found[operand] = part if before is None else self.one(hub.Add(), before, part)


def _ones(value: Value) -> Value:
    return constant("", Full(value.shape[:], 1.0, value.dtype))


def _number(value: Value, number: float) -> Value:
    return constant("", Full((), number, value.dtype))


# (pass, node, gradient of its result) -> gradients of its operands, None for one that takes none
_Rule = Callable[[_Backward, Any, Value], Sequence["Value | None"]]


def _add(back: _Backward, node: Node, g: Value) -> Sequence[Value]:
    return [g] * len(node.inputs)


def _sub(back: _Backward, node: Node, g: Value) -> Sequence[Value]:
    return [g, back.one(hub.Neg(), g)]


def _mul(back: _Backward, node: Any, g: Value) -> Sequence[Value]:
    a, b = node.inputs
    return [back.one(hub.Mul(), g, b), back.one(hub.Mul(), g, a)]


def _div(back: _Backward, node: Any, g: Value) -> Sequence[Value]:
    part = back.one(hub.Div(), g, node.inputs[1])
    return [part, back.one(hub.Neg(), back.one(hub.Mul(), part, node.outputs[0]))]


def _neg(back: _Backward, node: Any, g: Value) -> Sequence[Value]:
    return [back.one(hub.Neg(), g)]


def _exp(back: _Backward, node: Any, g: Value) -> Sequence[Value]:
    return [back.one(hub.Mul(), g, node.outputs[0])]


def _log(back: _Backward, node: Any, g: Value) -> Sequence[Value]:
    return [back.one(hub.Div(), g, node.inputs[0])]


def _sqrt(back: _Backward, node: Any, g: Value) -> Sequence[Value]:
    twice = back.one(hub.Mul(), node.outputs[0], _number(g, 2.0))
    return [back.one(hub.Div(), g, twice)]


def _tanh(back: _Backward, node: Any, g: Value) -> Sequence[Value]:
    square = back.one(hub.Mul(), node.outputs[0], node.outputs[0])
    return [back.one(hub.Mul(), g, back.one(hub.Sub(), _number(g, 1.0), square))]


def _sigmoid(back: _Backward, node: Any, g: Value) -> Sequence[Value]:
    y = node.outputs[0]
    slope = back.one(hub.Mul(), y, back.one(hub.Sub(), _number(g, 1.0), y))
    return [back.one(hub.Mul(), g, slope)]


def _relu(back: _Backward, node: Any, g: Value) -> Sequence[Value]:
    """The sign of the result is 1 where the operand passes, else 0."""
    return [back.one(hub.Mul(), g, back.one(hub.Sign(), node.outputs[0]))]


def _abs(back: _Backward, node: Any, g: Value) -> Sequence[Value]:
    return [back.one(hub.Mul(), g, back.one(hub.Sign(), node.inputs[0]))]


def _mat_mul(back: _Backward, node: Any, g: Value) -> Sequence[Value]:
    a, b = node.inputs
    if a.rank < 2 or b.rank < 2:
        raise FrontEndError("the gradient of MatMul of vectors has no rule")
    return [back.one(hub.MatMul(), g, _turned(back, b)), back.one(hub.MatMul(), _turned(back, a), g)]


def _turned(back: _Backward, x: Value) -> Value:
    """Return matrices with rows and columns exchanged."""
    perm = (*range(x.rank - 2), x.rank - 1, x.rank - 2)
    return back.one(hub.Transpose(perm=perm), x)


def _transpose(back: _Backward, node: Any, g: Value) -> Sequence[Value]:
    perm = node.op.perm
    return [back.one(hub.Transpose(perm=tuple(perm.index(axis) for axis in range(len(perm)))), g)]


def _reshape(back: _Backward, node: Any, g: Value) -> Sequence[Value | None]:
    return [back.one(hub.Reshape(shape=node.inputs[0].shape[:]), g)]


def _reduce(back: _Backward, node: Any, g: Value) -> Sequence[Value]:
    """Each summand gets the gradient of the sum; of a mean, divided by their number."""
    x, op = node.inputs[0], node.op
    axes = {axis % x.rank for axis in op.axes or (() if op.noop_with_empty_axes else range(x.rank))}
    column = back.one(hub.Reshape(shape=tuple(1 if a in axes else s for a, s in enumerate(x.shape))), g)
    spread = back.one(hub.Expand(shape=x.shape[:]), column)
    if isinstance(op, hub.ReduceSum):
        return [spread]
    summands = math.prod(x.shape[axis] for axis in axes)
    return [back.one(hub.Div(), spread, _number(g, summands))]


_RULES: Final[dict[type[Op], _Rule]] = {
    hub.Identity: _add,
    hub.Add: _add,
    hub.Sum: _add,
    hub.Sub: _sub,
    hub.Mul: _mul,
    hub.Div: _div,
    hub.Neg: _neg,
    hub.Exp: _exp,
    hub.Log: _log,
    hub.Sqrt: _sqrt,
    hub.Tanh: _tanh,
    hub.Sigmoid: _sigmoid,
    hub.Relu: _relu,
    hub.Abs: _abs,
    hub.MatMul: _mat_mul,
    hub.Transpose: _transpose,
    hub.Reshape: _reshape,
    hub.Squeeze: _reshape,
    hub.Unsqueeze: _reshape,
    hub.Flatten: _reshape,
    hub.ReduceSum: _reduce,
    hub.ReduceMean: _reduce,
}
