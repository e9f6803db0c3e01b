"""Weights of every element type, in every form of file: the elements are what was written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.external_data_helper import convert_model_to_external_data

pytest.importorskip("onnxruntime")

from caffeforge.runtime.onnx_front import Importer, open_model
from caffeforge.runtime.onnx_node import DTYPES

TYPES = {name: number for number, name in DTYPES.items() if name != "string"}
SHAPE = (7, 3)  # an odd number of elements, so that packed ones do not fill their bytes


def elements(dtype: str) -> Any:
    kind = helper.tensor_dtype_to_np_dtype(TYPES[dtype])
    numbers = np.random.default_rng(0).integers(0, 2, SHAPE)
    if dtype.startswith(("float", "bfloat", "complex")):
        return (numbers + 0.5 if dtype != "float8_e8m0fnu" else numbers + 1.0).astype(kind)
    return (-numbers if dtype.startswith("int") else numbers).astype(kind)


@pytest.mark.parametrize("form", ["raw", "typed", "external"])
@pytest.mark.parametrize("dtype", TYPES)
def test_weights_are_read_as_they_were_written(dtype: str, form: str, tmp_path: Path) -> None:
    expected = elements(dtype)
    tensor = numpy_helper.from_array(expected, "w")
    if form == "typed":
        held = expected.astype(np.float32).reshape(-1) if dtype == "bfloat16" else expected.reshape(-1)
        tensor = helper.make_tensor("w", TYPES[dtype], SHAPE, held)
    y = helper.make_tensor_value_info("y", TYPES[dtype], SHAPE)
    graph = helper.make_graph([helper.make_node("Identity", ["w"], ["y"])], "net", [], [y], [tensor])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)
    if form == "external":
        convert_model_to_external_data(model, location="w.bin", size_threshold=0)
    onnx.save(model, tmp_path / "net.onnx")
    (weight,) = Importer(open_model(tmp_path / "net.onnx")).run().constants()
    assert (weight.dtype, weight.dims) == (dtype, SHAPE) and weight.data is not None
    found = weight.data.numpy()
    kind = np.complex128 if dtype.startswith("complex") else np.float64
    np.testing.assert_array_equal(found.astype(kind), expected.astype(kind))
