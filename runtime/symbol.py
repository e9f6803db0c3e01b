"""Sizes that are known only when the model runs: names such as ``H``, and what is computed from them.

Two sizes are the same if they are equal whatever the names stand for, however they are written:
``(H - 1) // 2 + 1`` and ``(H + 1) // 2``. That is told by their values at some points, where every name has
a number that is drawn from its letters.
"""

from __future__ import annotations

import ast
import functools
import zlib
from collections.abc import Callable, Mapping
from typing import Final

# A size at each: the first are small, to tell `n` from `min(n, 5)`; the others large and apart.
POINTS: Final = 10
_SMALL: Final = 2

_OPERATORS: Final[Mapping[type[ast.operator], Callable[[int, int], int]]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.Pow: lambda a, b: int(a**b),
}
_FUNCTIONS: Final[Mapping[str, Callable[..., int]]] = {"max": max, "min": min}


class Symbol:
    """A dimension whose size is known only when the model runs.

    Attributes:
        name: a name, or an expression of names with ``+ - * // % **``, ``max`` and ``min``. A text that is no
            such expression is a name as a whole.
        values: its size at each point.
    """

    __slots__ = ("name", "values")

    def __init__(self, name: str) -> None:
        self.name = name
        self.values = _values(name)

    def at(self, sizes: Mapping[str, int]) -> int | None:
        """Return the size where the names have `sizes`; None if one has none."""
        return _evaluated(tree(self.name), sizes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Symbol) and (self.name == other.name or self.values == other.values)

    def __hash__(self) -> int:
        return hash(self.values)

    def __repr__(self) -> str:
        return self.name

    def __add__(self, other: Dim) -> Dim:
        return _combined(self, ast.Add(), other)

    def __radd__(self, other: int) -> Dim:
        return _combined(other, ast.Add(), self)

    def __sub__(self, other: Dim) -> Dim:
        return _combined(self, ast.Sub(), other)

    def __rsub__(self, other: int) -> Dim:
        return _combined(other, ast.Sub(), self)

    def __mul__(self, other: Dim) -> Dim:
        return _combined(self, ast.Mult(), other)

    def __rmul__(self, other: int) -> Dim:
        return _combined(other, ast.Mult(), self)

    def __floordiv__(self, other: Dim) -> Dim:
        return _combined(self, ast.FloorDiv(), other)


Dim = int | Symbol


def size(text: str) -> Dim:
    """Return what `text` says: a number if it is the same for all sizes, else a symbol."""
    symbol = Symbol(text)
    first = symbol.values[0]
    if isinstance(first, int) and len(set(symbol.values)) == 1 and not isinstance(tree(text), ast.Name):
        return first
    return symbol


def at(dim: Dim, sizes: Mapping[str, int]) -> int:
    """Return a size where the names have `sizes`.

    Raises:
        KeyError: it depends on another name.
    """
    if isinstance(dim, int):
        return dim
    found = dim.at(sizes)
    if found is None:
        raise KeyError(f"the size {dim} depends on more than {', '.join(sizes)}")
    return found


def larger(first: Dim, second: Dim) -> Dim:
    """Return the larger of two sizes."""
    return size(f"max({first}, {second})")


@functools.lru_cache(maxsize=4096)
def tree(text: str) -> ast.expr:
    """Return an expression as a tree of ``ast``; a text that is none becomes a single name."""
    try:
        found = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):  # which null characters raise
        return ast.Name(text)
    return found if is_size(found) else ast.Name(text)


def names(dim: Dim) -> list[str]:
    """Return the names that a size is computed from, each once."""
    if isinstance(dim, int):
        return []
    found = [n.id for n in ast.walk(tree(dim.name)) if isinstance(n, ast.Name)]
    return [name for name in dict.fromkeys(found) if name not in _FUNCTIONS]


def at_point(name: str, point: int) -> int:
    """Return the number that stands for `name` at a point."""
    drawn = zlib.crc32(f"{point}:{name}".encode())
    if point < _SMALL:
        return 1 + drawn % 4 if point else 1
    return 64 + drawn % 16000


@functools.lru_cache(maxsize=65536)
def _values(text: str) -> tuple[int | str, ...]:
    found = tree(text)
    values = []
    for point in range(POINTS):
        used = {n.id: at_point(n.id, point) for n in ast.walk(found) if isinstance(n, ast.Name)}
        try:
            value = _evaluated(found, used)
        except ZeroDivisionError:
            return (text,)  # equal to nothing else
        assert value is not None  # every name has a number
        values.append(value)
    return tuple(values)


def is_size(node: ast.expr) -> bool:
    """Tell whether an expression is a size: of names and whole numbers, by the operators of `Symbol`."""
    match node:
        case ast.Name():
            return True
        case ast.Constant(value=value):
            return type(value) is int
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return is_size(operand)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return is_size(left) and isinstance(right, ast.Constant) and right.value in (2, 3, 4)
        case ast.BinOp(left=left, op=operator, right=right):
            return type(operator) in _OPERATORS and is_size(left) and is_size(right)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return name in _FUNCTIONS and len(args) > 1 and all(map(is_size, args))
    return False


def _evaluated(node: ast.expr, sizes: Mapping[str, int]) -> int | None:
    match node:
        case ast.Name(id=name):
            return sizes.get(name)
        case ast.Constant(value=int(value)):
            return value
        case ast.UnaryOp(operand=operand):
            inner = _evaluated(operand, sizes)
            return None if inner is None else -inner
        case ast.BinOp(left=left, op=operator, right=right):
            a, b = _evaluated(left, sizes), _evaluated(right, sizes)
            return None if a is None or b is None else _OPERATORS[type(operator)](a, b)
        case ast.Call(func=ast.Name(id=name), args=args):
            given = [_evaluated(arg, sizes) for arg in args]
            return None if None in given else _FUNCTIONS[name](*given)
    raise AssertionError(f"{ast.dump(node)} is no size")  # tree() makes no other


def _combined(left: Dim, operator: ast.operator, right: Dim) -> Dim:
    """Return two sizes combined; a symbol only if the result depends on a name."""
    neutral = 1 if isinstance(operator, (ast.Mult, ast.FloorDiv)) else 0
    if right == neutral:
        return left
    if left == neutral and isinstance(operator, (ast.Add, ast.Mult)):
        return right
    trees = [ast.Constant(dim) if isinstance(dim, int) else tree(dim.name) for dim in (left, right)]
    return size(ast.unparse(ast.BinOp(trees[0], operator, trees[1])))
