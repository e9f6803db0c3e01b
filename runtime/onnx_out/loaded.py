"""An ONNX file, read: its values can be asked for by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import UsageError
from caffeforge.runtime.onnx_front.model_file import ModelFile, open_model
from caffeforge.runtime.onnx_front.running import running
from caffeforge.runtime.op import CustomOp


class LoadedModel:
    """A model as its file has it, run by onnxruntime, by the hub where it has undefined ops."""

    def __init__(self, file: ModelFile, custom: Mapping[str, CustomOp]) -> None:
        self._file = file
        self._custom = custom
        graph = file.proto.graph
        held = {tensor.name for tensor in graph.initializer}
        self.inputs = tuple(value.name for value in graph.input if value.name not in held)
        self.outputs = tuple(value.name for value in graph.output)
        self._known = {*self.outputs, *(name for node in graph.node for name in node.output if name)}

    def run(self, inputs: Mapping[str, NDArray], values: Sequence[str] | None = None) -> dict[str, NDArray]:
        """Return values by name; None for the outputs.

        Raises:
            UsageError: there is no such value.
            CaffeforgeError: the model cannot be run.
        """
        wanted = tuple(values) if values is not None else self.outputs
        for name in wanted:
            if name not in self._known:
                raise UsageError(f"the model has no value {name}", where=self._file.name)
        found = running(self._file, wanted, self._custom).run(inputs)
        return {name: found[name] for name in wanted}


def load(path: str | Path, custom: Mapping[str, CustomOp]) -> LoadedModel:
    """Read a model, with ops of a backend's own domain.

    Raises:
        FileError: the file is no ONNX model.
    """
    return LoadedModel(open_model(path), custom)
