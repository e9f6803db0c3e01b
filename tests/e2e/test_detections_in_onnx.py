"""SSD, Faster R-CNN and R-FCN as ONNX files: onnxruntime finds in them what a real Caffe does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from caffeforge.generated import ssd
from caffeforge.runtime.array import Dense
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.backends import find_any
from caffeforge.runtime.caffe_files import read_files
from caffeforge.runtime.cli import main
from caffeforge.runtime.hub_from_net import hub_from_net
from caffeforge.runtime.onnx_out.backend import OnnxBackend
from caffeforge.runtime.onnx_out.export import export, export_source
from caffeforge.runtime.onnx_out.from_net import NetSource, export_net
from tests.e2e import test_regions as regions
from tests.e2e import vendor
from tests.e2e.layer_cases import Random, difference
from tests.e2e.test_regions import dialect as dialect  # a fixture
from tests.e2e.test_ssd import BOXES, CLASSES, DETECTIONS, net, priors, small_ssd
from tests.e2e.vendor import Floats
from tests.real_caffe.witness import Witness

OPSETS = (9, 10, 13, 17, 28)  # 9 has no NonMaxSuppression, so a Loop does it


def backend(opset: int) -> OnnxBackend:
    found = find_any(f"onnx_opset{opset}")
    assert isinstance(found, OnnxBackend)
    return found


def run(path: Path, inputs: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return what onnxruntime alone computes from a file."""
    session = onnxruntime.InferenceSession(path)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, dict(inputs)), strict=True))


def kinds(path: Path) -> tuple[set[str], set[str]]:
    """Return the ops of domains of their own, as nodes and as functions."""
    model = onnx.load(path)
    return {n.op_type for n in model.graph.node if n.domain}, {f.name for f in model.functions}


@pytest.mark.parametrize("shared", [True, False])
def test_onnxruntime_finds_the_boxes_that_caffe_does(tmp_path: Path, caffe: Witness, shared: bool) -> None:
    random = Random(2)
    inputs = {
        "loc": random.normal(2, BOXES * 4 * (1 if shared else CLASSES), scale=0.3),
        "conf": random.generator.uniform(0, 1, (2, BOXES * CLASSES)).astype(np.float32),
        "priors": priors(random),
    }
    layers = [
        f'name: "{name}" type: "DetectionOutput" bottom: "loc" bottom: "conf" bottom: "priors" top: "{name}" '
        f"detection_output_param {{ num_classes: {CLASSES} share_location: {str(shared).lower()} {p} }}"
        for name, p in DETECTIONS.items()
        if not (shared and name == "no_background")  # which Caffe does not take
    ]
    text = net(*layers, **{name: array.shape for name, array in inputs.items()})
    files = vendor.write(tmp_path, text, {}, "ssd")
    expected = caffe.run(*files, inputs)
    for opset in OPSETS:
        path = export_net(files[0], None, tmp_path / f"net{opset}", source="ssd", target=backend(opset)).onnx
        assert kinds(path) == (({"DetectionOutput"},) * 2 if opset >= 15 else (set(), set()))
        for name, array in run(path, inputs).items():
            assert difference(array, expected[name]) < 1e-5, (opset, name)


def test_onnxruntime_runs_a_whole_ssd(
    tmp_path: Path, caffe: Witness, capsys: pytest.CaptureFixture[str]
) -> None:
    text, blobs = small_ssd()
    files = vendor.write(tmp_path, text, blobs, "ssd")
    image = {"data": Random(4).normal(1, 3, 24, 32)}
    expected = caffe.run(*files, image)["found"]
    for opset in (9, 18):
        arguments = ["transcode", *map(str, files), "--from", "ssd", "--to", f"onnx_opset{opset}"]
        assert main([*arguments, "--out", str(tmp_path / f"net{opset}")]) == 0
        assert "verified: " in capsys.readouterr().out
        assert difference(run(tmp_path / f"net{opset}.onnx", image)["found"], expected) < 1e-5


def test_onnxruntime_runs_the_heads_of_faster_rcnn_and_r_fcn(dialect: Backend, tmp_path: Path) -> None:
    """Their regions are compared with real Caffe's elsewhere; here the executor tells them."""
    expected = regions.loaded(tmp_path, dialect).run(regions.inputs())
    for opset in (9, 10, 18, 21):  # onnxruntime has no kernel of the MaxRoiPool of opset 22
        read = read_files(tmp_path / "net.prototxt", None, dialect)
        for layer in read.layers:
            layer.blobs = tuple(Dense(blob) for blob in regions.weights().get(layer.name, ()))
        graph = hub_from_net(read, dialect).graph
        source = NetSource(graph, {**regions.inputs()}, [], read, dialect)
        path = export_source(backend(opset), source, tmp_path / f"net{opset}", verify=False).onnx
        own = {"Proposal", "PSROIPooling"}
        assert kinds(path) == ((own, own) if opset >= 15 else (set(), set()))
        found = run(path, regions.inputs())
        assert len(found["own"]) > 8
        for name, array in found.items():
            np.testing.assert_allclose(array, expected[name], rtol=1e-4, atol=1e-5)


def test_nodes_alone_of_a_file_are_said_by_others_in_the_next(tmp_path: Path) -> None:
    """Each finds as many as it does: onnxruntime fails where two sizes have one name."""
    random = Random(6)
    inputs = {
        "loc": random.normal(2, BOXES * 4, scale=0.3),
        "conf": random.generator.uniform(0, 1, (2, BOXES * CLASSES)).astype(np.float32),
        "priors": priors(random),
    }
    layers = [
        f'name: "{name}" type: "DetectionOutput" bottom: "loc" bottom: "conf" bottom: "priors" top: "{name}" '
        f"detection_output_param {{ num_classes: {CLASSES} {DETECTIONS[name]} }}"
        for name in ("adaptive", "corner", "size")
    ]
    text = net(*layers, **{name: array.shape for name, array in inputs.items()})
    path = vendor.write(tmp_path, text, {}, "ssd")[0]
    expected = ssd.load(path).run(inputs)
    alone = export_net(
        path, None, tmp_path / "alone", source="ssd", target=backend(11), own_ops="node", verify=False
    )
    assert kinds(alone.onnx) == ({"DetectionOutput"}, set())
    for opset in (9, 17):
        again = export(backend(opset), str(alone.onnx), None, tmp_path / "again")
        assert again.verification is not None
        for name, array in run(again.onnx, inputs).items():
            assert difference(array, expected[name]) < 1e-5, name


def test_what_an_opset_cannot_say_is_told(tmp_path: Path) -> None:
    shapes = {"loc": (1, 160), "conf": (1, 160), "priors": (1, 2, 160)}
    text = net(
        'name: "y" type: "DetectionOutput" bottom: "loc" bottom: "conf" bottom: "priors" top: "y" '
        "detection_output_param { num_classes: 4 }",
        **shapes,
    )
    (path,) = vendor.write(tmp_path, text, {}, "ssd")[:1]
    found = export_net(path, None, tmp_path / "old", source="ssd", target=backend(8), verify=False)
    assert found.notes == (
        "caffe.DetectionOutput stays a node of its own domain, which only caffeforge runs; "
        "onnx_opset8 cannot say it: NonZero came with opset 9",
    )
    assert kinds(found.onnx) == ({"DetectionOutput"}, set())
