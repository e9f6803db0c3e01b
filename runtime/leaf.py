"""Marks for code that stays one op of a backend's own domain, whatever runs inside it.

A mark is set beside the user's code, so this module imports no torch. It counts for an export to a backend
whose mapping declares the op under ``custom:``; for all others the code is traced as if it were not marked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from caffeforge.runtime.errors import UsageError

_Target = TypeVar("_Target")

# The constant attributes, or a function of the module that gives them.
Attributes = Mapping[str, Any] | Callable[[Any], Mapping[str, Any]]


@dataclass(frozen=True)
class Mark:
    """What `leaf` was told; see there."""

    target: Any
    op: str
    attributes: Attributes
    weights: tuple[str, ...]


_marks: Final[dict[int, Mark]] = {}  # by the target's identity; the mark keeps it alive


def marks() -> list[Mark]:
    """Return all marks, in the order in which they were set."""
    return list(_marks.values())


def leaf(
    target: _Target, op: str, *, attributes: Attributes | None = None, weights: Sequence[str] = ()
) -> _Target:
    """Let `target` be one op in exports, and return it as it is.

    Tensors among the arguments of a call become the op's inputs, in order, then the weights. Other arguments
    become the attributes of their names; an attribute that is no argument is read off the module.

    Args:
        target: a class of modules, one module, a subclass of ``torch.autograd.Function``, or a function that
            its callers find as a global name.
        op: the dotted name of an op that a mapping declares, as ``vendory.Focus``.
        attributes: those that are neither arguments nor attributes of the module, or a function that takes
            the module and gives them.
        weights: names of the module's parameters and buffers that are inputs of the op.

    Raises:
        UsageError: the target cannot be marked, or `op` is no dotted name.
    """
    domain, _, kind = op.rpartition(".")
    if not domain.isidentifier() or not kind.isidentifier():
        raise UsageError(f"{op!r} is no name of a custom op", hint="write it as vendory.Focus")
    if not callable(target):
        raise UsageError(f"a {type(target).__name__} cannot be a leaf", hint="give a module or a function")
    if isinstance(weights, str):
        raise UsageError("weights is one text", hint="give a list of names")
    _marks[id(target)] = Mark(target, op, {} if attributes is None else attributes, tuple(weights))
    return target
