"""Nets that real Caffe refuses: `load` refuses them too; and those that only one of the two takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from caffeforge.runtime import CaffeforgeError, load
from caffeforge.runtime.cli import main
from caffeforge.runtime.errors import ReadError
from tests.e2e import vendor
from tests.e2e.prototxt_cases import Case, Shape, layer, normal
from tests.real_caffe.witness import Witness, WitnessError


def convolution(name: str, param: str, weight: Shape, bias: Shape | None = (4,)) -> Case:
    blobs = [normal("weight", *weight), *([] if bias is None else [normal("bias", *bias)])]
    text = layer("Convolution", f"convolution_param {{ num_output: 4 {param} }}")
    return Case(f"convolution_{name}", text, {"x": (1, 3, 8, 8)}, {"layer": blobs})


def pooling(name: str, param: str, shape: Shape = (1, 2, 7, 7)) -> Case:
    return Case(f"pooling_{name}", layer("Pooling", f"pooling_param {{ {param} }}"), {"x": shape})


def inner_product(name: str, param: str, weight: Shape) -> Case:
    text = layer("InnerProduct", f"inner_product_param {{ num_output: 4 bias_term: false {param} }}")
    return Case(f"inner_product_{name}", text, {"x": (2, 3, 4)}, {"layer": [normal("weight", *weight)]})


def two_bottoms(name: str, kind: str, param: str, second: Shape) -> Case:
    text = layer(kind, param, bottoms="x other")
    return Case(f"{kind}_{name}".lower(), text, {"x": (2, 3, 4), "other": second})


def one_bottom(name: str, kind: str, param: str = "", tops: str = "y", *blobs: vendor.Floats) -> Case:
    return Case(f"{kind}_{name}".lower(), layer(kind, param, tops=tops), {"x": (2, 3, 4)}, {"layer": blobs})


ONE = np.ones(1, np.float32)

REFUSED = (
    convolution("group_does_not_divide", "kernel_size: 3 group: 2", (4, 1, 3, 3)),
    convolution("two_kernels", "kernel_size: 3 kernel_h: 3 kernel_w: 3", (4, 3, 3, 3)),
    convolution("two_pads", "kernel_size: 3 pad: 2 pad_h: 1 pad_w: 1", (4, 3, 3, 3)),
    convolution("two_pads_one_zero", "kernel_size: 3 pad: 2 pad_h: 0 pad_w: 0", (4, 3, 3, 3)),
    convolution("two_strides", "kernel_size: 3 stride: 2 stride_h: 1 stride_w: 1", (4, 3, 3, 3)),
    convolution("three_sizes", "kernel_size: [3, 3, 3]", (4, 3, 3, 3)),
    convolution("no_kernel", "", (4, 3, 3, 3)),
    convolution("kernel_larger_than_input", "kernel_size: 9", (4, 3, 9, 9)),
    convolution("weights_with_axes_swapped", "kernel_h: 3 kernel_w: 2", (4, 3, 2, 3)),
    convolution("flat_weights", "kernel_size: 3", (4, 27)),
    convolution("bias_missing", "kernel_size: 3", (4, 3, 3, 3), None),
    convolution("bias_of_other_size", "kernel_size: 3", (4, 3, 3, 3), (3,)),
    pooling("two_kernels", "kernel_size: 3 kernel_h: 3 kernel_w: 3"),
    pooling("only_kernel_h", "kernel_h: 3"),
    pooling("only_pad_w", "kernel_size: 3 pad_w: 1"),
    pooling("two_pads", "kernel_size: 3 pad: 1 pad_h: 0 pad_w: 0"),
    pooling("only_stride_h", "kernel_size: 3 stride_h: 2"),
    pooling("stride_zero", "kernel_size: 2 stride: 0"),
    pooling("pad_as_large_as_kernel", "kernel_size: 2 pad: 2"),
    pooling("global_with_kernel", "global_pooling: true kernel_size: 2"),
    pooling("global_with_stride", "global_pooling: true stride: 2"),
    pooling("three_axes", "kernel_size: 2", (2, 7, 7)),
    inner_product("of_other_depth", "", (4, 11)),
    inner_product("transposed_weights", "", (12, 4)),
    inner_product("weights_not_transposed", "transpose: true", (4, 12)),
    two_bottoms("other_sizes", "Concat", "concat_param { axis: 1 }", (2, 3, 5)),
    two_bottoms("other_rank", "Concat", "", (2, 3)),
    two_bottoms("two_axes", "Concat", "concat_param { axis: 1 concat_dim: 1 }", (2, 3, 4)),
    two_bottoms("one_coefficient", "Eltwise", "eltwise_param { coeff: 1 }", (2, 3, 4)),
    two_bottoms(
        "product_with_coeff", "Eltwise", "eltwise_param { coeff: [1, 2] operation: PROD }", (2, 3, 4)
    ),
    two_bottoms("other_sizes", "Bias", "", (4,)),
    two_bottoms("too_many_axes", "Scale", "scale_param { axis: 1 }", (3, 4, 1)),
    one_bottom("uneven", "Slice", "", "a b"),
    one_bottom("point_beyond", "Slice", "slice_param { slice_point: 3 }", "a b"),
    one_bottom("two_axes", "Slice", "slice_param { axis: 2 slice_dim: 2 }", "a b"),
    one_bottom("other_count", "Reshape", "reshape_param { shape { dim: 7 dim: -1 } }"),
    one_bottom("two_unknowns", "Reshape", "reshape_param { shape { dim: -1 dim: -1 } }"),
    one_bottom("axis_outside", "Softmax", "softmax_param { axis: 3 }"),
    one_bottom("other_channels", "BatchNorm", "", "y", normal("m", 4), normal("v", 4), ONE),
    one_bottom("two_blobs", "BatchNorm", "", "y", normal("m", 3), normal("v", 3)),
    one_bottom("other_size", "Scale", "", "y", normal("s", 4)),
    one_bottom("no_bias", "Scale", "scale_param { bias_term: true }", "y", normal("s", 3)),
    Case("two_writers", layer("ReLU") + layer("ReLU", name="again"), {"x": (2, 3)}),
    Case("unknown_bottom", layer("ReLU", bottoms="z"), {"x": (2, 3)}),
)

SHIFT = layer("Power", "power_param { shift: 5 }", "y", "y", "shift")
READ = layer("Power", "power_param { scale: 2 }", "x", "z", "read")

# Where Caffe computes something that nobody wants.
REFUSED_HERE = (
    pooling("window_outside", "kernel_size: 1 stride: 3", (1, 2, 8, 8)),  # -FLT_MAX
    one_bottom("reversed", "Flatten", "flatten_param { axis: 2 end_axis: 1 }"),  # a new axis of one
    # x is y, so that what reads x gets the shifted values
    Case("in_place_after_flatten", layer("Flatten") + SHIFT + READ, {"x": (2, 3, 4)}),
    Case("in_place_after_split", layer("Split", tops="y other") + SHIFT, {"x": (2, 3)}),
)

# Near to those, but harmless.
ACCEPTED = (
    Case("in_place_after_flatten_and_last", READ + layer("Flatten") + SHIFT, {"x": (2, 3, 4)}),
    Case("in_place_after_slice", layer("Slice", tops="y other") + SHIFT + READ, {"x": (2, 4)}),
    Case(
        "dropout_in_place_after_flatten",
        layer("Flatten") + layer("Dropout", "", "y", "y", "drop") + READ,
        {"x": (2, 3, 4)},
    ),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_both_refuse(case: Case, caffe: Witness, tmp_path: Path) -> None:
    prototxt, caffemodel = vendor.write(tmp_path, case.text, case.weights())
    with pytest.raises(CaffeforgeError):
        load(prototxt, caffemodel)
    with pytest.raises(WitnessError, match="exit status -6"):
        caffe.run(prototxt, caffemodel, case.feed())


@pytest.mark.parametrize("case", REFUSED_HERE, ids=lambda case: case.name)
def test_only_load_refuses(case: Case, caffe: Witness, tmp_path: Path) -> None:
    prototxt, caffemodel = vendor.write(tmp_path, case.text, case.weights())
    with pytest.raises(CaffeforgeError):
        load(prototxt, caffemodel)
    assert caffe.run(prototxt, caffemodel, case.feed())


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.name)
def test_both_compute_the_same(case: Case, caffe: Witness, tmp_path: Path) -> None:
    prototxt, caffemodel = vendor.write(tmp_path, case.text, {})
    expected = caffe.run(prototxt, caffemodel, case.feed())
    found = load(prototxt, caffemodel).run(case.feed())
    assert set(found) == set(expected)
    for name, array in found.items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-6, err_msg=name)


def test_a_refused_layer_is_told_with_its_line(tmp_path: Path) -> None:
    text = 'layer { name: "d" type: "Input" top: "d" input_param { shape { dim: 1 dim: 2 } } }\n'
    (tmp_path / "net.prototxt").write_text(
        f'# two layers\n{text}layer {{ name: "r" type: "ReLU" bottom: "x" }}'
    )
    with pytest.raises(ReadError) as caught:
        load(tmp_path / "net.prototxt")
    assert caught.value.where == f"{tmp_path}/net.prototxt:3: layer r (ReLU)"
    assert caught.value.what == "bottom x is not computed by any layer before"


def test_nets_of_digits_are_read_by_their_stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "train_val.prototxt"
    file.write_text(
        'layer { name: "d" type: "Input" top: "d" input_param { shape { dim: 1 dim: 2 } } }\n'
        'layer { name: "r" type: "ReLU" bottom: "d" top: "r" exclude { stage: "deploy" } }\n'
        'layer { name: "s" type: "Sigmoid" bottom: "d" top: "s" include { stage: "deploy" min_level: 1 } }\n'
    )
    assert load(file).outputs == ["r"]
    assert load(file, level=1, stages=["deploy"]).outputs == ["s"]
    for command, more in (("run", ["--random"]), ("layers", []), ("dump", [])):
        assert (
            main([command, str(file), "--backend", "bvlc", "--stage", "deploy", "--level", "1", *more]) == 0
        )
        said = capsys.readouterr().out
        assert "Sigmoid" in said or said.startswith("s: 1x2")
