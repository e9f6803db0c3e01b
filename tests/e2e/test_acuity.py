"""VeriSilicon's acuitylite reads the nets of its dialect, and computes its own layers as our rules say."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from caffeforge.runtime.backends import find
from caffeforge.runtime.errors import ReadError
from caffeforge.runtime.loaded import load
from tests.e2e.dialect_cases import Single, written
from tests.e2e.layer_cases import TOLERANCE, Random, difference
from tests.real_caffe.witness import cache_directory
from tests.runners import acuity_nets

BACKEND = find("acuity")
PYTHON = cache_directory() / "acuity" / "bin" / "python"


def pad_channel(r: Random) -> Single:
    text = f"pad_channel_param {{ num_channels_to_pad: {r.size(1, 4)} }}"
    return Single("PadChannel", text, (r.normal(1, r.size(1, 4), r.size(1, 5), r.size(1, 5)),))


def upsample(r: Random) -> Single:
    sizes = (
        f"height: {r.size(1, 12)} width: {r.size(1, 12)} height_scale: 5",
        f"height: {r.size(1, 12)}",
        f"height_scale: {r.size(1, 4)} width_scale: {r.size(3, 4)}",
        "height: 32 width_scale: 2",
    )
    x = r.normal(1, r.size(1, 3), r.size(2, 6), r.size(2, 6))
    like = r.pick(((), (r.normal(1, 1, r.size(1, 9), r.size(1, 9)),)))
    text = f"upsample2_param {{ {r.pick(sizes)} mode: {r.pick(('NEAREST', 'BILINEAR'))} }}"
    return Single("Upsample2", text, (x, *like))


def test_its_own_layers_compute_what_acuity_computes(tmp_path: Path) -> None:
    if not (PYTHON.parents[1] / "complete").exists():
        pytest.skip("acuitylite is not installed; tests/runners/acuity.sh installs it")
    cases = [pad_channel(Random(0)), pad_channel(Random(1)), *(upsample(Random(seed)) for seed in range(14))]
    found = {}
    for index, case in enumerate(cases):
        folder = tmp_path / f"{index:02}"
        folder.mkdir()
        prototxt, caffemodel, inputs = written([case], "acuity", folder)
        np.savez(folder / "inputs.npz", **inputs)  # type: ignore[arg-type]
        found[folder] = load(prototxt, caffemodel, BACKEND).run(inputs)["y0_0"]
    subprocess.run([PYTHON, "-I", acuity_nets.__file__, tmp_path], check=True, capture_output=True)
    for (folder, own), case in zip(found.items(), cases, strict=True):
        assert not (folder / "error.txt").exists(), f"{case}: {(folder / 'error.txt').read_text()}"
        due = np.load(folder / "outputs.npz")["arr_0"]
        assert own.shape == due.shape, case
        assert np.array_equal(own, due) or difference(own, due) <= TOLERANCE, case


@pytest.mark.parametrize(
    ("layer", "sentence"),
    [
        ("GroupNorm group_norm_param { group_ratio: 2 }", "group_ratio cannot be tried"),
        ("Softmax2", "passes it over"),
        ("PadChannel", "positive num_channels_to_pad"),
        ("Upsample2 upsample2_param { height: -1 }", "sizes must be positive"),
    ],
)
def test_what_its_tool_does_not_tell_is_refused(layer: str, sentence: str, tmp_path: Path) -> None:
    kind, _, text = layer.partition(" ")
    files = written([Single(kind, text, (Random(1).normal(1, 4, 3, 3),))], "acuity", tmp_path)
    with pytest.raises(ReadError, match=sentence):
        load(*files[:2], BACKEND)
