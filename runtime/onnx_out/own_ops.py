"""Ops of a domain of their own in ONNX files: which stay, and the nodes that they are then.

An op stays one node of its domain where the target's tools know it, or where nothing else can say it. What
it computes can stand beside it as a local function of the model, so that onnxruntime runs the file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from caffeforge.runtime.backend import Alternative, Rule
from caffeforge.runtime.errors import UsageError
from caffeforge.runtime.onnx_out.emit import OnnxEmit, OpCall, source_of
from caffeforge.runtime.op import Op, full_name
from caffeforge.runtime.refusal import Refused
from caffeforge.runtime.refusals import Refusal, cause

if TYPE_CHECKING:
    from caffeforge.runtime.onnx_out.backend import OnnxBackend

PLACE: Final = "an op of its own domain"  # of the rule that keeps one
BODY: Final = "what it computes"  # of the rule that says one by other ops
DOMAIN_OF_BODIES: Final = "caffe"
DOMAIN_OF_LOOPS: Final = "caffeforge"  # of Loops before they are written; it is in no file
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


def bodies_of(op: Op) -> tuple[Callable[..., None], ...]:
    """Return what builds an op of a domain of its own from others, in order of preference."""
    if op.custom is not None and op.custom.reference is not None:
        return (op.custom.reference,)
    if op.domain != DOMAIN_OF_BODIES:
        return ()
    from caffeforge.runtime.onnx_out.bodies import BODIES

    return BODIES.get(type(op), ())


def body_rule(op: Op) -> Rule | None:
    """Return the rule that says an op of a domain of its own by others, if its reference does not."""
    found = bodies_of(op)
    if not found or (op.custom is not None and op.custom.reference is not None):
        return None
    return Rule(tuple(Alternative(body, BODY) for body in found))


def own_rule(op: Op, backend: OnnxBackend, choice: str) -> Rule:
    """Return the rule that keeps an op as a node of its domain.

    Left to caffeforge, an op whose body has to be other nodes, for want of local functions, is that first.
    """
    body = body_rule(op) if choice == "auto" and not has_functions(backend, choice) else None
    before = body.alternatives if body is not None and full_name(op) not in backend.custom else ()
    return Rule((*before, Alternative(write_own, PLACE, computed=True)))


def has_functions(backend: OnnxBackend, choice: str) -> bool:
    """Tell whether local functions are written: asked for, or known by the opset's IR version."""
    return choice == "function" or (choice == "auto" and backend.opset >= OLDEST_WITH_FUNCTIONS)


def left_over(calls: Sequence[OpCall], backend: OnnxBackend) -> list[str]:
    """Return a sentence for each kind of Caffe's ops that others cannot say and no function stands by.

    Where functions are written, theirs tell of ops that could have one.
    """
    from caffeforge.runtime.legalize import Legalizer
    from caffeforge.runtime.onnx_out.target import OnnxTarget

    lowering = OnnxTarget(backend, own_ops="lower")
    found: dict[str, None] = {}
    for call in calls:
        told = has_functions(backend, "auto") and bodies_of(call.node.op)
        if call.domain == DOMAIN_OF_BODIES and not call.has_function and not told:
            refusal = Legalizer(lowering, False).node(call.node, ())
            call.node.own_outputs()
            reason = cause(refusal.document()) if isinstance(refusal, Refusal) else ""
            found[
                f"{call.kind} stays a node of its own domain, which only caffeforge runs; "
                f"{backend.name} cannot say it: {reason}"
            ] = None
    return list(found)


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
