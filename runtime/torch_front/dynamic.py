"""Open sizes: what the user says of the inputs, what PyTorch is told, and what it took for granted."""

from __future__ import annotations

import ast
import itertools
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import torch
from torch._guards import detect_fake_mode
from torch.export import Dim as ExportDim
from torch.fx import Graph as FxGraph
from torch.utils._sympy.printers import PythonPrinter

from caffeforge.runtime.errors import FrontEndError, UsageError
from caffeforge.runtime.symbol import Dim, Symbol, at, is_size, names, size
from caffeforge.runtime.torch_front.example import Example

Axes = Mapping[int, Any]
DynamicShapes = Mapping[str, "Axes | None"] | Sequence["Axes | None"]

_HINT: Final = "give {input name: {axis: size name}}, such as {'image': {0: 'N', 2: 'H'}}"
_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*")
_RELATIONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# Sizes at which conditions are tried; below 2 none is traced.
_TRIED: Final = (*range(2, 1200), 4095, 4096, 4097, 5040, 5041)
_TRIED_TOGETHER: Final = (2, 3, 5, 6, 8, 16, 31, 32, 37, 224, 225, 1024)
_MORE: Final = (1, 2, 3, 4, 8, 16, 32, 64, 128)
_FIXED: Final = "leave this size out of dynamic_shapes"
_SMALL: Final = 600  # a bound above is no lower bound


class OpenSizes:
    """The open sizes of one model's inputs.

    Args:
        given: what the user says, see ``trace``.
        inputs: the inputs' names, in order.
        example: the inputs.

    Raises:
        UsageError: an input or axis does not exist, or a size is no name.
    """

    def __init__(self, given: DynamicShapes, inputs: Sequence[str], example: Example) -> None:
        tensors = example.tensors()
        by_input = _by_input(given, inputs)
        self.axes = [_checked(a, n, t) for a, n, t in zip(by_input, inputs, tensors, strict=True)]
        self.example = example

    @property
    def shapes(self) -> tuple[dict[int, Any], ...]:
        """What ``torch.export`` is told of each input."""
        return tuple(
            {axis: ExportDim.DYNAMIC if isinstance(size, str) else size for axis, size in axes.items()}
            for axes in self.axes
        )

    def large_example(self) -> Example:
        """Return the example with at least two elements along each open axis: PyTorch fixes a size of one."""
        tensors = []
        for tensor, axes in zip(self.example.tensors(), self.axes, strict=True):
            repeats = [2 if axis in axes and size == 1 else 1 for axis, size in enumerate(tensor.shape)]
            tensors.append(tensor.repeat(repeats) if 2 in repeats else tensor)
        return self.example.with_tensors(tensors)

    def named(self, values: Sequence[torch.Tensor]) -> dict[str, str]:
        """Return the user's names for those in PyTorch's expressions.

        Args:
            values: the inputs as they were traced.

        Raises:
            FrontEndError: PyTorch fixed a size.
        """
        found: dict[str, str] = {}
        for axes, value in zip(self.axes, values, strict=True):
            for axis, given in axes.items():
                name = _name(given)
                traced: Any = value.shape[axis]
                if isinstance(traced, int):
                    raise FrontEndError(
                        f"the model works for one {name or f'size of axis {axis}'} only, {traced}",
                        hint=_FIXED,
                    )
                free = [str(symbol) for symbol in traced.node.expr.free_symbols]
                if name and len(free) == 1:
                    found.setdefault(free[0], name)
        return found


def names_of_axes(inputs: Sequence[str], values: Sequence[torch.Tensor]) -> dict[str, str]:
    """Return names for the open sizes of a program that came with them: input and axis."""
    found: dict[str, str] = {}
    for name, value in zip(inputs, values, strict=True):
        sizes: Sequence[Any] = value.shape
        for axis, given in enumerate(sizes):
            if not isinstance(given, int) and _IDENTIFIER.fullmatch(str(given.node.expr)):
                found.setdefault(str(given.node.expr), re.sub(r"\W", "_", f"{name}_{axis}"))
    return found


