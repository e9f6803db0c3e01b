"""Models in files (exported programs, TorchScript modules) and named as ``package.module:function``."""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path

import torch
from torch.export import ExportedProgram

from caffeforge.runtime.errors import UsageError

Model = torch.nn.Module | ExportedProgram

_KINDS = "files hold an exported program (.pt2) or a TorchScript module"


def opened(model: object) -> Model:
    """Return a model as it is, or the one that a path or a name stands for.

    Raises:
        UsageError: there is no such file or function, or it gives no model.
    """
    if isinstance(model, (str, Path)):
        text = str(model)
        module, separator, function = text.rpartition(":")
        named = separator and not Path(text).exists() and "/" not in text
        return opened(_made(module, function) if named else _loaded(Path(model)))
    if not isinstance(model, (torch.nn.Module, ExportedProgram)):
        raise UsageError(
            f"a {type(model).__name__} cannot be traced",
            hint="give a torch.nn.Module, a torch.export.ExportedProgram, or a file with one",
        )
    return model


def _loaded(path: Path) -> object:
    if not path.is_file():
        raise UsageError("there is no such file", where=str(path))
    try:
        if path.suffix == ".pt2":
            return torch.export.load(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # that TorchScript is old, whoever wrote the file
            return torch.jit.load(str(path), map_location="cpu")  # type: ignore[no-untyped-call]
    except Exception as error:
        first = next(iter(str(error).splitlines()), "")
        raise UsageError(
            f"PyTorch cannot load it: {type(error).__name__}: {first}",
            where=str(path),
            hint=f"{_KINDS}; a file of weights needs the code of its module, so load it there",
        ) from None


def _made(module: str, function: str) -> object:
    """Return what ``function()`` of a module gives; it may be a model itself."""
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"{module}:{function} cannot be imported: {error}", hint="name module:function"
        ) from None
    return found() if callable(found) and not isinstance(found, torch.nn.Module) else found
