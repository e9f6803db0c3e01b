"""The models that the onnx wheel carries, of opsets 6 to 12: all are in and equal."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime")

from caffeforge.runtime.executor import Executor
from caffeforge.runtime.onnx_front import Importer, open_model
from caffeforge.runtime.onnx_front.original import Original
from tests.onnx_front.node_cases import EQUAL, run
from tests.onnx_front.wheel_models import data_sets, models


@pytest.mark.parametrize("name", [name for name, _ in models() if not name.startswith("light")])
def test_model_computes_its_recorded_outputs(name: str) -> None:
    file = dict(models())[name]
    assert run(onnx.load(file), data_sets(file), rtol=1e-3, atol=1e-7) == (EQUAL, "")


@pytest.mark.parametrize("name", [name for name, _ in models() if name.startswith("light")])
def test_light_model_computes_what_onnxruntime_does(name: str) -> None:
    """Weights of light models are computed by ConstantOfShape, so that whole networks are small files."""
    model = open_model(dict(models())[name])
    graph = Importer(model).run()
    generator = np.random.default_rng(0)
    feed = {v.name: generator.standard_normal(v.shape[:]).astype(np.float32) for v in graph.inputs}
    expected = Original(model, []).run(feed)
    found = Executor(graph).run(feed)
    assert set(found) == set(expected)
    for output, array in expected.items():
        np.testing.assert_allclose(found[output], array, rtol=1e-4, atol=1e-5 * np.abs(array).max())
