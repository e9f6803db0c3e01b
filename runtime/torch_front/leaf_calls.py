"""Leaves: while a model is captured, what the user marked is one operator, and its inside is not traced.

The operator is one for all leaves; `Site` holds what a call of it stands for. Its inside runs once on zeros,
for the shapes of its results, and on real tensors whenever the program runs.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import inspect
import itertools
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any, Final
from weakref import WeakValueDictionary

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils import _pytree as pytree

from caffeforge.runtime.errors import UsageError
from caffeforge.runtime.leaf import Mark, marks
from caffeforge.runtime.op import CustomOp
from caffeforge.runtime.torch_front.frames import line_of_caller

_LIBRARY: Final = torch.library.Library("caffeforge", "FRAGMENT")  # type: ignore[no-untyped-call]
_LIBRARY.define("leaf(str op, int site, Tensor[] inputs) -> Tensor[]")  # type: ignore[no-untyped-call]
LEAF: Final = torch.ops.caffeforge.leaf.default

_sites: Final[WeakValueDictionary[int, Site]] = WeakValueDictionary()
_numbers: Final = itertools.count()
_running: Final[list[Site]] = []  # sites whose inside runs now: leaves in it run as they are


class Site:
    """One call of a leaf.

    Attributes:
        mark: what the user said of it.
        module: the module that was called, None for a function.
        source: the user's line that calls it, as ``file:line``; the tracer does not record it.
        arguments: (parameter, argument, default) of the call, with `TENSOR` for each tensor.
        hidden: names of the module's tensors that are no inputs of the op.
    """

    def __init__(
        self,
        mark: Mark,
        function: Callable[..., Any],
        module: torch.nn.Module | None,
        state: Mapping[str, torch.Tensor],
        call: tuple[Sequence[Any], Mapping[str, Any]],
    ) -> None:
        self.mark = mark
        self.module = module
        self.source = line_of_caller()
        self.hidden = [name for name in state if name not in mark.weights]
        self.results: pytree.TreeSpec | None = None
        self._function = function
        self._state = state
        given, self._spec = pytree.tree_flatten(call)
        self._leaves = [TENSOR if isinstance(leaf, torch.Tensor) else leaf for leaf in given]
        args, kwargs = pytree.tree_unflatten(self._leaves, self._spec)
        self.arguments = _bound(function, args, kwargs)

    def run(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Run the leaf's own code on the tensors of a call, then its weights; its results share no memory."""
        given = iter(tensors)
        leaves = [next(given) if leaf is TENSOR else leaf for leaf in self._leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self._spec)
        _running.append(self)
        try:
            if self.module is None:
                results = self._function(*args, **kwargs)
            else:
                # While the model is captured its parameters are fake: put the real ones in their places.
                state = {**self._state, **dict(zip(self.mark.weights, given, strict=True))}
                results = torch.func.functional_call(self.module, dict(state), args, kwargs)
        finally:
            _running.pop()
        found, self.results = pytree.tree_flatten(results)
        return [tensor.clone() for tensor in found]


class _Tensor:
    """Stands for a tensor in the arguments of a call."""

    def __repr__(self) -> str:
        return "a tensor"


TENSOR: Final = _Tensor()


def site_of(number: int) -> Site:
    """Return the site that a call of the operator names."""
    return _sites[number]


