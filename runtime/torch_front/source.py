"""Tracing: a PyTorch model as a hub graph, with example inputs and the values that the model computes."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.fx import Node as FxNode

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import FrontEndError, TrainingModeWarning, UsageError
from caffeforge.runtime.graph import Graph, Value
from caffeforge.runtime.op import CustomOp
from caffeforge.runtime.symbol import Symbol, at
from caffeforge.runtime.torch_front import nest
from caffeforge.runtime.torch_front.capture import capture
from caffeforge.runtime.torch_front.cut import outputs_at as outputs_at_modules
from caffeforge.runtime.torch_front.dynamic import (
    Condition,
    DynamicShapes,
    OpenSizes,
    conditions,
    names_of_axes,
    other_sizes,
    sentences,
)
from caffeforge.runtime.torch_front.evaluation import evaluating
from caffeforge.runtime.torch_front.example import Example
from caffeforge.runtime.torch_front.folding import Folding
from caffeforge.runtime.torch_front.interface import checked_names, name_outputs
from caffeforge.runtime.torch_front.kept import attributes_kept
from caffeforge.runtime.torch_front.leaf_calls import Site, leaves
from caffeforge.runtime.torch_front.lowering import Lowering
from caffeforge.runtime.torch_front.naming import name_nodes
from caffeforge.runtime.torch_front.opened import Model, opened
from caffeforge.runtime.torch_front.own_ops import OwnOps
from caffeforge.runtime.torch_front.precision import in_float32
from caffeforge.runtime.torch_front.program import has_open_sizes
from caffeforge.runtime.torch_front.program import input_names as program_inputs
from caffeforge.runtime.torch_front.reference import Recorder, numpy_of
from caffeforge.runtime.torch_front.sizes import Sizes
from caffeforge.runtime.torch_front.traced import Traced
from caffeforge.runtime.torch_front.weights import Weights, dtype_name


@dataclass(frozen=True)
class TorchSource:
    """A traced model.

    Attributes:
        graph: verified; its values are named like the modules and operators that compute them.
        notes: what the user should know, such as training mode or views that had to be rebuilt.
        example: the example inputs by the graph's input names.
    """

    graph: Graph
    notes: list[str]
    example: dict[str, NDArray]
    _model: torch.nn.Module | ExportedProgram = field(repr=False)
    _inputs: Example = field(repr=False)
    _cuts: Sequence[str] | None = field(repr=False)
    _traced: Traced = field(repr=False)
    _names: Mapping[FxNode, Sequence[str | None]] = field(repr=False)
    _outputs: Sequence[str] = field(repr=False)
    _sites: Sequence[Site] = field(repr=False)  # which the program names by number
    _sizes: Sizes = field(repr=False)
    _conditions: Sequence[Condition] = field(repr=False)

    def reference(self, inputs: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return what the source computes from `inputs`, by the names of the graph's values.

        Outputs come from the user's own module, inner values from the captured program.

        Args:
            inputs: by input name, in the shapes and types of the graph's inputs.

        Raises:
            UsageError: an input is missing, unknown, or of another shape or type.
            FrontEndError: the model itself fails, as on a device that is not here.
        """
        try:
            return self._computed(inputs)
        except (RuntimeError, AssertionError) as error:
            first = next(iter(str(error).splitlines()), "")
            raise FrontEndError(f"the model cannot be run: {type(error).__name__}: {first}") from error

    def _computed(self, inputs: Mapping[str, NDArray]) -> dict[str, NDArray]:
        given = self._tensors(inputs)
        traced = self._traced
        values = traced.state | dict(zip(traced.inputs, given, strict=True))
        placeholders = [values.get(node) for node in traced.graph.nodes if node.op == "placeholder"]
        sizes = self._sizes.names_at({name: array.shape for name, array in inputs.items()})
        recorder = Recorder(traced.graph, self._names, lambda size: at(self._sizes.dim(size), sizes))
        with torch.no_grad():
            recorder.run(*placeholders, enable_io_processing=False)
        return recorder.recorded | dict(zip(self._outputs, self._run_model(given), strict=True))

    def at_other_sizes(self) -> dict[str, NDArray] | None:
        """Return the example with larger sizes for the open ones; None if there are none."""
        sizes = self._sizes.names_at({name: array.shape for name, array in self.example.items()})
        found = other_sizes(sizes, self._conditions) if sizes else None
        if found is None:
            return None
        larger = {}
        for value in self.graph.inputs:
            array = self.example[value.name]
            for axis, dim in enumerate(value.dims):
                array = array.take(np.arange(at(dim, found)) % array.shape[axis], axis)
            larger[value.name] = array
        return larger

    def _tensors(self, inputs: Mapping[str, NDArray]) -> list[torch.Tensor]:
        """Return `inputs` as tensors of their own on the example's devices, in order."""
        unknown = [name for name in inputs if name not in self.example]
        if unknown or len(inputs) != len(self.example):
            raise UsageError(
                f"inputs {', '.join(inputs) or 'none'} are given, the model takes {', '.join(self.example)}"
            )
        tensors = []
        for value, like in zip(self.graph.inputs, self._inputs.tensors(), strict=True):
            name, array = value.name, inputs[value.name]
            fits = array.ndim == value.rank and all(
                size == dim or isinstance(dim, Symbol)
                for dim, size in zip(value.dims, array.shape, strict=True)
            )
            if not fits or array.dtype != self.example[name].dtype:
                raise UsageError(
                    f"input {name} is {array.dtype}{list(array.shape)}, "
                    f"the model was traced for {self.example[name].dtype}{list(value.dims)}"
                )
            tensors.append(torch.from_numpy(np.array(array, order="C")).to(like.device))
        return tensors

    def _run_model(self, given: Sequence[torch.Tensor]) -> list[NDArray]:
        """Return the outputs of the user's module; it may write into the given tensors."""
        call = self._inputs.with_tensors(given)
        module = self._model if isinstance(self._model, torch.nn.Module) else self._model.module()
        with evaluating(module), _cut(module, self._cuts):
            results = module(*call.args, **call.kwargs)
        return [numpy_of(tensor) for tensor in nest.tensors(results)]


