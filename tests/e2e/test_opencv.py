"""OpenCV's dnn module: it computes what our rules say, of all that its constraints let pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import cv2
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
from caffeforge.runtime.loaded import load
from caffeforge.runtime.net import Net
from caffeforge.runtime.rule_tests import graph_of, inputs_of
from tests.e2e import sophgo_cases, vendor
from tests.e2e.dialect_cases import Single, drawn, of_bvlc, written
from tests.e2e.layer_cases import TOLERANCE, Floats, Random, difference
from tests.e2e.test_ssd import small_ssd

BACKEND = find("opencv")
NO_RESULT = {"ImageData", "Input", "MemoryData", "Silence"}
# They are undefined for negative numbers, which the examples have.
UNDEFINED = {"Log", "Sqrt"}


def computed(
    files: Sequence[Path], inputs: Mapping[str, Floats], net: Net, tops: Sequence[str]
) -> list[Floats]:
    """Return blobs as OpenCV computes them; it names them by their layers."""
    made = {top: (layer.name, place) for layer in net.layers for place, top in enumerate(layer.tops)}
    found = cv2.dnn.readNetFromCaffe(*map(str, files))
    for name, array in inputs.items():
        found.setInput(array, name)
    try:
        results = [found.forwardAndRetrieve([made[top][0]])[0][made[top][1]] for top in tops]
    except cv2.error:  # of some layers it has lost the name
        (_,) = tops
        results = [found.forward()]
    return [np.asarray(result) for result in results]


def test_layers_that_pass_the_constraints_are_computed_alike(tmp_path: Path) -> None:
    kinds = set(BACKEND.readers) - NO_RESULT
    c = sophgo_cases
    own = drawn({make.__name__: make for make in (c.normalize, c.permute, c.prior_box)}, each=8)
    own.append(Single("Log", "", (Random(3).positive(2, 3, 4),)))
    passed: Counter[str] = Counter()
    wrong = {}
    for case in (*of_bvlc(kinds, most=8), *own):
        if case.tops > 1:
            continue  # Split has copies that nothing reads; Slice is in the examples of ops
        prototxt, caffemodel, inputs = written([case], "opencv", tmp_path)
        net = read_files(prototxt, caffemodel, BACKEND)
        if not check_net(net, BACKEND).passed:
            continue
        due = load(prototxt, caffemodel, BACKEND).run(inputs)["y0_0"]
        (found,) = computed((prototxt, caffemodel), inputs, net, ["y0_0"])
        found = found.reshape(due.shape) if due.ndim < 2 else found  # it gives every blob two axes
        passed[case.type] += 1
        if difference(found, due) > TOLERANCE:
            wrong[str(case)] = difference(found, due)
    assert not wrong
    assert kinds - set(passed) <= {
        "DetectionOutput",
        "MVN",
        "PSROIPooling",
        "ROIPooling",
        "Slice",
        "Split",
        "Proposal",
    }


def test_ops_are_computed_as_their_examples_say(tmp_path: Path) -> None:
    outcome: Counter[str] = Counter()
    for example in examples_of(BACKEND):
        if example.refused is not None or example.subject in {*UNDEFINED, "caffe.DetectionOutput"}:
            continue
        graph = graph_of(example.text, BACKEND)
        try:
            net = assemble(graph, legalize(graph, BACKEND), BACKEND)
        except LegalizeError:
            outcome["refused"] += 1
            continue
        given = inputs_of(graph)
        due = Executor(graph, threads=1).run(given)
        prototxt, caffemodel, _ = write_files(net, BACKEND, tmp_path / "net", "{}")
        floats = {name: array.astype(np.float32) for name, array in given.items()}
        for name, found in zip(due, computed((prototxt, caffemodel), floats, net, list(due)), strict=True):
            same = np.array_equal(found, due[name])  # also where numbers are infinite
            assert same or difference(found, due[name]) <= TOLERANCE, example.text
        outcome["computed"] += 1
    assert outcome["computed"] > 130 and outcome["refused"] < 90


def test_a_whole_ssd_finds_the_same_boxes(tmp_path: Path) -> None:
    text, blobs = small_ssd()
    text = text.replace("num_classes: 3", "num_classes: 3 background_label_id: 0")
    files = vendor.write(tmp_path, text, blobs, "opencv")
    inputs = {"data": Random(4).normal(1, 3, 24, 32)}
    loaded = load(*files, BACKEND)
    assert check_net(loaded.net, BACKEND).passed
    (found,) = computed(files, inputs, loaded.net, ["found"])
    assert difference(found, loaded.run(inputs)["found"]) <= TOLERANCE


@pytest.mark.parametrize(
    ("layer", "sentence"),
    [
        (Single("InnerProduct", "inner_product_param { num_output: 2 transpose: true }"), "transpose is not"),
        (Single("LRN", "lrn_param { k: 2 alpha: 0.1 }"), "k is not read"),
        (Single("Log", "log_param { base: 2 }"), "base, scale and shift"),
        (Single("MVN", "mvn_param { eps: 0.1 }"), "eps is added to the variance"),
        (Single("Deconvolution", "convolution_param { num_output: 2 kernel_size: 2 dilation: 2 }"), "dilat"),
        (Single("Concat", ""), "values are lost"),
    ],
)  # fmt: skip
def test_what_opencv_computes_otherwise_is_told(layer: Single, sentence: str, tmp_path: Path) -> None:
    r = Random(1)
    shapes = {"InnerProduct": [(48, 2), (2,)], "Deconvolution": [(3, 2, 2, 2), (2,)]}.get(layer.type, [])
    case = Single(layer.type, layer.text, (r.normal(1, 3, 4, 4),), [r.normal(*shape) for shape in shapes])
    net = read_files(*written([case], "opencv", tmp_path)[:2], BACKEND)
    (finding,) = check_net(net, BACKEND).findings
    assert sentence in finding.reason
