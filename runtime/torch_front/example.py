"""The example inputs of a trace: tensors, nested or not, by position or by name, each with its own memory."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram

from caffeforge.runtime.errors import UsageError
from caffeforge.runtime.torch_front import nest

_ACCEPTED = (
    "give a tensor, a tuple or list of forward()'s arguments, or a dict from its parameter names to them; "
    "arguments may be nested in tuples, lists, dicts and dataclasses"
)
_CONSTANTS = (bool, int, float, str, type(None), torch.dtype, torch.device)


@dataclass(frozen=True)
class Example:
    """What forward() is called with; numbers and texts in it are constants of the trace."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @staticmethod
    def of(example_inputs: object) -> Example:
        """Return the inputs in one form.

        Every tensor is copied: two inputs that are one tensor, or views of one, would be traced as one input,
        and the model may write into them.

        Raises:
            UsageError: no tensor is given, or something that is neither a tensor nor a constant.
        """
        args: tuple[Any, ...] = ()
        kwargs: dict[str, Any] = {}
        if isinstance(example_inputs, Mapping):
            kwargs = {str(name): given for name, given in example_inputs.items()}
        elif isinstance(example_inputs, (tuple, list)) and not hasattr(example_inputs, "_fields"):
            args = tuple(example_inputs)
        else:
            args = (example_inputs,)
        found = Example(args, kwargs)._copied()
        if not found.tensors():
            raise UsageError("the example inputs hold no tensor", hint=_ACCEPTED)
        return found

    @staticmethod
    def recorded_in(program: ExportedProgram) -> Example:
        """Return the inputs that `program` was exported with.

        Raises:
            UsageError: the program does not hold them, or they are neither tensors nor constants.
        """
        if program.example_inputs is None:
            raise UsageError("the exported program holds no example inputs", hint=_ACCEPTED)
        args, kwargs = program.example_inputs
        return Example(tuple(args), dict(kwargs))._copied()

    @property
    def plain(self) -> bool:
        """Tell whether every argument is a tensor."""
        return all(isinstance(given, torch.Tensor) for given in (*self.args, *self.kwargs.values()))

    def tensors(self) -> list[torch.Tensor]:
        """Return the tensors in the order of an exported program's inputs."""
        return [leaf for _, leaf in self._leaves() if isinstance(leaf, torch.Tensor)]

    def with_tensors(self, tensors: Sequence[torch.Tensor]) -> Example:
        """Return the same call with other tensors, in order."""
        given = iter(tensors)
        replaced = [next(given) if isinstance(leaf, torch.Tensor) else leaf for _, leaf in self._leaves()]
        args, kwargs = nest.rebuilt((self.args, self.kwargs), iter(replaced))
        return Example(args, kwargs)

    def names(self, model: torch.nn.Module) -> list[str]:
        """Return a name for each tensor: forward()'s parameter, and where it lies in a nested argument.

        The arguments of ``*args`` are numbered.

        Raises:
            UsageError: forward() cannot be called with these inputs.
        """
        if isinstance(model, torch.jit.ScriptModule):
            return _script_names(model, len(self.tensors()))
        try:
            bound = inspect.signature(model.forward).bind(*self.args, **self.kwargs)
        except TypeError as error:
            raise UsageError(
                f"{type(model).__name__}.forward() does not fit the example inputs: {error}", hint=_ACCEPTED
            ) from None
        named: dict[str, Any] = {}
        for name, given in bound.arguments.items():
            kind = bound.signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                named.update((f"{name}_{index}", item) for index, item in enumerate(given))
            elif kind is not inspect.Parameter.VAR_KEYWORD and name not in self.kwargs:
                named[name] = given
        named.update(self.kwargs)
        return [
            re.sub(r"[^\w./:-]", "_", path)
            for path, leaf in nest.leaves(named)
            if isinstance(leaf, torch.Tensor)
        ]

    def _leaves(self) -> list[tuple[str, Any]]:
        return list(nest.leaves((self.args, self.kwargs)))

    def _copied(self) -> Example:
        numbered: dict[str, Any] = {str(index): given for index, given in enumerate(self.args)}
        numbered.update((repr(name), given) for name, given in self.kwargs.items())
        copies = [_checked(leaf, f"example input {path}") for path, leaf in nest.leaves(numbered)]
        args, kwargs = nest.rebuilt((self.args, self.kwargs), iter(copies))
        return Example(args, kwargs)


def _script_names(model: torch.jit.ScriptModule, count: int) -> list[str]:
    """Return the names of a TorchScript module's inputs, as far as its graph knows them."""
    names = [re.sub(r"\.\d+$", "", value.debugName()) for value in model.graph.inputs()][1:]
    if len(names) != count:
        raise UsageError(
            f"the TorchScript module takes {len(names)} inputs, {count} are given", hint=_ACCEPTED
        )
    return [name if re.match(r"[A-Za-z_]", name) else f"input_{index}" for index, name in enumerate(names)]


def _checked(given: Any, what: str) -> Any:
    if isinstance(given, _CONSTANTS):
        return given
    if not isinstance(given, torch.Tensor):
        raise UsageError(f"{what} is a {type(given).__name__}, not a tensor", hint=_ACCEPTED)
    if given.is_meta:
        raise UsageError(f"{what} lies on the meta device and has no elements")
    if given.layout is not torch.strided or given.is_quantized:
        raise UsageError(f"{what} is no plain array", hint="give a dense tensor of numbers")
    if not given.numel():
        raise UsageError(f"{what} is {list(given.shape)}, without elements", hint="give one of usual size")
    return given.detach().clone()