def trace(
    model: torch.nn.Module | ExportedProgram | str | Path,
    example_inputs: object = None,
    *,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    outputs_at: Sequence[str] | None = None,
    dynamic_shapes: DynamicShapes | Literal[True] | None = None,
    custom: Mapping[str, CustomOp] | None = None,
) -> TorchSource:
    """Return `model` as a hub graph of the example's shapes, of which `dynamic_shapes` may leave some open.

    Args:
        model: traced in evaluation mode; its flags are as before afterwards. Also the path of an exported
            program (``.pt2``) or of a TorchScript module, or ``package.module:function`` that makes a model.
        example_inputs: a tensor, a tuple or list of arguments, or a dict by forward()'s parameter names;
            arguments may be nested. An exported program may bring its own.
        input_names: names of the graph's inputs, in the example's order; default: forward()'s parameters.
        output_names: names of the outputs, in the order in which the model returns its tensors; default: the
            names of the operators that compute them.
        outputs_at: paths of modules whose outputs become the graph's, in this order, instead of the
            model's; what comes after them is not run, so it need not be traceable.
        dynamic_shapes: sizes that stay open: by input name, or in order, a dict from axes to names of sizes
            (or to ``torch.export.Dim``), as ``{"image": {0: "N", 2: "H", 3: "W"}}``. Equal names promise
            equal sizes. True keeps those of a program that was exported with open sizes; None fixes all to
            the example's.
        custom: ops of a backend's own domain: operators and leaves that stand for one stay whole.

    Raises:
        UsageError: the arguments do not fit together.
        FrontEndError: the model cannot be captured, or holds what has no place in the hub.
    """
    model = opened(model)
    if isinstance(model, ExportedProgram):
        if outputs_at is not None:
            raise UsageError("an exported program cannot be cut", hint="cut the module before it is exported")
        example = Example.recorded_in(model) if example_inputs is None else Example.of(example_inputs)
        names, notes = program_inputs(model), list[str]()
    else:
        model, example, notes = in_float32(model, Example.of(example_inputs))
        names = example.names(model)
    if input_names is not None:
        names = checked_names("input", input_names, len(names))
    sizes = _open_sizes(model, dynamic_shapes, names, example)
    module = model if isinstance(model, torch.nn.Module) else None
    own = custom or {}
    with (
        evaluating(module) as mode,
        _cut(module, outputs_at),
        leaves(module, own) as sites,
        attributes_kept(module),
    ):
        program, ways = capture(model, example, sizes)
    for text in mode:
        warnings.warn(text, TrainingModeWarning, stacklevel=2)
    fixed = example.tensors() if dynamic_shapes is None and has_open_sizes(program) else None
    if fixed is not None:
        ways.append("the program has open sizes; they are fixed to the example's")
    traced = Traced.of(program, foreign=program is model, fixed=fixed)
    inputs = [node.meta["val"] for node in traced.inputs]
    named = names_of_axes(names, inputs) if sizes is None else sizes.named(inputs)
    known = Sizes(named)
    graph, values, found = _lower(traced, names, _model_name(model, program), OwnOps(own), known)
    held = [] if dynamic_shapes is None else conditions(traced.graph, named)
    if said := sentences(held):
        found.append(f"the model was traced for sizes of which {'; '.join(said)}")
    name_outputs(graph, output_names)
    graph.verify()
    return TorchSource(
        graph=graph,
        notes=[*notes, *mode, *ways, *found],
        example={name: numpy_of(tensor) for name, tensor in zip(names, example.tensors(), strict=True)},
        _model=model,
        _inputs=example,
        _cuts=outputs_at,
        _traced=traced,
        _names={
            node: [None if value is None else value.name for value in results]
            for node, results in values.items()
        },
        _outputs=[value.name for value in graph.outputs],
        _sites=sites,
        _sizes=known,
        _conditions=held,
    )


