"""The model as its file has it, run by onnxruntime: the reference that a verifier compares with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import onnx
import onnxruntime
from onnx import ModelProto, ValueInfoProto

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.onnx_front.model_file import ModelFile
from caffeforge.runtime.shapes import condensed

_LARGEST: Final = 1 << 30  # bytes of a file whose inner values are observed: that takes a copy of it


class Original:
    """Runs the model of a file.

    Args:
        file: the model.
        values: names of inner values to hand out besides the outputs.
        by_evaluator: let onnx's evaluator run it, as onnxruntime computes otherwise than ONNX says.
    """

    def __init__(self, file: ModelFile, values: Sequence[str], *, by_evaluator: bool = False) -> None:
        self.outputs = [value.name for value in file.proto.graph.output]
        large = file.data is not None and len(file.data) > _LARGEST
        self.names = list(self.outputs) if large else list(dict.fromkeys([*self.outputs, *values]))
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        source: Any = str(file.path) if large else _observed(file, self.names).SerializeToString()
        if file.path is not None and not large:
            key = "session.model_external_initializers_file_folder_path"
            options.add_session_config_entry(key, str(file.folder.resolve()))
        self._evaluator: Any = None
        self._session: Any = None
        self._refusal = ""
        if by_evaluator:
            self._evaluator = _evaluator(file, "onnx's evaluator lacks an op")
            self.names = list(self.outputs)
            return
        try:
            self._session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's classes share no base of their own
            self._refusal = f"onnxruntime refuses it ({condensed(error)})"
            self._evaluator = _evaluator(file, self._refusal)
            self.names = list(self.outputs)

    def run(self, inputs: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return outputs and inner values by name.

        Raises:
            CaffeforgeError: the model cannot be run.
        """
        try:
            if self._session is not None:
                found = self._session.run(self.names, dict(inputs))
            else:
                found = self._evaluator.run(self.names, dict(inputs))
        except Exception as error:
            why = f"{self._refusal}, onnx's evaluator fails: " if self._refusal else ""
            raise CaffeforgeError(
                f"the model itself cannot be run, there is nothing to compare with: {why}{condensed(error)}",
                hint="export it with verify=False",
            ) from None
        arrays: dict[str, NDArray] = {}
        for name, value in zip(self.names, found, strict=True):
            if isinstance(value, list):  # a sequence, whose tensors the graph has one by one
                arrays.update((f"{name}.{index}", item) for index, item in enumerate(value))
            else:
                arrays[name] = value
        return arrays


def _observed(file: ModelFile, names: Sequence[str]) -> ModelProto:
    """Return the model with further outputs; external data stays where it is."""
    model = ModelProto()
    if file.path is not None:
        model = onnx.load(str(file.path), load_external_data=False)
    else:
        model.CopyFrom(file.proto)
    have = {value.name for value in model.graph.output}
    model.graph.output.extend(ValueInfoProto(name=name) for name in names if name not in have)
    return model


def _evaluator(file: ModelFile, why: str) -> Any:
    """Return onnx's evaluator for a model that onnxruntime refuses, or computes otherwise."""
    from onnx.reference import ReferenceEvaluator

    try:
        return ReferenceEvaluator(onnx.load(str(file.path)) if file.path is not None else file.proto)
    except Exception:  # whatever it lacks
        raise CaffeforgeError(
            f"the model itself cannot be run, there is nothing to compare with: {why}",
            where=file.name,
            hint="export it with verify=False",
        ) from None
