"""Where to cut a model that decides by values: at the modules that are done when it does so.

The model runs once more, on tensors without elements: that stops at the first decision, as ``torch.export``
does. Which of the finished modules others have read already is told by the autograd graph.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any, Final

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from caffeforge.runtime.torch_front import nest
from caffeforge.runtime.torch_front.example import Example

_MOST: Final = 8  # a longer list of modules helps nobody

Node = Any  # a node of the autograd graph; PyTorch has no public name for its class


def cut_before_decision(model: torch.nn.Module, example: Example) -> list[str]:
    """Return the paths for ``outputs_at`` that leave the first decision by values outside.

    Args:
        model: run once more; in the mode that its modules are in.
        example: what forward() is called with.

    Returns:
        Modules whose results nothing but the rest of the model reads, in the order in which they are done;
        empty if there are none, or too many to be of use.
    """
    done: dict[str, list[Node]] = {}
    hooks = [
        module.register_forward_hook(_recorder(path, done)) for path, module in model.named_modules() if path
    ]
    try:
        with FakeTensorMode(allow_non_fake_inputs=True) as mode, torch.enable_grad():
            call = example.with_tensors([_without_elements(mode, given) for given in example.tensors()])
            with contextlib.suppress(Exception):  # the one that torch.export reported, or any before it
                model(*call.args, **call.kwargs)
    finally:
        for hook in hooks:
            hook.remove()
    found = [path for path in done if not _is_read(path, done)]
    return found if len(found) <= _MOST else []


def _recorder(path: str, done: dict[str, list[Node]]) -> Callable[..., None]:
    def record(module: torch.nn.Module, args: Any, output: Any) -> None:
        with contextlib.suppress(Exception):  # a container that nobody knows
            nodes = [tensor.grad_fn for tensor in nest.tensors(output) if tensor.grad_fn is not None]
            for inner in [name for name in done if name.startswith(f"{path}.")]:
                del done[inner]
            if nodes:
                done[path] = nodes

    return record


def _without_elements(mode: FakeTensorMode, given: torch.Tensor) -> torch.Tensor:
    fake = mode.from_tensor(given)
    return fake.requires_grad_() if fake.is_floating_point() else fake


def _is_read(path: str, done: dict[str, list[Node]]) -> bool:
    """Tell whether another finished module depends on what the module at `path` yields."""
    mine = set(done[path])
    others = [node for name, nodes in done.items() if name != path for node in nodes if node not in mine]
    return not mine.isdisjoint(_ancestors(others))


def _ancestors(nodes: Iterable[Node]) -> set[Node]:
    seen: set[Node] = set()
    ahead = list(nodes)
    while ahead:
        node = ahead.pop()
        if node is not None and node not in seen:
            seen.add(node)
            ahead += [before for before, _ in node.next_functions]
    return seen
