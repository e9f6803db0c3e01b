"""Where an operator of a traced program comes from: the module, the call of it, and the user's line."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from torch._ops import OpOverload
from torch.fx import Node

from caffeforge.runtime.graph import Origin
from caffeforge.runtime.torch_front import frames
from caffeforge.runtime.torch_front.leaf_calls import LEAF, site_of

# In the meta of an operator that stands for another one: the names of those it comes from, the model's first.
SPLICED: Final = "spliced_from"

# In its "custom" meta: what a TorchScript graph says of an operator.
SCOPE: Final = "scope"
SOURCE: Final = "source"

_REPETITION = re.compile(r"@(\d+)$")


class ModuleCall(NamedTuple):
    """One call of one module; `call` counts from 0, for a module may be called more than once."""

    path: str
    call: int

    def __str__(self) -> str:
        return f"{self.path}@{self.call}" if self.call else self.path


def module_calls(node: Node) -> list[ModuleCall]:
    """Return the calls in progress when `node` was traced, outermost first, the model's own included."""
    scope = (node.meta.get("custom") or {}).get(SCOPE, "")
    if scope:  # as ``__module.layer1/__module.layer1.0``
        paths = [part.removeprefix("__module.") for part in scope.split("/") if part.startswith("__module.")]
        return [ModuleCall("", 0), *(ModuleCall(path, 0) for path in paths)]
    calls = []
    for key, (path, _) in (node.meta.get("nn_module_stack") or {}).items():
        # The key ends in @k from the second call on; its start is no path in programs of a strict export.
        repeated = None if key == f"L__self__{path}" else _REPETITION.search(key)
        calls.append(ModuleCall(path, int(repeated[1]) if repeated else 0))
    return calls or [ModuleCall("", 0)]


def op_name(node: Node) -> str:
    """Return the operator as PyTorch names it, such as ``aten.conv2d.default``.

    A part of another operator's decomposition is named with it: ``aten.fmod.Scalar (of aten.roll.default)``.
    """
    target = node.target
    if _is_leaf(node):
        return str(node.args[0])
    name = str(target) if isinstance(target, OpOverload) else getattr(target, "__name__", str(target))
    return f"{name} (of {node.meta[SPLICED][0]})" if SPLICED in node.meta else name


def short_name(node: Node) -> str:
    """Return the operator's bare name, such as ``conv2d``."""
    if _is_leaf(node):
        return str(node.args[0]).rpartition(".")[2]
    if isinstance(node.target, OpOverload):
        return node.target._schema.name.rpartition("::")[2]
    return getattr(node.target, "__name__", str(node.target))


def _is_leaf(node: Node) -> bool:
    """Tell whether an operator stands for what the user marked; its first argument is the op's name then."""
    return node.target is LEAF


def _line(node: Node) -> str:
    """Return the user's line as ``file:line``, or "" if it is not known."""
    if _is_leaf(node):
        return site_of(node.args[1]).source  # type: ignore[arg-type]  # its number
    noted: str = (node.meta.get("custom") or {}).get(SOURCE, "")
    return noted or frames.line_of_trace(node.meta.get("stack_trace") or "")


def origin(node: Node) -> Origin:
    """Return where `node` comes from; `value` is its name in the functional graph."""
    return Origin(
        module=str(module_calls(node)[-1]),
        op=op_name(node),
        source=_line(node),
        value=node.name,
    )
