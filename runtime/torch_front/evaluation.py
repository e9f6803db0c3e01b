"""Evaluation mode for the duration of a trace: dropout off, batch norm by its running statistics."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

_SHOWN = 3  # so many modules are named in the warning


@contextlib.contextmanager
def evaluating(model: torch.nn.Module | None) -> Iterator[list[str]]:
    """Put `model` in evaluation mode without gradients; yield what the user should know about that.

    None stands for a program, which has no such mode. Every module's flag is restored afterwards, also if
    only some of them were in training mode.
    """
    modules = model.named_modules() if model is not None else ()
    training = {path: module for path, module in modules if module.training}
    for module in training.values():
        module.training = False
    try:
        with torch.no_grad():
            yield [_note(list(training))] if training else []
    finally:
        for module in training.values():
            module.training = True


def _note(paths: list[str]) -> str:
    if "" in paths:
        who = "the model is"
    else:
        more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
        who = f"{', '.join(paths[:_SHOWN])}{more} {'are' if len(paths) > 1 else 'is'}"
    return f"{who} in training mode; traced in evaluation mode: no dropout, batch norm by running statistics"
