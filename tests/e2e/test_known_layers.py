"""Layers of schemas/known_layers.yaml compute what their sources do, and ops are written as these layers."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest

from caffeforge.generated import hub
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.loaded import load
from tests.docs.backends import application, build, written
from tests.e2e import flow_layer_cases, sensetime_layer_cases, vendor_layer_cases
from tests.e2e.known_formulas import KERNEL, A, C, Floats, X
from tests.e2e.known_layer_cases import CASES as COMMON
from tests.e2e.known_layer_cases import Case
from tests.generator.judge import Judge
from tests.generator.known import ENTRIES, mapping, packs, proto

CASES = [*COMMON, *vendor_layer_cases.CASES, *sensetime_layer_cases.CASES, *flow_layer_cases.CASES]
EXAMPLES = [(known.id.text, text.text) for known in ENTRIES for text in known.example]
WRITTEN = [(id, text) for id, text in EXAMPLES if not text.startswith("caffe.")]


@cache
def backend(index: int) -> tuple[Backend, Judge]:
    """Return a backend that has the entries of a pack, and protobuf under its schema."""
    pack = packs()[index]
    return build(Path(mkdtemp(prefix="known-")), mapping(pack), proto(pack)), Judge(proto(pack))


def having(id: str) -> tuple[Backend, Judge]:
    """Return the backend that has an entry."""
    return backend(next(n for n, pack in enumerate(packs()) if id in [known.id.text for known in pack]))


def computed(case: Case, folder: Path) -> Floats:
    """Return what a layer gives that protobuf wrote under its schema."""
    found, judge = having(case.id)
    names = [f"x{index}" for index in range(len(case.bottoms))]
    text = ""
    for name, bottom in zip(names, case.bottoms, strict=True):
        shape = f"input_param {{ shape {{ dim: {[*bottom.shape]} }} }}"
        text += f'layer {{ name: "{name}" type: "Input" top: "{name}" {shape} }}\n'
    read = " ".join(f'bottom: "{name}"' for name in names)
    (folder / "net.prototxt").write_text(f'{text}layer {{ name: "y" {read} top: "y" {case.layer} }}\n')
    net = judge.text(folder / "net.prototxt")
    for array in case.blobs:
        blob = net.layer[-1].blobs.add()
        blob.shape.dim.extend(array.shape)
        blob.data.extend(array.ravel().tolist())
    (folder / "net.caffemodel").write_bytes(net.SerializeToString())
    loaded = load(folder / "net.prototxt", folder / "net.caffemodel", found)
    return np.asarray(loaded.run(dict(zip(names, case.bottoms, strict=True)))["y"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.id}: {case.layer}")
def test_a_layer_computes_what_its_source_does(case: Case, tmp_path: Path) -> None:
    np.testing.assert_allclose(computed(case, tmp_path), case.expected, rtol=1e-4, atol=1e-5)


def test_every_entry_has_a_case_or_is_tested_with_the_dialect_that_it_is_from() -> None:
    tested = {case.id for case in CASES}
    assert {known.id.text for known in ENTRIES} - tested == {
        "detection_output", "detection_output.plain", "prior_box", "prior_box.single", "proposal",
        "psroi_pooling",
    }  # fmt: skip


@pytest.mark.parametrize(("id", "op"), WRITTEN)
def test_an_op_is_written_as_the_layer_and_read_back(id: str, op: str, tmp_path: Path) -> None:
    found, _ = having(id)
    types = next(known.types for known in ENTRIES if known.id.text == id)
    assert types[0].text in written(found, application(op, dict(hub.OPS)), tmp_path)


@pytest.mark.parametrize(
    ("id", "layer", "sentence"),
    [
        ("bn.segnet", 'type: "BN"', "bn_mode must be INFERENCE"),
        ("depth_to_space", 'type: "DepthToSpace" depth_to_space_param { block_size: 2 }', "must be NCHW"),
        ("interp", 'type: "Interp" interp_param { height: 7 }', "a size or a factor is due"),
        ("interp.sized", 'type: "Interp" interp_param { zoom_factor: 2 }', "readers differ"),
        ("layer_norm", 'type: "LayerNorm"', "elementwise_affine and the number of blobs"),
        ("upsample.stride", 'type: "Upsample" upsample_param { scale: 2 }', "is not known"),
        (
            "upsample.aligned",
            'type: "Upsample" upsample_param { scale: 2 }',
            "nearestneighbor_mode for one bottom",
        ),
        (
            "resize_bilinear",
            'type: "ResizeBilinear" resize_bilinear_param { output_height: 8 }',
            "must be NCHW",
        ),
        (
            "strided_slice",
            'type: "StridedSlice" strided_slice_param { begin: 1 end: 2 }',
            "without axes is not read",
        ),
        ("gather_v2", 'type: "GatherV2"', "two bottoms are due"),
        ("lstm.junhyuk", 'type: "Lstm" lstm_param { num_output: 4 batch_size: 2 }', "three axes is due"),
        ("relu6", 'type: "ReLU6" relu6_param { negative_slope: 0.1 }', "negative_slope must be 0"),
        (
            "pooling.rounding",
            'type: "Pooling" pooling_param { kernel_size: 2 round_mode: FLOOR ceil_mode: true }',
            "say different things",
        ),
    ],
)
def test_what_is_not_known_of_a_layer_is_refused(id: str, layer: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(CaffeforgeError, match=sentence):
        computed(Case(id, layer, (X,), X), tmp_path)


@pytest.mark.parametrize("bottoms", [(A[:1], X, X), (A, X, X[:1])], ids=["factors", "offsets"])
def test_axpy_of_shapes_that_caffe_refuses_is_refused(bottoms: tuple[Floats, ...], tmp_path: Path) -> None:
    with pytest.raises(CaffeforgeError, match="x and y are of one shape, and each image has factors"):
        computed(Case("axpy", 'type: "Axpy"', bottoms, X), tmp_path)


def test_a_size_that_nobody_reads_there_is_refused(tmp_path: Path) -> None:
    layer = 'type: "Convolution" convolution_param { num_output: 8 kernel_h: 3 kernel_w: 2 group: 8 hole: 2 }'
    with pytest.raises(CaffeforgeError, match="hole is not read"):
        computed(Case("convolution.hole", layer, (X,), X, (KERNEL, C[0])), tmp_path)
