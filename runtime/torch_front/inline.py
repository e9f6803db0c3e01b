"""Parts of a program that run in a mode of PyTorch's, without gradients or autocast, as plain parts."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node, map_arg

from caffeforge.runtime.errors import FrontEndError

_NO_GRAD = torch.ops.higher_order.wrap_with_set_grad_enabled
_AUTOCAST = torch.ops.higher_order.wrap_with_autocast


def inline_modes(graph: Graph, module: GraphModule) -> bool:
    """Put the parts of `graph` that run in a mode in their places; tell whether there were any.

    Args:
        graph: changed; its parts are submodules of `module`.
        module: as before afterwards.

    Raises:
        FrontEndError: a part runs in autocast, whose conversions a program does not show.
    """
    found = False
    for node in list(graph.nodes):
        if node.target is _NO_GRAD:
            _, part, *operands = node.args
        elif node.target is _AUTOCAST:
            device, dtype, enabled, _, part, *operands = node.args
            if enabled:
                raise FrontEndError(
                    f"the program holds a part in autocast to {dtype or 'half precision'} on {device}",
                    hint="export the model with autocast switched off",
                )
        else:
            continue
        _inline(graph, node, getattr(module, part.target), operands)
        graph.erase_node(node)
        if not part.users:
            graph.erase_node(part)
        found = True
    return found


def _inline(graph: Graph, node: Node, part: GraphModule, operands: list[Any]) -> None:
    """Copy the operators of `part` in front of `node`, and let its users read them."""
    inner = Graph()
    inner.output(inner.graph_copy(part.graph, {}))
    inline_modes(inner, part)
    places = [n for n in inner.nodes if n.op == "placeholder"]
    env: dict[Node, Any] = dict(zip(places, operands, strict=True))
    with graph.inserting_before(node):
        for operator_ in inner.nodes:
            if operator_.op == "call_function":
                env[operator_] = graph.node_copy(operator_, env.__getitem__)
    results = map_arg(inner.output_node().args[0], env.__getitem__)
    for user in list(node.users):
        assert user.target is operator.getitem  # such a part yields a tuple
        user.replace_all_uses_with(results[user.args[1]])  # type: ignore[index,arg-type]
        graph.erase_node(user)
