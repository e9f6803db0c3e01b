"""Cutting a model at modules: it ends at the outputs of the named ones, and what comes after is never run.

So a part that cannot be traced, such as a detector's choice of boxes, stays outside.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch.utils import _pytree as pytree

from caffeforge.runtime.errors import UsageError


class _ReachedError(Exception):
    """Ends a run of the model once all named outputs are known."""


@contextlib.contextmanager
def outputs_at(model: torch.nn.Module, names: Sequence[str]) -> Iterator[None]:
    """Make ``model(...)`` return the outputs of the modules `names`, in that order.

    Args:
        model: as before afterwards.
        names: paths of modules, as ``head.conv``; ``head.conv@1`` is its second call.

    Raises:
        UsageError: there is no such module, or it is not called.
    """
    if isinstance(names, str):
        raise UsageError("outputs_at is one text", hint="give a list of module paths")
    modules = dict(model.named_modules(remove_duplicate=False))
    for name in names:
        _check(name, modules)
    run = _Run(tuple(names))
    paths = dict.fromkeys(name.partition("@")[0] for name in names)
    hooks = [modules[p].register_forward_hook(run.recorder(p), with_kwargs=True) for p in paths]
    had_own = "forward" in vars(model)
    original = model.forward

    @functools.wraps(original)  # for its signature
    def forward(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        return run.until_reached(original, *args, **kwargs)

    model.forward = forward
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        if had_own:
            model.forward = original
        else:
            del model.forward


class _Run:
    """What is known of the named outputs during one run."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.found: dict[str, Any] = {}
        self.calls: Counter[str] = Counter()

    def recorder(self, path: str) -> Callable[..., None]:
        """Return the hook of the module at `path`."""

        def record(module: torch.nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            call = self.calls[path]
            self.calls[path] += 1
            name = f"{path}@{call}" if call else path
            if name in self.names:
                # A layer behind may write into it, as ReLU(inplace=True) does.
                self.found[name] = pytree.tree_map_only(torch.Tensor, torch.clone, output)
                if len(self.found) == len(set(self.names)):
                    raise _ReachedError

        return record

    def until_reached(self, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Run `forward` until all named outputs are known, and return them."""
        self.found.clear()
        self.calls.clear()
        depth = len(_module_stack())
        try:
            forward(*args, **kwargs)
        except _ReachedError:
            # The tracer counts the modules that are left, and these were left by an exception.
            while len(_module_stack()) > depth:
                _module_stack().popitem()
        missing = [name for name in self.names if name not in self.found]
        if missing:
            counts = ", ".join(f"{path} {count} times" for path, count in self.calls.items())
            raise UsageError(
                f"outputs_at names {', '.join(missing)}, which the model does not call",
                hint=f"of the named modules it calls {counts or 'none'}",
            )
        return tuple(self.found[name] for name in self.names)


def _module_stack() -> dict[Any, Any]:
    """Return the stack of modules that PyTorch's tracer keeps; an empty one outside of it."""
    if torch.compiler.is_dynamo_compiling():
        return {}
    stack: dict[Any, Any] = getattr(getattr(get_proxy_mode(), "tracer", None), "module_stack", {})
    return stack


def _check(name: str, modules: dict[str, torch.nn.Module]) -> None:
    path, _, call = name.partition("@")
    if path not in modules or (call and not call.isdigit()):
        near = difflib.get_close_matches(path, modules, 3)
        raise UsageError(
            f"outputs_at names {name!r}, which is no module of the model",
            hint=f"did you mean {' or '.join(near)}?" if near else "give paths as in model.named_modules()",
        )
