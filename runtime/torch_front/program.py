"""Capturing: a module and example inputs become a ``torch.export.ExportedProgram``."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator

import torch
from torch.export import ExportedProgram
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

from caffeforge.runtime.errors import FrontEndError, UsageError
from caffeforge.runtime.torch_front import frames
from caffeforge.runtime.torch_front.example import Example

# What stands in PyTorch's message, and what the user can do about it.
_HINTS = (
    (
        "data-dependent",
        "the code branches or loops on values of a tensor, which a fixed graph cannot do: "
        "use torch.where, or take the decision outside the model",
    ),
    ("numpy", "the code leaves PyTorch for NumPy: write this part with torch functions"),
    ("register_dataclass", "register the class with torch.export.register_dataclass, or return a tuple"),
    ("was assigned during export", "forward() stores a tensor on the module: make it a buffer in __init__"),
)
_HINT = "check that model(*example_inputs) runs, and that torch.export.export accepts the model"


def capture(model: object, example: Example) -> ExportedProgram:
    """Return `model` as a program of ATen operators, taken in the mode that its modules are in.

    Args:
        model: an nn.Module, or an ExportedProgram, which is returned as it is.
        example: what forward() is called with; shapes and dtypes become those of the program.

    Raises:
        UsageError: `model` is something else.
        FrontEndError: a weight has no elements, or ``torch.export`` refuses the model; names the user's line.
    """
    if isinstance(model, ExportedProgram):
        _refuse_foreign_shapes(model, example)
        return model
    if not isinstance(model, torch.nn.Module):
        raise UsageError(
            f"a {type(model).__name__} cannot be traced",
            hint="give a torch.nn.Module or a torch.export.ExportedProgram",
        )
    _refuse_missing_weights(model)
    with _reference_attention(), frames.recording(), _quiet_failure():
        try:
            return torch.export.export(model, example.args, example.kwargs, strict=False)
        except Exception as error:
            raise _refusal(model, error) from error


def _refuse_missing_weights(model: torch.nn.Module) -> None:
    for name, weight in [*model.named_parameters(), *model.named_buffers()]:
        if isinstance(weight, (UninitializedParameter, UninitializedBuffer)):
            raise FrontEndError(
                f"parameter {name} of a lazy module has no shape yet", hint="run the model once before"
            )
        if weight.is_meta:
            raise FrontEndError(
                f"weight {name} lies on the meta device and has no elements",
                hint="materialize the model, with model.to_empty(device='cpu') and load_state_dict()",
            )


def _refuse_foreign_shapes(program: ExportedProgram, example: Example) -> None:
    """Refuse inputs that do not fit the program, and programs with dimensions that are no fixed numbers."""
    names = program.graph_signature.user_inputs
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    if len(names) != len(example.tensors()):
        raise UsageError(f"the program takes {len(names)} inputs, {len(example.tensors())} are given")
    for name, given in zip(names, example.tensors(), strict=True):
        value = values[str(name)]
        if not isinstance(value, torch.Tensor):
            raise UsageError(f"input {name} of the program is a {type(value).__name__}, not a tensor")
        if any(not isinstance(size, int) for size in value.shape):
            raise FrontEndError(
                f"input {name} of the program has dynamic dimensions: {list(value.shape)}",
                hint="export it without dynamic_shapes",
            )
        if (value.shape, value.dtype) != (given.shape, given.dtype):
            raise UsageError(
                f"input {name} of the program is {value.dtype} {list(value.shape)}, "
                f"{given.dtype} {list(given.shape)} is given"
            )


@contextlib.contextmanager
def _reference_attention() -> Iterator[None]:
    """Keep attention modules from calling their fused kernel, which is no operator of a graph."""
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)


@contextlib.contextmanager
def _quiet_failure() -> Iterator[None]:
    """Hold back what is printed, and drop it on failure: PyTorch prints the partial graph then."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield
    sys.stdout.write(out.getvalue())
    sys.stderr.write(err.getvalue())


def _refusal(model: torch.nn.Module, error: Exception) -> FrontEndError:
    text = str(error)
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    hint = next((hint for words, hint in _HINTS if words in text.lower()), _HINT)
    what = f"PyTorch cannot export {type(model).__name__}: {type(error).__name__}: {first}"
    return FrontEndError(what, where=frames.line_of_exception(error), hint=hint)
