"""A captured program made ready for lowering: a functional graph, its inputs, tensors and outputs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Graph as FxGraph
from torch.fx import Node as FxNode

from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.torch_front.fixed_sizes import fix_sizes
from caffeforge.runtime.torch_front.functionalize import functionalize, restore_storages, writes
from caffeforge.runtime.torch_front.inline import inline_modes

_STATE: Final = frozenset({InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR})
# Checks that PyTorch writes into a graph; they hold for what was traced.
CHECKS: Final = frozenset(
    {
        torch.ops.aten._assert_async.default,
        torch.ops.aten._assert_async.msg,
        torch.ops.aten._assert_scalar.default,
        torch.ops.aten._assert_tensor_metadata.default,
        torch.ops.aten.sym_constrain_range.default,
        torch.ops.aten.sym_constrain_range_for_size.default,
    }
)
_LITERAL: Final = re.compile(r"lifted_tensor_\d+$")  # numbered over the whole model, so no stable name


@dataclass(frozen=True)
class Traced:
    """A functional ATen graph.

    Attributes:
        graph: no operator of it writes into a tensor, and every one is needed by an output.
        inputs: the placeholders of the inputs, in order.
        state: the model's own tensors by their placeholders: parameters, buffers, constants.
        names: the names of those tensors that have one, as ``layer1.0.conv1.weight``.
        places: where in the graph's output the tensors stand that the model returns, without what is None.
        notes: what the user should know about in-place operators, by node.
    """

    graph: FxGraph
    inputs: list[FxNode]
    state: dict[FxNode, torch.Tensor]
    names: dict[FxNode, str]
    places: list[int]
    notes: dict[FxNode, str]

    @staticmethod
    def of(program: ExportedProgram, *, foreign: bool, fixed: Sequence[torch.Tensor] | None = None) -> Traced:
        """Return the functional graph of `program`.

        Args:
            program: its graph is changed unless it is foreign.
            foreign: the program was not captured here: it stays as it is, and may come from a file, which
                does not say which tensors share memory.
            fixed: inputs to whose sizes a program with open ones is fixed.

        Raises:
            FrontEndError: the program changes its own state, or takes or returns something else than tensors.
        """
        graph = _copy(program.graph) if foreign else program.graph
        placeholders = [node for node in graph.nodes if node.op == "placeholder"]
        inputs: list[FxNode] = []
        state: dict[FxNode, torch.Tensor] = {}
        names: dict[FxNode, str] = {}
        for node, spec in zip(placeholders, program.graph_signature.input_specs, strict=True):
            if spec.kind is InputKind.USER_INPUT:
                if isinstance(node.meta.get("val"), torch.Tensor):
                    inputs.append(node)
            elif spec.kind in _STATE and spec.target is not None:
                state[node] = _tensor(program, spec.target)
                if not _LITERAL.match(spec.target):
                    names[node] = spec.target
            elif node.users:
                kind = spec.kind.name.lower()
                raise FrontEndError(f"the model uses {node.name}, a {kind}, which is no tensor")
        inlined = inline_modes(graph, program.graph_module)
        if fixed is not None:
            fix_sizes(program.graph_module, graph, dict(zip(inputs, fixed, strict=True)), state)
        elif (foreign or inlined) and any(map(writes, graph.nodes)):
            restore_storages(program.graph_module, graph)
        places = _outputs(program, graph)
        for node in [node for node in graph.nodes if node.target in CHECKS or _checks(node)]:
            graph.erase_node(node)
        notes = functionalize(graph, state.keys())
        return Traced(graph, inputs, state, names, places, notes)

    @property
    def outputs(self) -> list[FxNode]:
        """What the model returns, flattened, without what is None."""
        results: Any = self.graph.output_node().args[0]
        return [results[place] for place in self.places]


def _checks(node: FxNode) -> bool:
    """Tell whether a node calls the part of a program that checks the sizes of its inputs."""
    return node.op == "call_module" and str(node.target).startswith("_guards_fn")


def _copy(graph: FxGraph) -> FxGraph:
    copy = FxGraph()
    copy.output(copy.graph_copy(graph, {}))
    return copy


def _tensor(program: ExportedProgram, name: str) -> torch.Tensor:
    tensor = program.state_dict[name] if name in program.state_dict else program.constants[name]
    if not isinstance(tensor, torch.Tensor):
        raise FrontEndError(f"the model uses {name}, a {type(tensor).__name__}, which is no tensor")
    if tensor.is_meta:
        raise FrontEndError(f"weight {name} lies on the meta device and has no elements")
    return tensor


def _outputs(program: ExportedProgram, graph: FxGraph) -> list[int]:
    """Return the positions of the outputs that are tensors; None is no output."""
    found = []
    results: Any = graph.output_node().args[0]
    for index, (spec, result) in enumerate(zip(program.graph_signature.output_specs, results, strict=True)):
        if spec.kind is OutputKind.USER_INPUT_MUTATION:
            continue  # the caller's tensor changes, which is no output of a net
        if spec.kind is not OutputKind.USER_OUTPUT:
            raise FrontEndError(f"the model changes its own tensor {spec.target}, which a net cannot do")
        if isinstance(result, FxNode):
            found.append(index)
        elif result is not None:
            raise FrontEndError(f"output {index} of the model is always {result!r}", hint="return tensors")
    if not found:
        raise FrontEndError("the model returns no tensor")
    return found
