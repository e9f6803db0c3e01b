"""TorchScript modules, traced, scripted or loaded, as modules that ``torch.export`` can trace.

A TorchScript graph is run node by node with PyTorch's own operators; the export of such a run is an ordinary
program of ATen operators, with the parameters under their names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.utils import _pytree as pytree

from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.torch_front.provenance import SCOPE, SOURCE

_TRACED_LINE: Final = re.compile(r"(.+)\((\d+)\): ")
_SCRIPTED_LINE: Final = re.compile(r'\s*File "(.+)", line (\d+)')
_TORCH: Final = os.path.dirname(torch.__file__) + os.sep

# Nodes that compute nothing of a net: numbers, lists, checks.
_PLAIN: Final[Mapping[str, Callable[..., Any]]] = {
    "prim::ListConstruct": lambda *items: list(items),
    "prim::TupleConstruct": lambda *items: tuple(items),
    "prim::DictConstruct": lambda *items: dict(zip(items[::2], items[1::2], strict=True)),
    "prim::Uninitialized": lambda: None,
    "prim::device": lambda tensor: tensor.device,
    "prim::dtype": lambda tensor: tensor.dtype,
    "prim::unchecked_cast": lambda value: value,
    "prim::unchecked_unwrap_optional": lambda value: value,
    "prim::TupleIndex": lambda items, index: items[index],
    "prim::min": min,
    "prim::max": max,
    "aten::_unwrap_optional": lambda value: value,
    "aten::Int": int,
    "aten::Float": float,
    "aten::Bool": bool,
    "aten::IntImplicit": lambda value: value.item() if isinstance(value, torch.Tensor) else value,
    "aten::FloatImplicit": lambda value: value.item() if isinstance(value, torch.Tensor) else value,
    "aten::ScalarImplicit": lambda value: value.item() if isinstance(value, torch.Tensor) else value,
    "aten::size": lambda tensor, axis=None: list(tensor.shape) if axis is None else tensor.shape[axis],
    "aten::dim": lambda tensor: tensor.dim(),
    "aten::len": len,
    "aten::list": list,
    "aten::copy": list,
    "aten::__getitem__": lambda items, key: items[key],
    "aten::__is__": lambda a, b: a is b,
    "aten::__isnot__": lambda a, b: a is not b,
    "aten::__not__": lambda value: not value,
    "aten::format": lambda *parts: "",
    "aten::warn": lambda *parts: None,
}


class FromScript(torch.nn.Module):
    """A TorchScript module as an eager one, with its parameters and buffers under their names."""

    def __init__(self, script: torch.jit.ScriptModule) -> None:
        super().__init__()
        self._graph = _method_graph(script, "forward")
        self._script = [script]  # in a list, so that it is no submodule
        for name, tensor in script.named_parameters():
            owner, last = self._owner(name)  # of a loaded module it is a plain tensor
            owner.register_parameter(last, torch.nn.Parameter(tensor.detach(), requires_grad=False))
        for name, buffer in script.named_buffers():
            owner, last = self._owner(name)
            owner.register_buffer(last, buffer)

    def forward(self, *args: Any) -> Any:
        """Run the graph."""
        itself, *inputs = self._graph.inputs()
        run = _Run(self._attribute, itself.debugName(), ())
        if len(args) != len(inputs):
            raise TypeError(f"the TorchScript module takes {len(inputs)} inputs, {len(args)} are given")
        run.values.update(zip((value.debugName() for value in inputs), args, strict=True))
        run.block(self._graph.nodes())
        results = [run.values[value.debugName()] for value in self._graph.outputs()]
        return results[0] if len(results) == 1 else tuple(results)

    def _owner(self, name: str) -> tuple[torch.nn.Module, str]:
        """Return the module that holds a parameter, made if need be, and the parameter's own name."""
        owner: torch.nn.Module = self
        *path, last = name.split(".")
        for part in path:
            if part not in owner._modules:
                owner.add_module(part, torch.nn.Module())
            owner = owner._modules[part]  # type: ignore[assignment]  # none is None
        return owner, last

    def _attribute(self, path: tuple[str, ...]) -> Any:
        """Return a tensor of this module, which is fake during an export, or an attribute of the script's."""
        found: Any = self
        for part in path:
            found = getattr(found, part, None)
        if isinstance(found, torch.Tensor):
            return found
        found = self._script[0]
        for part in path:
            found = getattr(found, part)
        return found


