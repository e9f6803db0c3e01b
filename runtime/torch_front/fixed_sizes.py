"""A program that was exported with open sizes, at the sizes of one example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._subclasses import FakeTensorMode
from torch.fx import Graph, GraphModule, Interpreter, Node

from caffeforge.runtime.torch_front.sizes import is_size


def fix_sizes(
    module: GraphModule,
    graph: Graph,
    inputs: Mapping[Node, torch.Tensor],
    state: Mapping[Node, torch.Tensor],
) -> None:
    """Give every value of `graph` the sizes that follow from `inputs`, and put numbers in place of sizes.

    Args:
        module: what holds the graph's parts.
        graph: changed.
        inputs: the example by placeholder.
        state: the model's own tensors by placeholder.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    given = {**inputs, **state}
    values: list[Any] = []
    for node in [node for node in graph.nodes if node.op == "placeholder"]:
        node.meta["val"] = mode.from_tensor(given[node]) if node in given else node.meta.get("val")
        values.append(node.meta["val"])
    with mode, torch.no_grad():
        _Numbers(module, graph=graph).run(*values, enable_io_processing=False)
    for node in reversed(list(graph.nodes)):
        if node.op == "call_function" and is_size(node) and not node.users:
            graph.erase_node(node)


class _Numbers(Interpreter):
    """Runs a graph on fake tensors, stores the values, and writes numbers to where they are read."""

    def run_node(self, n: Node) -> Any:
        value = super().run_node(n)
        if n.op == "call_function":
            n.meta["val"] = value
        if n.op == "call_function" and is_size(n):
            for user in list(n.users):
                user.args, user.kwargs = _with_number(user, n, value)
        return value


def _with_number(user: Node, node: Node, number: Any) -> tuple[Any, Any]:
    def put(operand: Node) -> Any:
        return number if operand is node else operand

    found: tuple[Sequence[Any], Mapping[str, Any]] = torch.fx.map_arg((user.args, user.kwargs), put)
    return tuple(found[0]), dict(found[1])