def _real(op: str, site: int, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    return _sites[site].run(inputs)


def _fake(op: str, site: int, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    with unset_fake_temporarily(), torch.no_grad():
        found = _sites[site].run([torch.zeros(t.shape, dtype=t.dtype, device=t.device) for t in inputs])
    return [torch.empty(t.shape, dtype=t.dtype, device=t.device) for t in found]


_LIBRARY.impl("leaf", _real, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
torch.library.register_fake("caffeforge::leaf", _fake, lib=_LIBRARY)


@contextlib.contextmanager
def leaves(model: torch.nn.Module | None, custom: Mapping[str, CustomOp]) -> Iterator[list[Site]]:
    """Make calls of what is marked one operator each; yield their sites, which must be kept with the program.

    Args:
        model: as before afterwards; None for a program, in which nothing can be marked any more.
        custom: the backend's own ops; marks for ops of other domains do not count.

    Raises:
        UsageError: the backend's domain has no op that a mark names, or a function is no global.
    """
    kept: list[Site] = []
    with contextlib.ExitStack() as undo:
        for mark in marks() if model is not None and not isinstance(model, torch.jit.ScriptModule) else ():
            if _counts(mark, custom):
                assert model is not None
                for owner, name, new in _replacements(model, mark, kept):
                    undo.callback(_put_back, owner, name, vars(owner).get(name, _put_back))
                    setattr(owner, name, new)
        yield kept


def _put_back(owner: Any, name: str, old: Any) -> None:
    if old is _put_back:  # it was the class's own
        delattr(owner, name)
    else:
        setattr(owner, name, old)


def _counts(mark: Mark, custom: Mapping[str, CustomOp]) -> bool:
    if mark.op in custom:
        return True
    if mark.op.partition(".")[0] in {name.partition(".")[0] for name in custom}:
        near = difflib.get_close_matches(mark.op, custom, 1)
        raise UsageError(
            f"{_called(mark.target)} is marked as {mark.op}, which the mapping does not declare",
            hint=f"did you mean {near[0]}?" if near else "declare it under custom:",
        )
    return False


def _replacements(model: torch.nn.Module, mark: Mark, kept: list[Site]) -> Iterator[tuple[Any, str, Any]]:
    """Yield (owner, name, what stands there meanwhile) for each place at which a target is found."""
    target = mark.target
    if isinstance(target, type) and issubclass(target, torch.autograd.Function):
        yield target, "forward", staticmethod(_wrapped(mark, _without_context(target), None, kept, skip=1))
    elif isinstance(target, (torch.nn.Module, type)):
        for module in model.modules():
            if isinstance(module, target) if isinstance(target, type) else module is target:
                yield module, "forward", _wrapped(mark, module.forward, module, kept)
    else:
        new = _wrapped(mark, target, None, kept)
        places = _globals_that_are(target)
        if not places:
            hint = "define it at the top of a module, and call it by a global name"
            raise UsageError(f"{_called(target)}, which is marked as {mark.op}, is no global", hint=hint)
        for module, name in places:
            yield module, name, new


def _wrapped(
    mark: Mark, function: Callable[..., Any], module: torch.nn.Module | None, kept: list[Site], skip: int = 0
) -> Callable[..., Any]:
    """Return what calls the operator in place of `function`; `skip` arguments in front are no argument."""
    state: dict[str, torch.Tensor] = {}
    if module is not None:
        state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    original = function

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        takes_context = skip and "setup_context" not in vars(mark.target)
        given = args[1:] if takes_context else args
        if _running:
            return original(*given, **kwargs)
        site = Site(mark, original, module, state, (given, kwargs))
        number = next(_numbers)
        _sites[number] = site
        kept.append(site)
        flat = pytree.tree_leaves((given, kwargs))
        tensors = [leaf for leaf in flat if isinstance(leaf, torch.Tensor)]
        # Read now: the tracer has put its own in their places.
        tensors += [operator.attrgetter(name)(module) for name in mark.weights]
        results = LEAF(mark.op, number, tensors)
        assert site.results is not None  # it has run, for the shapes at least
        return pytree.tree_unflatten(list(results), site.results)

    return call


class _NoContext:
    """What forward() of an autograd function is given: nothing is kept, for nothing is differentiated."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **kwargs: None


def _without_context(function: type[torch.autograd.Function]) -> Callable[..., Any]:
    forward = function.forward
    if "setup_context" in vars(function):
        return forward
    bound = functools.partial(forward, _NoContext())
    functools.update_wrapper(bound, forward)
    del bound.__dict__["__wrapped__"]  # its signature has the context
    return bound


def _globals_that_are(function: Any) -> list[tuple[Any, str]]:
    """Return all (module, name) under which a function is found."""
    home = getattr(function, "__globals__", {})
    places = [
        (module, name)
        for module in list(sys.modules.values())
        if isinstance(space := getattr(module, "__dict__", None), dict) and space is not home
        for name, value in list(space.items())
        if value is function
    ]
    own = _Namespace(home)
    return places + [(own, name) for name, value in list(home.items()) if value is function]


class _Namespace:
    """The globals of a function, whose module may not be among those of the process."""

    def __init__(self, names: dict[str, Any]) -> None:
        object.__setattr__(self, "__dict__", names)


def _bound(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[tuple[str, Any, Any]]:
    """Return (parameter, argument, default); what is left out has its default."""
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    found = []
    for name, given in bound.arguments.items():
        parameter = bound.signature.parameters[name]
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            found += [(name, item, parameter.empty) for item in given]
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            found += [(key, item, parameter.empty) for key, item in given.items()]
        else:
            found.append((name, given, parameter.default))
    return found


def _called(target: Any) -> str:
    if isinstance(target, (type, FunctionType)):
        return target.__name__
    return type(target).__name__
