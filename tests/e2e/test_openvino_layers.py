"""OpenVINO computes its own layers as our rules say: its optimizer and its plugin for CPUs run them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from caffeforge.runtime.backends import find
from caffeforge.runtime.errors import ReadError
from caffeforge.runtime.loaded import load
from tests.e2e.dialect_cases import Single, drawn, tops_of, written
from tests.e2e.layer_cases import TOLERANCE, Floats, Random, difference
from tests.e2e.openvino_cases import MAKERS
from tests.real_caffe.witness import cache_directory
from tests.runners import openvino_nets

BACKEND = find("openvino")
PYTHON = cache_directory() / "openvino" / "bin" / "python"


def test_its_own_layers_compute_what_openvino_computes(tmp_path: Path) -> None:
    if not PYTHON.exists():
        pytest.skip("openvino-dev is not installed; tests/runners/openvino.sh installs it")
    cases = drawn(MAKERS, each=12)
    folder = tmp_path / "cases"
    folder.mkdir()
    prototxt, caffemodel, inputs = written(cases, "openvino", folder)
    due = computed_by_openvino(folder, inputs)
    found = load(prototxt, caffemodel, BACKEND).run(inputs)
    for index, case in enumerate(cases):
        (name,) = tops_of(index, case)
        assert found[name].shape == due[name].shape, case
        assert np.array_equal(found[name], due[name]) or difference(found[name], due[name]) <= TOLERANCE, case


def computed_by_openvino(folder: Path, inputs: Mapping[str, Floats]) -> Mapping[str, Floats]:
    """Return the outputs of the net in `folder`, by the names of their blobs."""
    np.savez(folder / "inputs.npz", **inputs)  # type: ignore[arg-type]
    subprocess.run([PYTHON, "-I", openvino_nets.__file__, folder.parent], check=True, capture_output=True)
    assert not (folder / "error.txt").exists(), (folder / "error.txt").read_text()
    return np.load(folder / "outputs.npz")  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("layer", "sentence"),
    [
        (Single("GRN", "", (np.ones((1, 2, 3, 4, 5), np.float32),)), "two to four axes"),
        (Single("RegionYolo", "region_yolo_param { classes: 3 num: 2 }"), "channels are due"),
        (Single("RegionYolo", "region_yolo_param { classes: 3 do_softmax: false }"), "channels are due"),
        (Single("RegionYolo", "region_yolo_param { coords: 2 classes: 3 num: 1 }"), "more than two coords"),
        (Single("ReorgYolo", "reorg_yolo_param { stride: 2 }"), "stride divides neither"),
        (Single("Resample", "resample_param { height: 2 }"), "height and width alone"),
        (Single("Resample", "resample_param { height: 2 width: 2 type: AREA }"), "AREA"),
        (Single("Resample", "resample_param { factor: 1.25 }"), "must be whole"),
    ],
)  # fmt: skip
def test_what_ends_the_optimizer_is_refused(layer: Single, sentence: str, tmp_path: Path) -> None:
    bottoms = layer.bottoms or (Random(1).normal(1, 6, 2, 2),)
    files = written([Single(layer.type, layer.text, bottoms)], "openvino", tmp_path)
    with pytest.raises(ReadError, match=sentence):
        load(*files[:2], BACKEND)
