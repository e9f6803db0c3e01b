"""Folding: operators that have one value for all inputs are computed when the model is traced."""

from __future__ import annotations

import operator
from typing import Any, Final

import torch
from torch._ops import OpOverload
from torch.fx import Node, map_arg

from caffeforge.runtime.torch_front.sizes import is_dynamic

aten = torch.ops.aten

# Operators that read of their tensor its shape and type only: their result is the same for all inputs.
_SHAPE_ONLY: Final = frozenset(
    {
        aten.empty_like.default,
        aten.fill.Scalar,
        aten.full_like.default,
        aten.new_empty.default,
        aten.new_full.default,
        aten.new_ones.default,
        aten.new_zeros.default,
        aten.ones_like.default,
        aten.zero.default,
        aten.zeros_like.default,
    }
)

# Operators that give their tensor as it is: of a constant, its own memory stays.
_SAME: Final = frozenset(
    {
        aten.alias.default,
        aten.clone.default,
        aten.contiguous.default,
        aten.detach.default,
        aten.lift_fresh_copy.default,
    }
)


class Folding:
    """The constants of a functional graph.

    Attributes:
        constants: tensors, or sequences of them, that do not depend on an input.
        folded: the operators among their nodes.
    """

    def __init__(self, constants: dict[Node, Any]) -> None:
        self.constants = constants
        self.folded: set[Node] = set()
        self._known: dict[str, Any] = {}

    def takes(self, node: Node) -> bool:
        """Tell whether an operator has one value for all inputs; random numbers have not."""
        if isinstance(node.target, OpOverload):
            if torch.Tag.nondeterministic_seeded in node.target.tags:
                return False
        elif node.target is not operator.getitem:
            return False
        if _is_dynamic(node):
            return False
        if node.target in _SHAPE_ONLY or _is_empty(node):
            return True
        return all(operand in self.constants for operand in node.all_input_nodes)

    def fold(self, node: Node) -> None:
        """Compute an operator; one that computes what another has computed shares its tensor."""
        if _is_empty(node):
            result: Any = _of_same_shape(node)
        elif node.target in _SHAPE_ONLY and node.all_input_nodes[0] not in self.constants:
            result = _computed(node, *map_arg((node.args, node.kwargs), _of_same_shape))
        else:
            key = repr((node.target, map_arg((node.args, node.kwargs), self._identity)))
            if key not in self._known:
                given = map_arg((node.args, node.kwargs), self.constants.__getitem__)
                self._known[key] = _computed(node, *given)
            result = self._known[key]
        self.constants[node] = result
        self.folded.add(node)
        if isinstance(result, (bool, int, float)):
            _write_out(node, result)

    def _identity(self, node: Node) -> str:
        return f"constant {id(self.constants[node])}"  # which stays alive


def is_folded(op: OpOverload) -> bool:
    """Tell whether an operator is computed when traced, for it reads no elements of an input."""
    if torch.Tag.nondeterministic_seeded in op.tags or op._schema.is_mutable:
        return False
    reads = any("Tensor" in str(argument.type) for argument in op._schema.arguments)
    return op in _SHAPE_ONLY or not reads


def _computed(node: Node, args: Any, kwargs: Any) -> Any:
    if node.target in _SAME:
        return args[0]
    with torch.no_grad():
        return node.target(*args, **kwargs)  # type: ignore[operator]  # an overload or getitem


def _write_out(node: Node, number: float) -> None:
    """Let the users of `node`, which takes a number out of a constant, read the number itself."""
    for user in list(node.users):
        user.args, user.kwargs = map_arg(
            (user.args, user.kwargs), lambda operand: number if operand is node else operand
        )


def _is_empty(node: Node) -> bool:
    """Tell whether an operator yields a tensor without elements, which is the same for all inputs."""
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and 0 in value.shape


def _is_dynamic(node: Node) -> bool:
    """Tell whether the size of a result is a symbol; a tuple is as dynamic as what it is taken of."""
    value = node.meta.get("val")
    results = value if isinstance(value, (tuple, list)) else [value]
    return any(isinstance(result, torch.Tensor) and is_dynamic(result) for result in results)


def _of_same_shape(node: Node) -> torch.Tensor:
    value: torch.Tensor = node.meta["val"]
    return torch.empty(value.shape, dtype=value.dtype)
