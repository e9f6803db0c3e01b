"""The attributes of a model's modules, kept as they are while it is captured.

A model may store what it computes on itself, as detectors do with their anchors. During a capture these are
tensors without elements, with which the model could not run afterwards.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def attributes_kept(model: torch.nn.Module | None) -> Iterator[None]:
    """Undo afterwards what a run of `model` stores on its modules; None stands for a program."""
    modules = [
        module
        for module in (model.modules() if model is not None else ())
        if not isinstance(module, torch.jit.ScriptModule)  # its attributes lie elsewhere
    ]
    before = [(module, dict(vars(module))) for module in modules]
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", "The tensor attributes? "
            )  # were assigned: they are undone here
            yield
    finally:
        for module, attributes in before:
            now = vars(module)
            for name in [name for name in now if name not in attributes]:
                del now[name]
            for name, value in attributes.items():
                if now.get(name) is not value:
                    now[name] = value
