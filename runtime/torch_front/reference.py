"""The values that the source model computes, for comparing a hub graph with it value by value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.fx import Graph as FxGraph
from torch.fx import Interpreter
from torch.fx import Node as FxNode
from torch.utils import _pytree as pytree

from caffeforge.runtime.array import NDArray

aten = torch.ops.aten


class Recorder(Interpreter):
    """Runs a functional ATen graph and records what its operators yield.

    Args:
        graph: no operator of it writes into a tensor, so a recorded value never changes.
        names: for an operator, the names of its results, None for one that is not to be recorded.
        number: gives the size that a symbolic one has in this run.
    """

    def __init__(
        self,
        graph: FxGraph,
        names: Mapping[FxNode, Sequence[str | None]],
        number: Callable[[torch.SymInt], int] = int,
    ) -> None:
        super().__init__(torch.nn.Module(), garbage_collect_values=True, graph=graph)
        self.names = names
        self.number = number
        self.recorded: dict[str, NDArray] = {}

    def run_node(self, n: FxNode) -> Any:
        result = super().run_node(n)
        if n in self.names:
            results = [result] if isinstance(result, torch.Tensor) else result
            for name, value in zip(self.names[n], results, strict=True):
                if name is not None:
                    self.recorded[name] = numpy_of(value)
        return result

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        # A functional operator may lay its result out in memory otherwise than the in-place one did, and
        # then a view that was possible needs a copy.
        if target is aten.view.default:
            target = aten.reshape.default
        args, kwargs = pytree.tree_map_only(torch.SymInt, self.number, (args, kwargs))
        return super().call_function(target, args, kwargs)


def numpy_of(tensor: torch.Tensor) -> NDArray:
    """Return a tensor's elements, bfloat16 as float32; memory that the model may change is not shared."""
    tensor = tensor.detach().cpu()
    array: NDArray = (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy()
    return np.array(array, order="C")
