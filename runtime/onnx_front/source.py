"""``read``: an ONNX model as a hub graph, with example inputs and what the model itself computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, ValueInfoProto

from caffeforge.runtime.array import TEXT, NDArray, dtype_name
from caffeforge.runtime.errors import UsageError
from caffeforge.runtime.graph import Graph, Value
from caffeforge.runtime.miscomputed import is_miscomputed
from caffeforge.runtime.onnx_front.dequantized import dequantized
from caffeforge.runtime.onnx_front.importer import Importer
from caffeforge.runtime.onnx_front.interface import input_value
from caffeforge.runtime.onnx_front.model_file import ModelFile, open_model
from caffeforge.runtime.onnx_front.original import Original
from caffeforge.runtime.onnx_front.running import ByHub, runner
from caffeforge.runtime.onnx_node import numpy_dtype
from caffeforge.runtime.op import CustomOp


@dataclass
class OnnxSource:
    """A model that was read.

    Attributes:
        graph: verified; its values are named as in the model.
        notes: what the user should know: choices, and nodes that the hub could not say.
        example: the example inputs by the graph's input names.
    """

    graph: Graph
    notes: list[str]
    example: dict[str, NDArray]
    _file: ModelFile = field(repr=False)
    _inputs: dict[str, str] = field(repr=False)  # the graph's names of inputs -> the model's
    _outputs: dict[str, str] = field(repr=False)
    _by_evaluator: bool = field(repr=False)
    _custom: Mapping[str, CustomOp] | None = field(default=None, repr=False)
    _original: Original | ByHub | None = field(default=None, repr=False)

    def at_other_sizes(self) -> None:
        """Return None: a model's shapes are those that were given for it."""

    def reference(self, inputs: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return what the model itself computes, by the names of the graph's values.

        onnxruntime runs it; onnx's evaluator where onnxruntime computes otherwise than ONNX says, and the hub
        where it holds ops of domains of their own that the file does not define.

        Raises:
            CaffeforgeError: it cannot run the model.
        """
        if self._original is None:
            observed = [
                node.origin.value for node in self.graph.nodes if _is_observable(node.origin.value, node)
            ]
            self._original = self._runner(observed)
        found = self._original.run({self._inputs[name]: array for name, array in inputs.items()})
        return found | {name: found[model] for name, model in self._outputs.items()}

    def _runner(self, observed: Sequence[str]) -> Original | ByHub:
        if self._by_evaluator:
            return Original(self._file, observed, by_evaluator=True)
        if not any(node.op.domain and node.op.custom is not None for node in self.graph.nodes):
            return Original(self._file, observed)
        shapes = {self._inputs[name]: array.shape for name, array in self.example.items()}
        return runner(self._file, observed, Importer(self._file, shapes, self._custom).run())


def _is_observable(name: str, node: Any) -> bool:
    """Tell whether a node yields a value of the model's own graph."""
    return bool(name) and not node.origin.module and node.outputs[0].name == name


def read(
    model: str | Path | ModelProto,
    example_inputs: object = None,
    *,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    custom: Mapping[str, CustomOp] | None = None,
    dequantize: bool = False,
) -> OnnxSource:
    """Return a model as a hub graph of the example's shapes.

    Args:
        model: a path, or a model in memory.
        example_inputs: an array or tensor, several in the model's order, or a dict by input names; they fix
            all shapes. A tuple of sizes stands for random numbers; None for those of the declared shapes.
        input_names: names of the graph's inputs; the model's if not given.
        output_names: names of the graph's outputs; the model's if not given.
        custom: ops of a backend's own domain by name, as ``vendory.Focus``.
        dequantize: read the float model that QuantizeLinear and DequantizeLinear were put into.

    Raises:
        CaffeforgeError: the file is no ONNX model, or holds what has no place in the hub.
        UsageError: the arguments do not fit the model.
    """
    file = open_model(model)
    notes: list[str] = []
    if dequantize:
        file, notes = dequantized(file)
    example = _example(file, example_inputs)
    importer = Importer(file, {name: array.shape for name, array in example.items()}, custom)
    graph = importer.run()
    for value in graph.inputs:
        given = dtype_name(example[value.name])
        if given != value.dtype:
            raise UsageError(f"input {value.name} is {given}, the model takes {value.dtype}")
    inputs = _renamed("input", graph.inputs, input_names)
    outputs = _renamed("output", graph.outputs, output_names)
    graph.verify()
    notes += importer.notes
    arrays = {name: example[model_name] for name, model_name in inputs.items()}
    exact = any(is_miscomputed(node) for node in graph.nodes if not node.op.domain)
    return OnnxSource(graph, notes, arrays, file, inputs, outputs, exact, custom)


def _renamed(side: str, values: Sequence[Value], names: Sequence[str] | None) -> dict[str, str]:
    """Give values other names; return the names that they have then, with those of the model."""
    before = [value.name for value in values]
    if names is not None and (isinstance(names, str) or len(names) != len(values)):
        raise UsageError(f"{side}_names must be {len(values)} names, one for each of {', '.join(before)}")
    for value, name in zip(values, names or before, strict=True):
        value.name = name
    return dict(zip(names or before, before, strict=True))


def _example(file: ModelFile, given: object) -> dict[str, NDArray]:
    """Return an array for each of the model's inputs."""
    proto = file.proto.graph
    constants = {tensor.name for tensor in proto.initializer}
    declared = [value for value in proto.input if value.name not in constants]
    if given is None:
        values = [input_value(value, None) for value in declared]
        generator = np.random.default_rng(0)
        return {value.name: _random(value, generator) for value in values}
    names = [value.name for value in declared]
    if isinstance(given, Mapping):
        named = {str(name): array for name, array in given.items()}
    else:
        several = list(given) if isinstance(given, (list, tuple)) and not _is_shape(given) else [given]
        if len(several) != len(names):
            raise UsageError(f"{len(several)} example inputs are given, the model takes {', '.join(names)}")
        named = dict(zip(names, several, strict=True))
    if set(named) != set(names):
        raise UsageError(f"inputs {', '.join(named)} are given, the model takes {', '.join(names)}")
    return {value.name: _array(value, named[value.name]) for value in declared}


def _is_shape(given: object) -> bool:
    return isinstance(given, tuple) and bool(given) and all(isinstance(size, int) for size in given)


def _array(declared: ValueInfoProto, given: Any) -> NDArray:
    """Return an array or a tensor of any framework as a NumPy array, sizes as random numbers."""
    if _is_shape(given):
        return _random(input_value(declared, given), np.random.default_rng(0))
    found = given.detach().cpu().numpy() if hasattr(given, "detach") else np.asarray(given)
    found = found.astype(object) if found.dtype.kind == "U" else found
    return np.ascontiguousarray(found).reshape(found.shape)


def _random(value: Value, generator: np.random.Generator) -> NDArray:
    """Return random numbers of an input's declared type; integers are 0 and 1, which any table has."""
    sizes = [dim for dim in value.dims if isinstance(dim, int)]
    if len(sizes) < value.rank:
        raise UsageError(
            f"input {value.name} is {value.type_text()}: its sizes are not all known",
            hint="give example inputs, or --shape on the command line",
        )
    if value.dtype == TEXT:
        raise UsageError(f"input {value.name} takes text", hint="give example inputs")
    dtype = numpy_dtype(value.dtype)
    if dtype.kind in "iub":
        return generator.integers(0, 2, sizes).astype(dtype)
    return generator.standard_normal(sizes).astype(dtype)
