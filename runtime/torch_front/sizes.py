"""Sizes of a traced program: PyTorch's symbolic numbers as dimensions of the hub, and as values of its graph.

PyTorch writes arithmetic on sizes into a program as operators on numbers. They are not lowered: every size
that a tensor or an argument has is an expression of the inputs' sizes, and where the hub wants one as a value
it is computed from the inputs by Shape and arithmetic.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import numpy as np
import torch
from torch._ops import OpOverload
from torch.fx import Node as FxNode
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils._sympy.printers import PythonPrinter

from caffeforge.generated import hub
from caffeforge.runtime.array import Dense
from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.graph import Value, constant
from caffeforge.runtime.op import Op
from caffeforge.runtime.symbol import Dim, Symbol, names, size, tree
from caffeforge.runtime.torch_front.refusals import SIZED_BY_VALUES

_NUMBERS: Final = (torch.SymInt, torch.SymFloat, torch.SymBool, int, float)
_READ: Final = ("aten::sym_size", "aten::sym_numel", "aten::sym_stride", "aten::sym_storage_offset")
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_FUNCTIONS: Final = {"max": hub.Max, "min": hub.Min}
_OPERATORS: Final[Mapping[type[ast.operator], Callable[[], Op]]] = {
    ast.Add: hub.Add,
    ast.Sub: hub.Sub,
    ast.Mult: hub.Mul,
}


class _Nodes(Protocol):
    """What adds nodes to the graph: a call that is lowered."""

    def helper(self, op: Op, *inputs: Value | None, dims: Sequence[Dim], dtype: str = "") -> Value: ...


class Sizes:
    """The sizes of one program.

    Args:
        named: for names in PyTorch's expressions, the user's names of them.
    """

    def __init__(self, named: Mapping[str, str] | None = None) -> None:
        self._named = dict(named or {})
        self._known: dict[object, Dim] = {}
        self._sources: dict[Symbol, tuple[Value, int]] = {}
        self._values: dict[Symbol, Value] = {}

    def dim(self, given: int | torch.SymInt) -> Dim:
        """Return a size as the hub has it.

        Raises:
            FrontEndError: it depends on the elements of a tensor.
        """
        if isinstance(given, int):
            return given
        expression = given.node.expr
        if expression not in self._known:
            if free_unbacked_symbols(given):
                raise FrontEndError(SIZED_BY_VALUES)
            text = _NAME.sub(
                lambda name: self._named.get(name[0], name[0]), PythonPrinter().doprint(expression)
            )
            self._known[expression] = size(ast.unparse(tree(text)))
        return self._known[expression]

    def dims(self, tensor: torch.Tensor) -> tuple[Dim, ...]:
        """Return the shape of a tensor."""
        return tuple(self.dim(given) for given in tensor.shape)

    def add_input(self, value: Value) -> None:
        """Let the sizes of `value` be those that others are computed from."""
        for axis, dim in enumerate(value.dims):
            if isinstance(dim, Symbol):
                self._sources.setdefault(dim, (value, axis))

    def value(self, nodes: _Nodes, dim: Dim, near: Value | None = None) -> Value:
        """Return a size as an int64 value of one element, computed when it is first asked for.

        Args:
            nodes: takes the nodes that compute it.
            dim: the size.
            near: a value that is asked first, where the size is not known yet.

        Raises:
            FrontEndError: no input tells it.
        """
        if isinstance(dim, int):
            return _ints((dim,))
        if dim not in self._values:
            self._values[dim] = self._computed(nodes, dim, near)
        return self._values[dim]

    def shape(self, nodes: _Nodes, dims: Sequence[Dim], near: Value | None = None) -> Value:
        """Return sizes as one int64 value; see `value`."""
        parts: list[Value] = []
        numbers: list[int] = []
        for dim in [*dims, None]:
            if isinstance(dim, int):
                numbers.append(dim)
                continue
            if numbers:
                parts.append(_ints(numbers))
                numbers = []
            if dim is not None:
                parts.append(self.value(nodes, dim, near))
        if len(parts) == 1:
            return parts[0]
        return nodes.helper(hub.Concat(axis=0), *parts, dims=(len(dims),), dtype="int64")

    def names_at(self, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
        """Return what the names stand for when the inputs have `shapes`, as far as that can be told."""
        found: dict[str, int] = {}
        for symbol, (value, axis) in self._sources.items():
            if len(free := names(symbol)) == 1:
                factor = symbol.at({free[0]: 1}) or 1
                found.setdefault(free[0], shapes[value.name][axis] // factor)
        return found

    def _computed(self, nodes: _Nodes, dim: Symbol, near: Value | None) -> Value:
        source = self._sources.get(dim)
        if source is None and near is not None and near.data is None and dim in near.dims:
            source = near, near.dims.index(dim)
        if source is not None:
            value, axis = source
            return nodes.helper(hub.Shape(start=axis, end=axis + 1), value, dims=(1,), dtype="int64")
        return self._of_tree(nodes, tree(dim.name), dim)

    def _of_tree(self, nodes: _Nodes, node: ast.expr, whole: Symbol) -> Value:
        def part(inner: ast.expr) -> Value:
            return self.value(nodes, size(ast.unparse(inner)))

        def applied(op: Op, *operands: Value) -> Value:
            return nodes.helper(op, *operands, dims=(1,), dtype="int64")

        match node:
            case ast.UnaryOp(operand=operand):
                return applied(hub.Neg(), part(operand))
            case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
                # ONNX divides towards zero; the remainder, which has the divisor's sign, is taken off before.
                a, b = part(left), part(right)
                return applied(hub.Div(), applied(hub.Sub(), a, applied(hub.Mod(), a, b)), b)
            case ast.BinOp(left=left, op=ast.Mod(), right=right):
                return applied(hub.Mod(), part(left), part(right))
            case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int(power))):
                return functools.reduce(functools.partial(applied, hub.Mul()), [part(left)] * power)
            case ast.BinOp(left=left, op=operator, right=right):
                return applied(_OPERATORS[type(operator)](), part(left), part(right))
            case ast.Call(func=ast.Name(id=name), args=args):
                return applied(_FUNCTIONS[name](), *map(part, args))
        return self._solved(nodes, whole)

    def _solved(self, nodes: _Nodes, name: Symbol) -> Value:
        """Return a name that no input has as its size, from one that is a multiple of it."""
        for source in self._sources:
            if names(source) == [name.name]:
                factor = source.at({name.name: 1})
                if factor and Symbol(f"{factor} * {name.name}") == source:
                    given = self.value(nodes, source)
                    divisor = _ints((factor,))
                    return nodes.helper(hub.Div(), given, divisor, dims=(1,), dtype="int64")
        raise FrontEndError(f"no input tells the size {name}", hint="make it the size of an input")


def _ints(numbers: Sequence[int]) -> Value:
    return constant("", Dense(np.array(numbers, np.int64)))


def is_size(node: FxNode) -> bool:
    """Tell whether an operator yields a size, or a number that is computed from numbers."""
    computed = isinstance(node.target, OpOverload) and node.target._schema.name not in _READ
    return not computed and isinstance(node.meta.get("val"), _NUMBERS)


def is_dynamic(tensor: torch.Tensor) -> bool:
    """Tell whether a size of a tensor is a symbol."""
    return any(not isinstance(given, int) for given in tensor.shape)