class Condition(NamedTuple):
    """What PyTorch took for granted of open sizes.

    `sign` is one of ``== != < <= > >=``, or "" for what is no comparison of sizes, of which only the text is
    known.
    """

    left: Dim
    sign: str
    right: Dim

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Tell whether it is so where the names have `sizes`."""
        return not self.sign or _RELATIONS[self.sign](at(self.left, sizes), at(self.right, sizes))

    def __str__(self) -> str:
        return f"{self.left} {self.sign} {self.right}" if self.sign else str(self.left)


def conditions(graph: FxGraph, named: Mapping[str, str]) -> list[Condition]:
    """Return what PyTorch took for granted when it traced a graph, under the user's names."""
    mode = detect_fake_mode([node.meta.get("val") for node in graph.nodes if node.op == "placeholder"])
    if mode is None or mode.shape_env is None:
        return []
    found = []
    for guard in mode.shape_env.guards:
        expression = mode.shape_env.replace(guard.expr)  # sizes that turned out to be others have gone
        if expression.is_Boolean and str(expression) == "True":
            continue
        sides = [_renamed(side, named) for side in getattr(expression, "args", ())]
        sign = str(getattr(expression, "rel_op", ""))
        relates = sign in _RELATIONS and len(sides) == 2
        if not relates or not all(is_size(ast.parse(side, mode="eval").body) for side in sides):
            found.append(Condition(Symbol(_renamed(expression, named)), "", 0))
            continue
        found.append(Condition(size(sides[0]), sign, size(sides[1])))
    return found


def sentences(held: Sequence[Condition]) -> list[str]:
    """Return conditions as texts: lower bounds, and others.

    What holds for all sizes from 2 on is left out, as far as trying some sizes tells.
    """
    bounds: dict[str, int] = {}
    others: dict[str, None] = {}
    # Those of one name first, for their bounds are known of the others.
    for condition in sorted(held, key=lambda condition: len(_names(condition))):
        free = _names(condition)
        if not condition.sign:
            others[str(condition)] = None
            continue
        failing = [sizes for sizes in _sizes(free, bounds) if not condition.holds(sizes)]
        least = 1 + max((sizes[free[0]] for sizes in failing), default=1) if len(free) == 1 else _SMALL
        if failing and least < _SMALL:
            bounds[free[0]] = max(bounds.get(free[0], 0), least)
        elif failing:
            others[str(condition)] = None
    return [*(f"{name} >= {least}" for name, least in bounds.items()), *others]


def other_sizes(sizes: Mapping[str, int], held: Sequence[Condition]) -> dict[str, int] | None:
    """Return sizes larger than `sizes`, for which the conditions hold; None if none are found."""
    for more in _MORE:
        found = {name: given + more for name, given in sizes.items()}
        if all(condition.holds(found) for condition in held):
            return found
    return None


def _names(condition: Condition) -> list[str]:
    return list(dict.fromkeys([*names(condition.left), *names(condition.right)]))


def _sizes(free: Sequence[str], bounds: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Yield sizes within the bounds."""
    if len(free) == 1:
        return ({free[0]: tried} for tried in _TRIED)
    each = [[tried for tried in _TRIED_TOGETHER if tried >= bounds.get(name, 2)] for name in free]
    combined = itertools.islice(itertools.product(*each), 2000)
    return (dict(zip(free, tried, strict=True)) for tried in combined)


def _renamed(expression: Any, named: Mapping[str, str]) -> str:
    text = _IDENTIFIER.sub(lambda name: named.get(name[0], name[0]), PythonPrinter().doprint(expression))
    return ast.unparse(ast.parse(text))  # without needless parentheses


def _by_input(given: DynamicShapes, inputs: Sequence[str]) -> list[Axes]:
    """Return for each input the axes that are open."""
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in inputs]
        if unknown:
            raise UsageError(
                f"dynamic_shapes names {unknown[0]!r}, the model takes {', '.join(inputs)}", hint=_HINT
            )
        return [given.get(name) or {} for name in inputs]
    if not isinstance(given, (list, tuple)) or len(given) != len(inputs):
        raise UsageError(f"dynamic_shapes does not say the sizes of {', '.join(inputs)}", hint=_HINT)
    return [axes or {} for axes in given]


def _checked(axes: object, name: str, tensor: torch.Tensor) -> dict[int, Any]:
    """Return the open axes of an input, counted from the front."""
    if not isinstance(axes, Mapping):
        raise UsageError(f"dynamic_shapes gives a {type(axes).__name__} for {name}", hint=_HINT)
    found = {}
    for axis, given in axes.items():
        if not isinstance(axis, int) or not -tensor.dim() <= axis < tensor.dim():
            raise UsageError(
                f"dynamic_shapes names axis {axis!r} of {name}, which has {tensor.dim()}", hint=_HINT
            )
        if given is None or isinstance(given, int):
            continue  # fixed, as PyTorch writes it
        if isinstance(given, str) and not given.isidentifier():
            raise UsageError(f"dynamic_shapes calls a size {given!r}, which is no name", hint=_HINT)
        found[axis % tensor.dim()] = given
    return found


def _name(given: Any) -> str:
    """Return the name of a size: a text, or that of a ``torch.export.Dim``, "" for one without.

    A multiple of another dimension has that one's name, as it stands for the multiple's factor.
    """
    name = given if isinstance(given, str) else getattr(getattr(given, "root", given), "__name__", "")
    return name if isinstance(name, str) and name.isidentifier() else ""