def _open_sizes(
    model: Model, given: DynamicShapes | Literal[True] | None, names: Sequence[str], example: Example
) -> OpenSizes | None:
    if isinstance(model, ExportedProgram):
        if given is not None and given is not True:
            raise UsageError(
                "dynamic_shapes names sizes of a program", hint="say it to torch.export, and give True here"
            )
        return None
    if given is True:
        raise UsageError("dynamic_shapes is True for a module", hint="name the open sizes of its inputs")
    return None if given is None else OpenSizes(given, names, example)


def _cut(
    model: torch.nn.Module | None, names: Sequence[str] | None
) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext() if model is None or names is None else outputs_at_modules(model, names)


def _lower(
    traced: Traced, names: Sequence[str], name: str, own: OwnOps, sizes: Sizes
) -> tuple[Graph, dict[FxNode, list[Value | None]], list[str]]:
    """Return the graph, for every operator the values of the hub that it yields, and notes for the user."""
    inputs = [
        Value(name, dtype_name(node.meta["val"].dtype), sizes.dims(node.meta["val"]))
        for name, node in zip(names, traced.inputs, strict=True)
    ]
    for value in inputs:
        sizes.add_input(value)
    # A weight that is called like an input is named by the node that reads it.
    named = {weight: traced.state[node] for node, weight in traced.names.items() if weight not in names}
    weights = Weights(named)
    folding = Folding(dict(traced.state))
    lowering = Lowering(weights, folding, dict(zip(traced.inputs, inputs, strict=True)), own, sizes)
    lowering.run(traced.graph)
    operators = [
        n for n in traced.graph.nodes if n.op == "call_function" and n not in lowering.folding.folded
    ]
    owners = {node: weight.rpartition(".")[0] for node, weight in traced.names.items()}
    name_nodes(lowering.steps, operators, owners, {*names, *traced.names.values()})
    nodes = [node for step in lowering.steps for node in step.nodes]
    results = [_output(lowering, node, index) for index, node in enumerate(traced.outputs)]
    values = {
        step.source: [v if v is not None and v.producer in step.nodes else None for v in step.results]
        for step in lowering.steps
    }
    notes = [note for node, note in traced.notes.items() if node not in folding.folded]
    return Graph(name, inputs, results, nodes), values, notes


def _output(lowering: Lowering, node: FxNode, index: int) -> Value:
    value = lowering.operands.get(node)
    if node in lowering.folding.constants or not isinstance(value, Value) or value.data is not None:
        raise FrontEndError(
            f"output {index} of the model does not depend on its inputs",
            hint="do not return it from forward()",
        )
    if value.dtype == "bfloat16":
        raise FrontEndError(f"output {index} of the model is bfloat16", hint="return it as float32")
    return value


def _model_name(model: Model, program: ExportedProgram) -> str:
    """Return the name of the model's class, which stands in every operator's module stack."""
    if isinstance(model, torch.jit.ScriptModule):
        return str(model.original_name)
    for node in program.graph.nodes:
        for path, class_name in (node.meta.get("nn_module_stack") or {}).values():
            if not path:
                return str(class_name).rpartition(".")[2]
    return "model"
