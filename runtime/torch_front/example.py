"""The example inputs of a trace: tensors by position or by name, each with memory of its own."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch.export import ExportedProgram

from caffeforge.runtime.errors import UsageError

_ACCEPTED = "give a tensor, a tuple or list of tensors, or a dict from forward()'s parameter names to tensors"


@dataclass(frozen=True)
class Example:
    """What forward() is called with."""

    args: tuple[torch.Tensor, ...]
    kwargs: dict[str, torch.Tensor]

    @staticmethod
    def of(example_inputs: object) -> Example:
        """Return the inputs in one form.

        Every tensor is copied: two inputs that are one tensor, or views of one, would be traced as one input,
        and the model may write into them.

        Raises:
            UsageError: something other than tensors is given.
        """
        if isinstance(example_inputs, torch.Tensor):
            return Example((_tensor(example_inputs, "the example input"),), {})
        if isinstance(example_inputs, Mapping):
            named = {str(k): _tensor(v, f"example input {k!r}") for k, v in example_inputs.items()}
            return Example((), named)
        if isinstance(example_inputs, (tuple, list)):
            return Example(tuple(_tensor(v, f"example input {i}") for i, v in enumerate(example_inputs)), {})
        raise UsageError(f"the example inputs are a {type(example_inputs).__name__}", hint=_ACCEPTED)

    @staticmethod
    def recorded_in(program: ExportedProgram) -> Example:
        """Return the inputs that `program` was exported with.

        Raises:
            UsageError: the program does not hold them, or they are not plain tensors.
        """
        if program.example_inputs is None:
            raise UsageError("the exported program holds no example inputs", hint=_ACCEPTED)
        args, kwargs = program.example_inputs
        return Example(Example.of(tuple(args)).args, Example.of(dict(kwargs)).kwargs)

    def tensors(self) -> list[torch.Tensor]:
        """Return the tensors in the order of an exported program's inputs."""
        return [*self.args, *self.kwargs.values()]

    def names(self, model: torch.nn.Module) -> list[str]:
        """Return forward()'s parameter name for each tensor; those of ``*args`` are numbered.

        Raises:
            UsageError: forward() cannot be called with these inputs.
        """
        try:
            bound = inspect.signature(model.forward).bind(*self.args, **self.kwargs)
        except TypeError as error:
            raise UsageError(
                f"{type(model).__name__}.forward() does not fit the example inputs: {error}", hint=_ACCEPTED
            ) from None
        names: list[str] = []
        for name, given in bound.arguments.items():
            kind = bound.signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                names += [f"{name}_{index}" for index in range(len(given))]
            elif kind is not inspect.Parameter.VAR_KEYWORD and name not in self.kwargs:
                names.append(name)
        return [*names, *self.kwargs]


def _tensor(given: object, what: str) -> torch.Tensor:
    if not isinstance(given, torch.Tensor):
        if isinstance(given, (tuple, list, Mapping)):
            raise UsageError(f"{what} is nested (a {type(given).__name__})", hint=f"for now, {_ACCEPTED}")
        raise UsageError(
            f"{what} is a {type(given).__name__}, not a tensor",
            hint="wrap the model in a module whose forward() takes tensors only",
        )
    if given.is_meta:
        raise UsageError(f"{what} lies on the meta device and has no elements")
    if not given.numel():
        raise UsageError(f"{what} is {list(given.shape)}, without elements", hint="give an example of usual size")
    if given.dtype is torch.bfloat16:
        raise UsageError(
            f"{what} is bfloat16, in which no reference values can be computed",
            hint="convert the model with model.float() and give float32 inputs",
        )
    return given.detach().clone()
