"""A PyTorch model: outputs by its own code, inner values by the captured program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.op import CustomOp
from caffeforge.runtime.sides.net_map import PYTORCH
from caffeforge.runtime.sides.side import Computed, Input


class TorchSide:
    """A model that is traced on normally distributed inputs of the given shapes.

    Args:
        model: a module, an exported program, a file of one, or ``package.module:function``.
        shapes: the input shapes in order; None for a file that holds its own example.
        custom: the ops of the other side's backend, which stay whole.

    Raises:
        CaffeforgeError: the model cannot be opened or traced.
    """

    naming = PYTORCH

    def __init__(
        self,
        model: Any,
        shapes: Sequence[tuple[int, ...]] | None,
        custom: Mapping[str, CustomOp] = MappingProxyType({}),
    ) -> None:
        import torch

        from caffeforge.runtime.torch_front import trace

        generator = torch.Generator().manual_seed(0)
        example = None if shapes is None else tuple(torch.randn(s, generator=generator) for s in shapes)
        self._source = trace(model, example, custom=custom)
        graph = self._source.graph
        self.title = f"PyTorch model {graph.name or model}"
        self.inputs: Mapping[str, Input] = {
            name: Input(array.shape, array.dtype.name) for name, array in self._source.example.items()
        }
        self.outputs: Sequence[str] = [value.name for value in graph.outputs]
        self.computed: Sequence[Computed] = [
            Computed(value.name, node.name, node.op.op_type, node.origin, node.op.op_type)
            for node in graph.nodes
            for value in node.outputs
        ]

    def run(self, inputs: Mapping[str, NDArray], *, inner: bool) -> dict[str, NDArray]:
        found = self._source.reference(inputs)
        return found if inner else {name: found[name] for name in self.outputs}
