"""Models in files (exported programs, TorchScript modules) and named as ``package.module:function``."""

from __future__ import annotations

import importlib
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram

from caffeforge.runtime.errors import FrontEndError, UsageError

Model = torch.nn.Module | ExportedProgram

_KINDS = "files hold an exported program (.pt2) or a TorchScript module"


def opened(model: object) -> Model:
    """Return a model as it is, or the one that a path or a name stands for.

    Raises:
        UsageError: there is no such file or function, or it gives no model.
    """
    if isinstance(model, (str, Path)):
        text = str(model)
        named = ":" in text and "/" not in text and not Path(text).exists()
        return made(text) if named else opened(_loaded(Path(model)))
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


def made(source: str) -> Model:
    """Import ``package.module:name``, from the current folder too, and return the model that it is or makes.

    Raises:
        UsageError: the text has another form.
        FrontEndError: the user's code fails, or gives no model.
    """
    module, _, name = source.partition(":")
    if not module or not name:
        raise UsageError(
            f"{source!r} names no model", hint="write package.module:name, as torchvision.models:resnet18"
        )
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        model = found if isinstance(found, Model) else found()
    except Exception as error:  # whatever the user's code does
        raise FrontEndError(f"{type(error).__name__}: {error}", where=source) from error
    finally:
        sys.path.remove(here)
    if not isinstance(model, Model):
        raise FrontEndError(f"gives {type(model).__name__}, a torch.nn.Module is due", where=source)
    return model
