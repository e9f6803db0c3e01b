"""``load``: an ONNX model, ready to compute any of its values through the hub."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from caffeforge.runtime.array import TEXT, NDArray, dtype_name
from caffeforge.runtime.errors import UsageError
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.graph import Graph
from caffeforge.runtime.onnx_front.dequantized import dequantized
from caffeforge.runtime.onnx_front.importer import Importer
from caffeforge.runtime.onnx_front.model_file import open_model
from caffeforge.runtime.onnx_node import numpy_dtype


class LoadedOnnx:
    """A model that was read.

    Attributes:
        graph: what it computes.
        inputs: the shape of each input as the model declares it; 1 for a size that it leaves open.
        whole: the type of each input that takes integers, truth values or text.
        notes: nodes that the hub could not say, and why.
    """

    def __init__(self, graph: Graph, notes: Sequence[str]) -> None:
        self.graph = graph
        self.notes = tuple(notes)
        self.inputs = {
            value.name: tuple(dim if isinstance(dim, int) else 1 for dim in value.dims)
            for value in graph.inputs
        }
        self.whole = {
            value.name: value.dtype for value in graph.inputs if numpy_dtype(value.dtype).kind in "iubO"
        }
        self._executor = Executor(graph)

    def run(self, inputs: Mapping[str, NDArray], blobs: Sequence[str] | None = None) -> dict[str, NDArray]:
        """Return values by name; None for the outputs.

        Raises:
            UsageError: a name is unknown, or an array does not hold the numbers that an input takes.
            CaffeforgeError: an array has another shape.
        """
        known = [value.name for value in self.graph.values()]
        for name in blobs or ():
            if name not in known:
                near = difflib.get_close_matches(name, known, 3)
                hint = f"did you mean {', '.join(near)}?" if near else ""
                raise UsageError(f"the model has no value {name!r}", hint=hint)
        dtypes = {value.name: value.dtype for value in self.graph.inputs}
        given = {n: _cast(n, a, dtypes[n]) if n in dtypes else a for n, a in inputs.items()}
        return self._executor.run(given, blobs)


def load(model: str | Path, *, dequantize: bool = False) -> LoadedOnnx:
    """Read a model; with `dequantize` the float model behind a quantized one.

    Raises:
        CaffeforgeError: the file is no ONNX model, or holds what has no place in the hub.
    """
    file, notes = dequantized(open_model(model)) if dequantize else (open_model(model), [])
    importer = Importer(file)
    graph = importer.run()
    return LoadedOnnx(graph, [*notes, *importer.notes])


def _cast(name: str, array: NDArray, dtype: str) -> NDArray:
    """Return an array as an input's element type, if that loses nothing."""
    if (array.dtype.kind in "OU") != (dtype == TEXT):
        raise UsageError(f"input {name} takes {dtype}, {dtype_name(array)} is given")
    found = array.astype(numpy_dtype(dtype))
    if found.dtype.kind in "iub" and not np.array_equal(found, array):
        raise UsageError(f"input {name} takes {dtype}, which cannot hold the numbers that are given")
    return found
