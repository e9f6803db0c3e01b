"""Ops of a domain of their own in ONNX files: which stay, and the nodes that they are then.

An op stays one node of its domain where the target's tools know it, or where nothing else can say it. What
it computes can stand beside it as a local function of the model, so that onnxruntime runs the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from caffeforge.runtime.errors import UsageError
from caffeforge.runtime.onnx_out.emit import OnnxEmit, OpCall, source_of
from caffeforge.runtime.op import Op, full_name
from caffeforge.runtime.refusal import Refused

if TYPE_CHECKING:
    from caffeforge.runtime.onnx_out.backend import OnnxBackend

PLACE: Final = "an op of its own domain"  # of the rule that keeps one
CHOICES: Final = ("auto", "function", "node", "lower")
OLDEST_WITH_FUNCTIONS: Final = 15  # the opset whose IR version knows local functions


def check_choice(choice: str) -> None:
    """Refuse what is no choice of `own_ops`.

    Raises:
        UsageError: it is none.
    """
    if choice not in CHOICES:
        raise UsageError(f"own_ops={choice!r} is not known", hint=f"give {', '.join(CHOICES)}")


def stays(op: Op, backend: OnnxBackend, choice: str) -> bool:
    """Tell whether an op of a domain of its own is written as a node of it.

    Left to caffeforge, one stays that the backend declares; others stay in a whole opset where they have no
    definition by other ops.
    """
    if not op.domain or op.custom is None or choice == "lower":
        return False
    if choice in ("function", "node") or full_name(op) in backend.custom:
        return True
    return op.custom.reference is None and not backend.is_subset


def has_functions(backend: OnnxBackend, choice: str) -> bool:
    """Tell whether local functions are written: asked for, or known by the opset's IR version."""
    return choice == "function" or (choice == "auto" and backend.opset >= OLDEST_WITH_FUNCTIONS)


def write_own(e: OnnxEmit, op: Any, *_: object) -> None:
    """Write an op as a node of its domain, with all its attributes.

    Raises:
        Refused: the backend is a vendor's part of an opset and does not declare it, or refuses it.
    """
    name = full_name(op)
    if e.backend.is_subset and name not in e.backend.custom:
        raise Refused(f"{e.backend.name} declares no {name}{source_of(e.backend)}", e.rule)
    e.constrain()
    operands = list(e.node.inputs)
    while operands and operands[-1] is None:
        operands.pop()
    e.calls.append(
        OpCall(
            e.stem,
            op.op_type,
            op.domain,
            0,
            tuple(op.fields()),
            operands,
            list(e.node.outputs),
            e.node,
            e.rule,
        )
    )
