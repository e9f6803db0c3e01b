"""NumPy references of ops that ONNX lacks; the executor runs them between its ONNX sessions.

A reference is registered by the module that knows the op:

    @reference(caffe.Proposal)
    def proposal(op: caffe.Proposal, operands: Sequence[NDArray | None]) -> Sequence[NDArray]: ...
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, TypeVar

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.graph import Node
from caffeforge.runtime.op import Op

# (op, operands at the positions of the op's inputs) -> results in the order of its outputs.
Reference = Callable[[Any, Sequence["NDArray | None"]], Sequence[NDArray]]
_Function = TypeVar("_Function", bound=Reference)

_references: dict[type[Op], Reference] = {}
_remembered: dict[Op, Reference] = {}


def reference(op_class: type[Op]) -> Callable[[_Function], _Function]:
    """Register the decorated function as the reference of `op_class`."""

    def register(function: _Function) -> _Function:
        _references[op_class] = function
        return function

    return register


def remember(op: Op, function: Reference) -> None:
    """Let `function` be the reference of ops equal to `op`: the user's own code that the op stands for."""
    _remembered[op] = function


def find(node: Node) -> Reference:
    """Return the reference of the node's op.

    Raises:
        GraphError: there is none.
    """
    if node.op.domain == "caffe":
        import_module("caffeforge.runtime.references")
    found = _references.get(type(node.op)) or _remembered.get(node.op) or _of_torch(node.op)
    if found is None:
        raise GraphError(
            f"{node.op.domain}.{node.op.op_type} is not an ONNX operator and has no reference, so it "
            "cannot be run",
            where=node.name,
            hint=f"it comes from {node.origin}; give it a reference: under custom: of the mapping, or import "
            "the torch.library operator that it stands for",
        )
    return found


def _of_torch(op: Op) -> Reference | None:
    """Return the ``torch.library`` operator that an op stands for, if the user's program has defined it."""
    if op.custom is None or not op.custom.torch or "torch" not in sys.modules:
        return None
    from caffeforge.runtime.torch_reference import of_library

    return of_library(op.custom.torch)
