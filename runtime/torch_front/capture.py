"""How a model is captured: by ``torch.export``, and by other ways if that refuses it.

What another way yields is compared with the model on another input, because a trace of one run may hold what
was true for that run only; a decision that depends on values is refused at once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch.export import ExportedProgram

from caffeforge.runtime.errors import FrontEndError, UsageError
from caffeforge.runtime.torch_front import nest
from caffeforge.runtime.torch_front.cut_hint import cut_before_decision
from caffeforge.runtime.torch_front.dynamic import OpenSizes
from caffeforge.runtime.torch_front.example import Example
from caffeforge.runtime.torch_front.opened import Model
from caffeforge.runtime.torch_front.program import (
    DATA_DEPENDENT,
    check_program,
    check_weights,
    export,
    flat_calls,
    reference_attention,
    refusal,
)

_RTOL, _ATOL = 1e-4, 1e-5


def capture(
    model: Model, example: Example, sizes: OpenSizes | None = None
) -> tuple[ExportedProgram, list[str]]:
    """Return `model` as a program of ATen operators, taken in the mode that its modules are in.

    Args:
        model: a module, or a program, which is returned as it is.
        example: what forward() is called with; shapes and dtypes become those of the program.
        sizes: those of a module's inputs that stay open.

    Returns:
        The program, and what the user should know of how it was captured.

    Raises:
        UsageError: the example does not fit a program.
        FrontEndError: a weight has no elements, or PyTorch refuses the model; names the user's line.
    """
    if isinstance(model, ExportedProgram):
        check_program(model, example)
        return model, []
    check_weights(model)
    if sizes is not None:
        return _with_open_sizes(model, example, sizes), []
    try:
        return export(model, example), []
    except Exception as error:
        return _by_another_way(model, example, error)


def _with_open_sizes(model: torch.nn.Module, example: Example, sizes: OpenSizes) -> ExportedProgram:
    """Export a model for all sizes; a trace of one run would fix them, so it is not tried."""
    if isinstance(model, torch.jit.ScriptModule):
        raise UsageError(
            "dynamic_shapes is given for a TorchScript module",
            hint="its sizes are fixed: give the module itself",
        )
    try:
        return export(model, example, sizes=sizes)
    except Exception as error:
        try:
            return export(model, example, sizes=sizes, strict=True)
        except Exception:
            raise refusal(model, error) from error


def _by_another_way(
    model: torch.nn.Module, example: Example, error: Exception
) -> tuple[ExportedProgram, list[str]]:
    why = refusal(model, error)
    if isinstance(model, torch.jit.ScriptModule):
        raise why from error
    if DATA_DEPENDENT in str(error):
        cuts = cut_before_decision(model, example)
        why.hint += f": outputs_at={cuts!r}" if cuts else ""
        raise why from error
    try:
        results = _run(model, example)
    except Exception as fault:  # of the model itself: no way leads around it
        raise refusal(model, fault) from fault
    if nest.holds_unregistered(results):
        return _flattened(model, example), []
    ways: list[tuple[str, Callable[[torch.nn.Module, Example], _Captured]]] = [
        ("a strict export", _strictly),
        ("a TorchScript trace", _by_torchscript),
    ]
    for name, way in ways:
        try:
            captured = way(model, example)
        except Exception:
            continue
        _compare(model, captured, example, name)
        note = f"torch.export refuses the model ({why.what}); it was captured by {name}, and compared"
        return captured.program, [note]
    raise why from error


class _Captured(NamedTuple):
    """A program; `flat` tells whether it takes the example's tensors one by one."""

    program: ExportedProgram
    flat: bool


def _flattened(model: torch.nn.Module, example: Example) -> ExportedProgram:
    """Export a model that returns containers of a class which PyTorch does not know."""
    with flat_calls(model, example):
        try:
            return export(model, Example(tuple(example.tensors()), {}))
        except Exception as error:
            raise refusal(model, error) from error


def _strictly(model: torch.nn.Module, example: Example) -> _Captured:
    return _Captured(export(model, example, strict=True), flat=not example.plain)


def _by_torchscript(model: torch.nn.Module, example: Example) -> _Captured:
    tensors = tuple(example.tensors())
    with warnings.catch_warnings(), reference_attention(), flat_calls(model, example):
        warnings.simplefilter("ignore")  # what they warn of is found by comparing
        script = torch.jit.trace(model, tensors, check_trace=False)  # type: ignore[no-untyped-call]
    return _Captured(export(script, Example(tensors, {})), flat=True)


def _compare(model: torch.nn.Module, captured: _Captured, example: Example, way: str) -> None:
    """Compare a program with its model on the example and on another input.

    Raises:
        FrontEndError: they differ.
    """
    module = captured.program.module(check_guards=False)
    for inputs in (example, _other(example)):
        expected = nest.tensors(_run(model, inputs))
        call = Example(tuple(inputs.tensors()), {}) if captured.flat else inputs
        found = nest.tensors(_run(module, call))
        if len(found) != len(expected) or not all(map(_close, found, expected)):
            raise FrontEndError(
                f"{way} of the model does not compute what the model does for another input",
                hint="its code depends on values of its input: write it with torch functions",
            )


def _run(model: torch.nn.Module, example: Example) -> object:
    call = example.with_tensors([tensor.clone() for tensor in example.tensors()])
    with torch.no_grad():
        return model(*call.args, **call.kwargs)


def _other(example: Example) -> Example:
    """Return another input in the example's range: its elements in another order, halved if floats."""
    generator = torch.Generator().manual_seed(0)
    tensors = []
    for tensor in example.tensors():
        order = torch.randperm(tensor.numel(), generator=generator).to(tensor.device)
        shuffled = tensor.reshape(-1)[order].reshape(tensor.shape)
        tensors.append(-shuffled / 2 if tensor.is_floating_point() else shuffled)
    return example.with_tensors(tensors)


def _close(found: torch.Tensor, expected: torch.Tensor) -> bool:
    """Compare by the scale of the expected tensor."""
    if (found.shape, found.dtype) != (expected.shape, expected.dtype):
        return False
    if not expected.is_floating_point():
        return torch.equal(found, expected)
    return torch.allclose(
        found, expected, rtol=0, atol=_ATOL + _RTOL * float(expected.abs().max()), equal_nan=True
    )
