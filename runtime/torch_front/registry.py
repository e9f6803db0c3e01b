"""The table of handlers: which function lowers which ATen overload."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from torch._ops import OpOverload

from caffeforge.runtime.graph import Value

if TYPE_CHECKING:
    from caffeforge.runtime.torch_front.call import Call

# What an operator yields: its tensor, or one entry a result, None for one that has no place in the hub.
Result = Value | Sequence[Value | None]
Handler = Callable[["Call"], Result]

_HANDLERS: Final[dict[OpOverload, Handler]] = {}
HANDLERS: Final[Mapping[OpOverload, Handler]] = MappingProxyType(_HANDLERS)


def torch_op(*overloads: OpOverload) -> Callable[[Handler], Handler]:
    """Register the decorated function as the handler of ATen overloads; its docstring gives their signatures.

    In-place overloads need none: ``functionalize`` has replaced them before handlers are asked.

    Raises:
        TypeError: what is named is no overload, is in-place, or has a handler already.
    """

    def register(handler: Handler) -> Handler:
        for overload in overloads:
            if not isinstance(overload, OpOverload):
                raise TypeError(f"{overload} is no overload: name one, as aten.relu.default")
            if overload._schema.is_mutable:
                raise TypeError(f"{overload} is in-place: register its functional form")
            if overload in _HANDLERS:
                raise TypeError(f"{overload} is lowered by {_HANDLERS[overload].__module__} already")
            _HANDLERS[overload] = handler
        return handler

    return register
