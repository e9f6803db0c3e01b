"""OpenVINO's model optimizer reads what we write for it, and OpenVINO computes what the ops say."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from caffeforge.runtime.assemble import assemble
from caffeforge.runtime.backends import find
from caffeforge.runtime.caffe_files import read_files, write_files
from caffeforge.runtime.check import check_net
from caffeforge.runtime.coverage import examples_of
from caffeforge.runtime.errors import LegalizeError
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.legalize import legalize
from caffeforge.runtime.rule_tests import graph_of, inputs_of
from tests.e2e.dialect_cases import Single, written
from tests.e2e.layer_cases import TOLERANCE, Random, difference
from tests.real_caffe.witness import cache_directory
from tests.runners import openvino_nets

BACKEND = find("openvino")
PYTHON = cache_directory() / "openvino" / "bin" / "python"
EVERY = 12  # one of so many examples runs, as a conversion takes half a second; 1 was tried: all agree


@pytest.fixture(scope="module")
def openvino() -> Path:
    """The interpreter that has the tool; where it is missing the test is skipped."""
    command = [str(PYTHON), "-I", "-c", "from openvino.tools.mo import convert_model"]
    if not PYTHON.exists() or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("openvino-dev is not installed; tests/runners/openvino.sh installs it")
    return PYTHON


def test_ops_are_computed_as_their_examples_say(openvino: Path, tmp_path: Path) -> None:
    due = {}
    examples = [e for e in examples_of(BACKEND) if e.refused is None and e.subject not in ("Log", "Sqrt")]
    for index, example in enumerate(examples[::EVERY]):
        graph = graph_of(example.text, BACKEND)
        try:
            net = assemble(graph, legalize(graph, BACKEND), BACKEND)
        except LegalizeError:
            continue
        folder = tmp_path / f"{index:04}"
        folder.mkdir()
        given = inputs_of(graph)
        due[folder] = (example.text, Executor(graph, threads=1).run(given))
        write_files(net, BACKEND, folder / "net", "{}")
        floats = {name: array.astype(np.float32) for name, array in given.items()}
        np.savez(folder / "inputs.npz", **floats)  # type: ignore[arg-type]
    subprocess.run([openvino, "-I", openvino_nets.__file__, tmp_path], check=True, capture_output=True)
    for folder, (text, outputs) in due.items():
        assert not (folder / "error.txt").exists(), text + (folder / "error.txt").read_text()
        found = np.load(folder / "outputs.npz")
        for name, expected in outputs.items():
            same = np.array_equal(found[name], expected)
            assert same or difference(found[name], expected) <= TOLERANCE, text
    assert len(due) > 80 / EVERY


@pytest.mark.parametrize(
    ("layer", "sentence"),
    [
        (Single("Convolution", "convolution_param { num_output: 2 kernel_size: 1 stride: [2, 1] }"), "first"),
        (Single("LRN", "lrn_param { k: 2 }"), "k is not read"),
        (Single("Pooling", "pooling_param { kernel_size: 2 stride: 2 pad: 1 }"), "never dropped"),
        (Single("ReLU6", "relu6_param { n: 1 }"), "n is not read"),
    ],
)  # fmt: skip
def test_what_openvino_computes_otherwise_is_told(layer: Single, sentence: str, tmp_path: Path) -> None:
    r = Random(1)
    blobs = (r.normal(2, 3, 1, 1), r.normal(2)) if layer.type == "Convolution" else ()
    case = Single(layer.type, layer.text, (r.normal(1, 3, 3, 3),), blobs)
    net = read_files(*written([case], "openvino", tmp_path)[:2], BACKEND)
    (finding,) = check_net(net, BACKEND).findings
    assert sentence in finding.reason
