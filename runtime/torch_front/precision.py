"""Models in bfloat16, in which no engine here computes, as float32 models."""

from __future__ import annotations

import copy

import torch

from caffeforge.runtime.torch_front.example import Example

_NOTE = "the model computes in bfloat16; it is converted to float32, in which the net computes"


def in_float32(model: torch.nn.Module, example: Example) -> tuple[torch.nn.Module, Example, list[str]]:
    """Return model and example with float32 in place of bfloat16, and a note if anything was converted.

    A model that holds bfloat16 is copied; one that does not is returned as it is.
    """
    tensors = [*model.parameters(), *model.buffers()]
    held = any(tensor.dtype is torch.bfloat16 for tensor in tensors)
    given = any(tensor.dtype is torch.bfloat16 for tensor in example.tensors())
    if held:
        model = copy.deepcopy(model).float()
    if given:
        floats = [t.float() if t.dtype is torch.bfloat16 else t for t in example.tensors()]
        example = example.with_tensors(floats)
    return model, example, [_NOTE] if held or given else []
