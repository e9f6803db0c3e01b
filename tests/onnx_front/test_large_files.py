"""Files of more than 2 GB: sparse ones, whose zeros take no room on the disk and are never read."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

pytest.importorskip("onnxruntime")

from caffeforge.runtime.executor import Executor
from caffeforge.runtime.onnx_front import Importer, open_model
from caffeforge.runtime.wire import head

ROWS, COLUMNS = 700_000, 1024  # 2.9 GB
SIZE = 4 * ROWS * COLUMNS
LAST = np.arange(COLUMNS, dtype=np.float32)


def model(*weights: TensorProto) -> ModelProto:
    """Return a model that negates the rows at some places of ``w``."""
    places = helper.make_tensor_value_info("places", TensorProto.INT64, (2,))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, COLUMNS))
    nodes = [helper.make_node("Gather", ["w", "places"], ["rows"]), helper.make_node("Neg", ["rows"], ["y"])]
    graph = helper.make_graph(nodes, "net", [places], [y], list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def outside() -> TensorProto:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=(ROWS, COLUMNS))
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": "w.bin", "offset": 4096, "length": SIZE}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def write_sparse(path: Path, before: bytes, after: bytes) -> None:
    """Write SIZE zeros, of which the last row is LAST, between two pieces."""
    with open(path, "wb") as file:
        file.write(before)
        file.seek(len(before) + SIZE - LAST.nbytes)
        file.write(LAST.tobytes())
        file.write(after)


def within(file: Path) -> None:
    """Write a model with the weight in it, which is more than protobuf writes or reads."""
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=(ROWS, COLUMNS)).SerializeToString()
    graph = model().graph.SerializeToString()
    rest = model()
    rest.ClearField("graph")
    raw = head(9, SIZE)  # TensorProto.raw_data
    weight = head(5, len(tensor) + len(raw) + SIZE) + tensor + raw  # GraphProto.initializer
    whole = head(7, len(graph) + len(weight) + SIZE)  # ModelProto.graph
    write_sparse(file, rest.SerializeToString() + whole + graph + weight, b"")


@pytest.mark.parametrize("form", ["external", "within"])
def test_a_file_of_more_than_2_gb_is_mapped(form: str, tmp_path: Path) -> None:
    file = tmp_path / "net.onnx"
    if form == "external":
        onnx.save(model(outside()), file)
        write_sparse(tmp_path / "w.bin", bytes(4096), b"")
    else:
        within(file)
    start = time.process_time()
    graph = Importer(open_model(file)).run()
    assert time.process_time() - start < 1
    (weight,) = graph.constants()
    assert weight.dims == (ROWS, COLUMNS) and weight.data is not None
    np.testing.assert_array_equal(weight.data.rows(ROWS - 1, ROWS), [LAST])
    assert not weight.data.rows(ROWS // 2, ROWS // 2 + 2).any()
    found = Executor(graph).run({"places": np.array([ROWS - 1, 5])})["y"]
    np.testing.assert_array_equal(found, [-LAST, 0 * LAST])
