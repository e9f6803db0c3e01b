"""ONNX's own checker on a model whose weights are elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx import ModelProto, helper

from caffeforge.runtime.array import Array
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.graph import Value
from caffeforge.runtime.onnx_node import tensor, type_proto
from caffeforge.runtime.shapes import condensed

SMALL = 256  # elements of weights that shapes may depend on


def check_model(model: ModelProto, weights: Mapping[str, Array]) -> None:
    """Check a model with full inference of shapes; larger weights count by their types alone.

    Raises:
        GraphError: it does not pass.
    """
    whole = ModelProto()
    whole.CopyFrom(model)
    known = {value.name for value in whole.graph.input}
    for name, array in weights.items():
        if array.size <= SMALL:
            whole.graph.initializer.append(tensor(name, array.numpy(), array.dtype))
        elif name not in known:
            value = Value(name, array.dtype, array.shape)
            whole.graph.input.append(helper.make_value_info(name, type_proto(value)))
    try:
        onnx.checker.check_model(whole, full_check=True)
    except Exception as error:  # the checker's and the inference's errors share no base
        raise GraphError(f"no valid ONNX model: {condensed(error)}", where=model.graph.name) from None
