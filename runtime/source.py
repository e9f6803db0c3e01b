"""Where a graph comes from: a PyTorch or an ONNX model, by the front end that reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caffeforge.runtime.errors import UsageError
from caffeforge.runtime.op import CustomOp

if TYPE_CHECKING:
    from caffeforge.runtime.onnx_front import OnnxSource
    from caffeforge.runtime.torch_front.source import TorchSource

    Source = TorchSource | OnnxSource


def source_of(
    model: Any,
    example_inputs: Any,
    *,
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
    outputs_at: Sequence[str] | None,
    dynamic_shapes: Any = None,
    custom: Mapping[str, CustomOp],
    dequantize: bool,
) -> Source:
    """Trace or read a model; see ``export`` of a generated package.

    Raises:
        CaffeforgeError: the model cannot be traced or read.
        UsageError: the arguments do not fit the model.
    """
    if not is_onnx(model):
        if dequantize:
            raise UsageError("dequantize reads ONNX models; a PyTorch model is float before it is quantized")
        from caffeforge.runtime.torch_front import trace

        return trace(
            model,
            example_inputs,
            input_names=input_names,
            output_names=output_names,
            outputs_at=outputs_at,
            dynamic_shapes=dynamic_shapes,
            custom=custom,
        )
    from caffeforge.runtime.onnx_front import read

    if outputs_at is not None:
        raise UsageError("outputs_at names modules, which an ONNX model does not have")
    if dynamic_shapes is not None:
        raise UsageError(
            "dynamic_shapes is for PyTorch models",
            hint="an ONNX model's open sizes stay open where none is given",
        )
    return read(
        model,
        example_inputs,
        input_names=input_names,
        output_names=output_names,
        custom=custom,
        dequantize=dequantize,
    )


def is_onnx(model: Any) -> bool:
    """Tell whether a model is ONNX's, in a file or in memory, without importing onnx for others."""
    if isinstance(model, (str, Path)):
        return Path(model).suffix == ".onnx"
    return type(model).__name__ == "ModelProto"
