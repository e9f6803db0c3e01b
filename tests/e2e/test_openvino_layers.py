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
        (Single("CTCGreedyDecoder", "", (np.zeros((6, 2, 4), "f"), np.ones((6, 1), "f"))), "marks"),
        (Single("RegionYolo", "region_yolo_param { classes: 3 num: 2 }"), "channels are due"),
        (Single("RegionYolo", "region_yolo_param { classes: 3 do_softmax: false }"), "channels are due"),
        (Single("RegionYolo", "region_yolo_param { coords: 2 classes: 3 num: 1 }"), "more than two coords"),
        (Single("RegionYolo", "region_yolo_param {} flatten_param { axis: 3 end_axis: 1 }"), "behind"),
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


X = Random(3).normal(2, 4, 3, 2)
HALF = np.full((2, 3, 2), 0.5, np.float32)
PERMUTED = "channel_permutation_param { num_output: %d %s }"


@pytest.mark.parametrize(
    ("layer", "due"),
    [
        (Single("Reverse", "reverse_param { axis: 1 }"), X[:, ::-1]),
        (Single("Reverse", "reverse_param { axis: -2 }"), X[:, :, ::-1]),
        (Single("PowerFile"), X),
        (Single("ChannelPermutation", PERMUTED % (3, "")), X[:, :3]),
        (
            Single(
                "ChannelPermutation",
                PERMUTED % (5, "action { chan: 4 copy: 1 } action { chan: 0 fill: 0.5 }"),
            ),
            np.stack([HALF, X[:, 1], X[:, 2], X[:, 3], X[:, 1]], 1),
        ),
        (
            Single(
                "ChannelPermutation", PERMUTED % (2, "action { chan: 0 copy: 3 } action { chan: 1 copy: 3 }")
            ),
            X[:, [3, 3]],
        ),
    ],
)
def test_layers_of_its_schema_alone_compute_what_their_sources_say(
    layer: Single, due: Floats, tmp_path: Path
) -> None:
    prototxt, caffemodel, inputs = written([Single(layer.type, layer.text, (X,))], "openvino", tmp_path)
    np.testing.assert_array_equal(load(prototxt, caffemodel, BACKEND).run(inputs)["y0_0"], due)


def test_regions_are_warped_as_the_kernel_of_mnc_says(tmp_path: Path) -> None:
    """The first place of each bin between the four pixels around it, 0 half a pixel beyond the map."""
    r, (height, width) = Random(4), (6, 9)
    image = r.normal(1, 3, height, width)
    corners = r.generator.uniform(-30, 120, (40, 4))
    rois = np.concatenate([np.zeros((40, 1)), corners], 1).astype(np.float32)
    rois[0, 1:] = [8, 24, 72, 40]  # sides that half a pixel's rounding decides
    text = "roi_warping_param { pooled_h: 3 pooled_w: 4 spatial_scale: 0.0625 }"
    files = written([Single("ROIWarping", text, (image, rois))], "openvino", tmp_path)
    found = load(*files[:2], BACKEND).run(files[2])["y0_0"]
    due = np.zeros((40, 3, 3, 4), np.float32)
    for n, (left, top, right, bottom) in enumerate(
        np.trunc(s + np.copysign(0.5, s)) for s in rois[:, 1:] / 16
    ):
        for row, column in np.ndindex(3, 4):
            y, x = top + row * max(bottom - top, 0) / 3, left + column * max(right - left, 0) / 4
            if not (-0.5 <= y <= height - 0.5 and -0.5 <= x <= width - 0.5):
                continue
            y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
            for i, j in np.ndindex(height, width):
                due[n, :, row, column] += max(1 - abs(y - i), 0) * max(1 - abs(x - j), 0) * image[0, :, i, j]
    assert 0 < np.count_nonzero(due) < due.size
    np.testing.assert_allclose(found, due, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("layer", "sentence"),
    [
        (Single("PowerFile", 'power_file_param { shift_file: "mean.txt" }'), "not in the net"),
        (Single("ChannelPermutation", PERMUTED % (5, "")), "too few channels"),
        (Single("ChannelPermutation", PERMUTED % (2, "action { chan: 2 copy: 0 }")), "lie below"),
        (Single("ChannelPermutation", PERMUTED % (2, "action { chan: 1 }")), "either copy or fill"),
        (Single("CoeffSchedule"), "no source of it is public"),
        (Single("DataAugmentation"), "at random"),
    ],
)  # fmt: skip
def test_what_their_sources_do_not_tell_is_refused(layer: Single, sentence: str, tmp_path: Path) -> None:
    files = written([Single(layer.type, layer.text, (X,))], "openvino", tmp_path)
    with pytest.raises(ReadError, match=sentence):
        load(*files[:2], BACKEND)