class _Run:
    """One run of a graph.

    Attributes:
        values: what its nodes have yielded, by name.
        paths: the attribute paths of those that are modules.
    """

    def __init__(
        self, attribute: Callable[[tuple[str, ...]], Any], itself: str, path: tuple[str, ...]
    ) -> None:
        self.values: dict[str, Any] = {}
        self.paths: dict[str, tuple[str, ...]] = {itself: path}
        self._attribute = attribute
        self._path = path

    def block(self, nodes: Iterable[Any]) -> None:
        """Run nodes in order."""
        for node in nodes:
            names = [value.debugName() for value in node.outputs()]
            if node.kind() == "prim::GetAttr":
                path = self.paths[names[0]] = (*self.paths[node.input().debugName()], node.s("name"))
                if not isinstance(node.output().type(), torch._C.ClassType):
                    self.values[names[0]] = self._attribute(path)
            else:
                self.values.update(zip(names, self._results(node), strict=True))

    def _results(self, node: Any) -> list[Any]:
        kind = node.kind()
        args: list[Any] = [self.values.get(value.debugName()) for value in node.inputs()]
        if kind == "prim::Constant":
            return [node.output().toIValue()]
        if kind == "prim::CallMethod":
            return self._method(node, args[1:])
        if kind == "prim::If":
            return self._inner(list(node.blocks())[0 if args[0] else 1], [])
        if kind == "prim::Loop":
            return self._loop(node, args)
        if kind in ("prim::ListUnpack", "prim::TupleUnpack"):
            return list(args[0])
        if kind == "prim::NumToTensor":
            with unset_fake_temporarily():
                return [torch.tensor(args[0])]
        if kind == "aten::append":
            args[0].append(args[1])
            return [args[0]]
        if kind == "prim::RaiseException":
            raise RuntimeError(f"the TorchScript module raises: {args[0]}")
        if kind in _PLAIN:
            result = _PLAIN[kind](*args)
            return [result] if node.outputsSize() else []
        with torch.fx.traceback.annotate({SCOPE: self._scope(node), SOURCE: _source(node)}):
            return _computed(node, args)

    def _scope(self, node: Any) -> str:
        """Return the modules around a node, as a traced graph names them; one from a file has no names."""
        known: str = node.scopeName()
        steps = [".".join(self._path[: count + 1]) for count in range(len(self._path))]
        return "/".join(f"__module.{step}" for step in steps) or known

    def _method(self, node: Any, args: list[Any]) -> list[Any]:
        """Run a method of a module."""
        path = self.paths[next(node.inputs()).debugName()]
        graph = _method_graph(self._attribute(path), node.s("name"))
        itself, *inputs = graph.inputs()
        inner = _Run(self._attribute, itself.debugName(), path)
        inner.values.update(zip((value.debugName() for value in inputs), args, strict=True))
        inner.block(graph.nodes())
        return [inner.values[value.debugName()] for value in graph.outputs()]

    def _inner(self, block: Any, given: list[Any]) -> list[Any]:
        self.values.update(zip((value.debugName() for value in block.inputs()), given, strict=True))
        self.block(block.nodes())
        return [self.values[value.debugName()] for value in block.outputs()]

    def _loop(self, node: Any, args: list[Any]) -> list[Any]:
        (block,) = node.blocks()
        count, goes_on, *carried = args
        index = 0
        while index < count and goes_on:
            goes_on, *carried = self._inner(block, [index, *carried])
            index += 1
        return carried


def _method_graph(module: Any, name: str) -> Any:
    """Return the graph of a method, with calls of methods left in it, so that their modules are known.

    Functions that it calls are found in the graph that has all calls written out only.
    """
    method = module if name == "forward" else getattr(module, name)
    graph = method.graph
    called = any(True for _ in graph.findAllNodes("prim::CallFunction"))
    return method.inlined_graph if called else graph


def _computed(node: Any, args: list[Any]) -> list[Any]:
    """Return what the ATen operator of `node` yields; arithmetic on sizes is done on the spot."""
    if node.kind().startswith("prim::") or node.schema() == "(no schema)":
        raise FrontEndError(f"TorchScript's {node.kind()} cannot be run by itself", where=_source(node))
    op = _overload(node)
    schema = op._schema
    kwargs = {a.name: v for a, v in zip(schema.arguments, args, strict=True) if a.kwarg_only}
    given = [v for a, v in zip(schema.arguments, args, strict=True) if not a.kwarg_only]
    tensors = [leaf for leaf in pytree.tree_leaves(args) if isinstance(leaf, torch.Tensor)]
    of_numbers = not tensors and not any(str(r.type).startswith("Tensor") for r in schema.returns)
    of_sizes = bool(tensors) and not any(
        isinstance(t, (FakeTensor, torch.nn.Parameter)) or t.dim() for t in tensors
    )
    if of_numbers or of_sizes:
        with unset_fake_temporarily():
            result = op(*given, **kwargs)
    else:
        result = op(*given, **kwargs)
    if len(schema.returns) > 1:
        return list(result)
    return [result] if schema.returns else []


def _overload(node: Any) -> OpOverload:
    schema = torch._C.parse_schema(node.schema())
    namespace, name = schema.name.split("::")
    packet = getattr(getattr(torch.ops, namespace), name)
    overload: OpOverload = getattr(packet, schema.overload_name or "default")
    return overload


def _source(node: Any) -> str:
    """Return the user's line as ``file:line``; "" if it is not known.

    A traced graph has ``file(line): function``, a scripted one what Python prints; both survive saving.
    """
    for line in node.sourceRange().splitlines():
        found = _TRACED_LINE.match(line) or _SCRIPTED_LINE.match(line)
        if found and not found[1].startswith(_TORCH):
            return f"{found[1]}:{found[2]}"
    return ""
