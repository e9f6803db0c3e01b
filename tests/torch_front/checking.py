"""Traces a module and compares the graph with PyTorch: outputs and every inner value."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch

from caffeforge.runtime.executor import Executor
from caffeforge.runtime.graph import Graph
from caffeforge.runtime.op import Op
from caffeforge.runtime.torch_front import TorchSource, trace


class Function(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function
        self.training = False

    def forward(self, *tensors: torch.Tensor) -> Any:
        return self.function(*tensors)


def seeded(*shape: int, seed: int = 0) -> torch.Tensor:
    """Return normal numbers that do not depend on what ran before."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def checked(model: Any, *inputs: torch.Tensor, rtol: float = 1e-4, atol: float = 1e-5) -> TorchSource:
    """Trace a module or function, and compare all that it computes with PyTorch's own values."""
    module = model if isinstance(model, torch.nn.Module) else Function(model)
    source = trace(module.eval(), inputs)
    reference = source.reference(source.example)
    executor = Executor(source.graph)
    outputs = [value.name for value in source.graph.outputs]
    named = [node.outputs[0].name for node in source.graph.nodes if node.origin.value]
    computed = executor.run(source.example, [*outputs, *named])
    assert set(named) <= set(reference)
    for name, array in computed.items():
        assert array.dtype == reference[name].dtype
        np.testing.assert_allclose(array, reference[name], rtol=rtol, atol=atol, err_msg=name)
    with torch.no_grad():
        direct = copy.deepcopy(module)(*(tensor.clone() for tensor in inputs))
    for name, tensor in zip(outputs, torch.utils._pytree.tree_leaves(direct), strict=True):
        np.testing.assert_allclose(computed[name], tensor.numpy(), rtol=rtol, atol=atol, err_msg=name)
    return source


def ops(graph: Graph) -> list[Op]:
    """Return the ops of a graph's nodes, in order."""
    return [node.op for node in graph.nodes]


def types(graph: Graph) -> list[str]:
    """Return the types of a graph's ops, in order."""
    return [node.op.op_type for node in graph.nodes]


def only_op(model: Any, *inputs: torch.Tensor) -> Op:
    """Return the op of the one node that a module or function becomes, after comparing values."""
    graph = checked(model, *inputs).graph
    assert len(graph.nodes) == 1, types(graph)
    return graph.nodes[0].op
