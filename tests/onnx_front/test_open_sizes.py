"""Sizes of a file that only a run tells: an input's name for one is nobody else's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from caffeforge.generated.hub.caffe_ops import Proposal
from caffeforge.runtime.graph import Value
from caffeforge.runtime.onnx_front.loaded import load
from caffeforge.runtime.shapes import infer

SETTINGS: dict[str, Any] = {
    "stride": 8,
    "base_size": 8,
    "ratios": (1.0, 2.0),
    "scales": (2.0,),
    "min_size": 4.0,
    "pre_nms_top_n": 30,
    "post_nms_top_n": 8,
    "nms_threshold": 0.5,
}
SHAPES = {"scores": (1, 4, 5, 6), "deltas": (1, 8, 5, 6), "info": (1, 3)}


def test_an_own_op_does_not_take_the_name_that_an_input_has_for_a_size(tmp_path: Path) -> None:
    operands = [Value(name, "float32", shape) for name, shape in SHAPES.items()]
    ((_, (size, _)),) = infer(Proposal(**SETTINGS), operands, 1)
    given = {**SHAPES, "x": (str(size), 2)}
    nodes = [
        helper.make_node("Proposal", [*SHAPES], ["rois"], domain="caffe", **SETTINGS),
        helper.make_node("Neg", ["x"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in given.items()],
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in ("rois", "y")],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("caffe", 1)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8), tmp_path / "net.onnx")
    random = np.random.default_rng(0)
    feed = {
        "scores": random.uniform(0, 1, SHAPES["scores"]).astype(np.float32),
        "deltas": random.normal(0, 0.4, SHAPES["deltas"]).astype(np.float32),
        "info": np.array([[38, 47, 1]], np.float32),
        "x": np.ones((3, 2), np.float32),
    }
    found = load(tmp_path / "net.onnx").run(feed)
    assert len(found["rois"]) > 3
    np.testing.assert_array_equal(found["y"], -feed["x"])
