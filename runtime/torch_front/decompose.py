"""Decomposing single operators that have no handler, by PyTorch's own rules.

A rule of PyTorch says an operator by simpler ones. It is applied to that operator alone: operators in its
decomposition that have handlers stay whole, and so does the rest of the program.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._decomp import core_aten_decompositions
from torch._guards import detect_fake_mode
from torch._ops import OpOverload, OpOverloadPacket
from torch.fx import Graph, GraphModule, Node, map_arg
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention import SDPBackend, sdpa_kernel

from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.torch_front.functionalize import functionalize, writes
from caffeforge.runtime.torch_front.provenance import SPLICED, op_name, origin
from caffeforge.runtime.torch_front.registry import HANDLERS

Rules = Mapping[OpOverload, Callable[..., Any]]

_COMPOSITE = "CompositeImplicitAutograd"
_INHERITED = ("nn_module_stack", "stack_trace", "torch_fn", "custom")


def splice(node: Node) -> list[Node] | None:
    """Replace an operator in its graph by PyTorch's decomposition of it; return the new nodes.

    Returns:
        The nodes in order, or None if PyTorch has no rule.

    Raises:
        FrontEndError: the rule cannot be followed for these arguments.
    """
    rules = _rules(frozenset(HANDLERS))
    if node.target not in rules or str(node.target) in node.meta.get(SPLICED, ()):
        return None  # a rule that leads back to its operator is none
    return splice_by(node.target, node, rules)  # type: ignore[arg-type]  # an overload


def decomposes(op: OpOverload) -> bool:
    """Tell whether PyTorch has a rule for an operator that has no handler."""
    return op in _rules(frozenset(HANDLERS))


def splice_by(function: Callable[..., Any], node: Node, rules: Rules | None = None) -> list[Node]:
    """Replace an operator in its graph by the operators that `function` calls for its arguments.

    Args:
        function: takes what the operator takes, and yields what it yields.
        node: the operator.
        rules: how operators that are called are decomposed in turn.

    Raises:
        FrontEndError: the function cannot be traced for these arguments.
    """
    try:
        module = _traced(function, node, rules or {})
    except Exception as error:  # whatever PyTorch's rule runs into
        first = next(iter(str(error).splitlines()), "")
        raise FrontEndError(
            f"{op_name(node)} cannot be decomposed: {type(error).__name__}: {first}", where=str(origin(node))
        ) from error
    return _insert(module.graph, node)


@functools.lru_cache(maxsize=1)
def _rules(handled: frozenset[OpOverload]) -> Rules:
    """Return PyTorch's rules for all but the handled operators: its core table, then composite kernels."""
    table: Rules = core_aten_decompositions()  # type: ignore[assignment]  # a dict by its methods only
    rules = {op: table[op] for op in table if op not in handled}
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        if isinstance(packet, OpOverloadPacket):
            names: list[str] = packet.overloads()  # type: ignore[no-untyped-call]
            for overload in (getattr(packet, name) for name in names):
                if overload not in handled and overload not in rules and _is_composite(overload):
                    rules[overload] = overload.decompose
    return rules


def _is_composite(overload: OpOverload) -> bool:
    name: str = overload.name()  # type: ignore[no-untyped-call]
    # TorchScript's operators on numbers stand among the others, but have no kernels.
    if not torch._C._dispatch_has_kernel(name):
        return False
    return torch._C._dispatch_has_kernel_for_dispatch_key(name, _COMPOSITE)


def _traced(function: Callable[..., Any], node: Node, rules: Rules) -> GraphModule:
    """Return what `function` calls as a graph whose placeholders are the nodes that `node` reads."""
    operands = node.all_input_nodes
    values = [operand.meta["val"] for operand in operands]

    def run(*tensors: Any) -> Any:
        given = dict(zip(operands, tensors, strict=True))
        args, kwargs = map_arg((node.args, node.kwargs), given.__getitem__)
        return function(*args, **kwargs)

    fake_mode = detect_fake_mode([values, node.meta["val"]])
    assert fake_mode is not None  # an exported program holds fake tensors only
    # The fused kernels of attention are no operators of a graph.
    with fake_mode, sdpa_kernel(SDPBackend.MATH), torch.no_grad():
        module: GraphModule = make_fx(run, decomposition_table=dict(rules), pre_dispatch=True)(*values)
    if any(map(writes, module.graph.nodes)):
        functionalize(module.graph, ())
    return module


def _insert(graph: Graph, node: Node) -> list[Node]:
    """Put the nodes of `graph` in the place of `node`."""
    places = [n for n in graph.nodes if n.op == "placeholder"]
    env: dict[Node, Node] = dict(zip(places, node.all_input_nodes, strict=True))
    inherited = {key: node.meta[key] for key in _INHERITED if key in node.meta}
    inherited[SPLICED] = (*node.meta.get(SPLICED, ()), str(node.target))
    new = []
    with node.graph.inserting_before(node):
        for part in graph.nodes:
            if part.op == "call_function":
                copy = env[part] = node.graph.node_copy(part, env.__getitem__)
                copy.meta = {"val": part.meta.get("val"), **inherited}  # a check yields nothing
                new.append(copy)
            elif part.op not in ("placeholder", "output"):
                raise FrontEndError(f"the decomposition of {op_name(node)} holds {part.op} {part.target}")
    _replace(node, map_arg(graph.output_node().args[0], env.__getitem__))
    return new


def _replace(node: Node, results: Any) -> None:
    """Let the users of `node` read `results` instead.

    Raises:
        FrontEndError: a user reads several results at once.
    """
    if isinstance(results, (tuple, list)):
        for user in list(node.users):
            result = results[user.args[1]] if user.target is operator.getitem else None  # type: ignore[index]
            if not isinstance(result, Node):
                raise FrontEndError(f"{op_name(user)} reads several results of {op_name(node)} at once")
            user.replace_all_uses_with(result)
            node.graph.erase_node(user)
    else:
        node.replace_all_uses_with(results)
    node.graph.erase_node(node)
