"""Capturing: a module and example inputs become a ``torch.export.ExportedProgram``."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

from caffeforge.runtime.errors import CaffeforgeError, FrontEndError, UsageError
from caffeforge.runtime.torch_front import frames, nest
from caffeforge.runtime.torch_front.dynamic import OpenSizes
from caffeforge.runtime.torch_front.example import Example
from caffeforge.runtime.torch_front.sizes import is_dynamic
from caffeforge.runtime.torch_front.torchscript import FromScript

DATA_DEPENDENT = "data-dependent"

# What stands in PyTorch's message, and what the user can do about it.
_HINTS = (
    (
        DATA_DEPENDENT,
        "the code branches or loops on values of a tensor, which a fixed graph cannot do: use torch.where, "
        "take the decision outside the model, or cut the model before it with outputs_at",
    ),
    ("numpy", "the code leaves PyTorch for NumPy: write this part with torch functions"),
    ("register_dataclass", "register the class with torch.export.register_dataclass, or return a tuple"),
    ("was assigned during export", "forward() stores a tensor on the module: make it a buffer in __init__"),
)
_HINT = "check that model(*example_inputs) runs, and that torch.export.export accepts the model"


def export(
    model: torch.nn.Module, example: Example, *, strict: bool = False, sizes: OpenSizes | None = None
) -> ExportedProgram:
    """Return what ``torch.export`` makes of `model`; its exceptions pass.

    A nested or constant argument, and a container that PyTorch does not know, are taken apart before.
    """
    if sizes is not None:
        tensors = tuple(sizes.large_example().tensors())
        with reference_attention(), frames.recording(), _quiet_failure(), flat_calls(model, example):
            return torch.export.export(model, tensors, strict=strict, dynamic_shapes=(sizes.shapes,))
    if isinstance(model, torch.jit.ScriptModule):
        module = FromScript(model)
        with _quiet_failure(), torch.fx.traceback.preserve_node_meta():
            return torch.export.export(module, example.args, example.kwargs, strict=False)
    with reference_attention(), frames.recording(), _quiet_failure():
        if example.plain:
            return torch.export.export(model, example.args, example.kwargs, strict=strict)
        with flat_calls(model, example):
            return torch.export.export(model, tuple(example.tensors()), strict=strict)


@contextlib.contextmanager
def flat_calls(model: torch.nn.Module, example: Example) -> Iterator[None]:
    """Make `model` take the example's tensors one by one, and return its results as a tuple of leaves."""
    had_own = "forward" in vars(model)
    original = model.forward

    def forward(*tensors: torch.Tensor) -> tuple[Any, ...]:
        call = example.with_tensors(tensors)
        return tuple(nest.flattened(original(*call.args, **call.kwargs)))

    model.forward = forward
    try:
        yield
    finally:
        if had_own:
            model.forward = original
        else:
            del model.forward


def check_weights(model: torch.nn.Module) -> None:
    """Refuse a model whose weights have no elements.

    Raises:
        FrontEndError: names the first one.
    """
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


def check_program(program: ExportedProgram, example: Example) -> None:
    """Refuse inputs that do not fit the program.

    Raises:
        UsageError: they do not; an open size fits any.
    """
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    names = input_names(program)
    if len(names) != len(example.tensors()):
        raise UsageError(f"the program takes {len(names)} inputs, {len(example.tensors())} are given")
    for name, given in zip(names, example.tensors(), strict=True):
        value = values[name]
        assert isinstance(value, torch.Tensor)
        fits = len(value.shape) == given.dim() and all(
            not isinstance(due, int) or size == due
            for due, size in zip(value.shape, given.shape, strict=True)
        )
        if not fits or value.dtype != given.dtype:
            raise UsageError(
                f"input {name} of the program is {value.dtype} {list(value.shape)}, "
                f"{given.dtype} {list(given.shape)} is given"
            )


def input_names(program: ExportedProgram) -> list[str]:
    """Return the names of the inputs that are tensors."""
    inputs = set(program.graph_signature.user_inputs)
    return [
        node.name
        for node in program.graph.nodes
        if node.op == "placeholder" and node.name in inputs and isinstance(node.meta.get("val"), torch.Tensor)
    ]


def has_open_sizes(program: ExportedProgram) -> bool:
    """Tell whether an input of a program has a size that is no number."""
    values = (node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder")
    return any(is_dynamic(value) for value in values if isinstance(value, torch.Tensor))


def refusal(model: torch.nn.Module, error: Exception) -> CaffeforgeError:
    """Return the error that says why `model` cannot be captured, with the user's line."""
    if isinstance(error, CaffeforgeError):
        return error
    text = str(error)
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    hint = next((hint for words, hint in _HINTS if words in text.lower()), _HINT)
    what = f"PyTorch cannot export {type(model).__name__}: {type(error).__name__}: {first}"
    return FrontEndError(what, where=frames.line_of_exception(error), hint=hint)


@contextlib.contextmanager
def reference_attention() -> Iterator[None]:
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
