"""Faster R-CNN, R-FCN and SegNet of small size, in a dialect made here.

The Caffe of the tests has Proposal and the unpooling, as MaxUnPool; Sophgo's and torchvision have ROIPooling.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torchvision

from caffeforge.generator.schema_folder import SCHEMAS
from caffeforge.runtime.array import Dense
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.caffe_files import read_files
from caffeforge.runtime.errors import ReadError
from caffeforge.runtime.loaded import LoadedNet, load
from tests.docs.backends import build
from tests.e2e import vendor
from tests.e2e.layer_cases import Random, difference
from tests.e2e.test_ssd import net
from tests.e2e.vendor import Floats
from tests.real_caffe.witness import Witness

FIELDS = """message LayerParameter {
  optional PSROIPoolingParameter psroi_pooling_param = 149;
  optional MaxUnPoolParameter max_unpool_param = 506;
  optional ProposalParameter proposal_param = 1000;
  optional ROIPoolingParameter roi_pooling_param = 8266711;
"""
MESSAGES = """
message PSROIPoolingParameter {
  required float spatial_scale = 1;
  required int32 output_dim = 2;
  required int32 group_size = 3;
}
message MaxUnPoolParameter { optional uint32 dst_h = 1; optional uint32 dst_w = 2; }
message ProposalParameter {
  optional uint32 feat_stride = 1 [default = 16];
  optional uint32 base_size = 2 [default = 16];
  optional uint32 min_size = 3 [default = 16];
  repeated float ratio = 4;
  repeated float scale = 5;
  optional uint32 pre_nms_topn = 6 [default = 6000];
  optional uint32 post_nms_topn = 7 [default = 300];
  optional float nms_thresh = 8 [default = 0.7];
}
message ROIPoolingParameter {
  optional uint32 pooled_h = 1 [default = 0];
  optional uint32 pooled_w = 2 [default = 0];
  optional float spatial_scale = 3 [default = 1];
}
"""
MAPPING = """backend: vendor
extends: ssd
types:
  MaxUnPool: max_unpool_param
  ROIPooling: roi_pooling_param
layers:
  MaxUnPool:
    let:
      flat: "bottoms[0].shape[:2] + [dst_h * dst_w]"
    rewrite: |
      places = Cast(Reshape(bottoms[1], shape=[0, 0, -1]), to=element_type("int64"))
      values = ScatterElements(full(flat, 0.0), places, Reshape(bottoms[0], shape=[0, 0, -1]), axis=2)
      tops[0] = Reshape(values, shape=[0, 0, dst_h, dst_w])
  ROIPooling:
    rewrite: tops[0] = MaxRoiPool(*bottoms, pooled_shape=[pooled_h, pooled_w], spatial_scale=spatial_scale)
"""
INPUTS = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 72 dim: 104 } } }
layer { name: "im_info" type: "Input" top: "im_info" input_param { shape { dim: 1 dim: 3 } } }
"""
# Ratios whose anchors have whole sides: the Caffe of the tests rounds others in another way.
RPN = """
layer { name: "c1" type: "Convolution" bottom: "data" top: "c1"
  convolution_param { num_output: 8 kernel_size: 3 pad: 1 stride: 2 } }
layer { name: "r1" type: "ReLU" bottom: "c1" top: "c1" }
layer { name: "c2" type: "Convolution" bottom: "c1" top: "c2"
  convolution_param { num_output: 12 kernel_size: 3 pad: 1 stride: 4 } }
layer { name: "r2" type: "ReLU" bottom: "c2" top: "c2" }
layer { name: "rpn" type: "Convolution" bottom: "c2" top: "rpn"
  convolution_param { num_output: 8 kernel_size: 3 pad: 1 } }
layer { name: "score" type: "Convolution" bottom: "rpn" top: "score"
  convolution_param { num_output: 12 kernel_size: 1 } }
layer { name: "box" type: "Convolution" bottom: "rpn" top: "box"
  convolution_param { num_output: 24 kernel_size: 1 } }
layer { name: "two" type: "Reshape" bottom: "score" top: "two"
  reshape_param { shape { dim: 0 dim: 2 dim: -1 dim: 0 } } }
layer { name: "prob" type: "Softmax" bottom: "two" top: "prob" }
layer { name: "back" type: "Reshape" bottom: "prob" top: "back"
  reshape_param { shape { dim: 0 dim: 12 dim: -1 dim: 0 } } }
layer { name: "rois" type: "Proposal" bottom: "back" bottom: "box" bottom: "im_info" top: "rois" top: "own"
  proposal_param { feat_stride: 8 base_size: 8 min_size: 6
    ratio: 0.25 ratio: 1 ratio: 4 scale: SMALL scale: LARGE
    pre_nms_topn: 150 post_nms_topn: 20 nms_thresh: 0.7 } }
"""
HEADS = """
layer { name: "pooled" type: "ROIPooling" bottom: "c2" bottom: "rois" top: "pooled"
  roi_pooling_param { pooled_h: 3 pooled_w: 4 spatial_scale: 0.125 } }
layer { name: "fc" type: "InnerProduct" bottom: "pooled" top: "fc" inner_product_param { num_output: 10 } }
layer { name: "rf" type: "ReLU" bottom: "fc" top: "fc" }
layer { name: "drop" type: "Dropout" bottom: "fc" top: "fc" }
layer { name: "cls" type: "InnerProduct" bottom: "fc" top: "cls" inner_product_param { num_output: 5 } }
layer { name: "cls_prob" type: "Softmax" bottom: "cls" top: "cls_prob" }
layer { name: "maps" type: "Convolution" bottom: "c2" top: "maps"
  convolution_param { num_output: 45 kernel_size: 1 } }
layer { name: "bins" type: "PSROIPooling" bottom: "maps" bottom: "rois" top: "bins"
  psroi_pooling_param { spatial_scale: 0.125 output_dim: 5 group_size: 3 } }
layer { name: "vote" type: "Pooling" bottom: "bins" top: "vote"
  pooling_param { pool: AVE kernel_size: 3 stride: 3 } }
"""
SIZES = {
    "c1": (8, 3, 3, 3),
    "c2": (12, 8, 3, 3),
    "rpn": (8, 12, 3, 3),
    "score": (12, 8, 1, 1),
    "box": (24, 8, 1, 1),
    "fc": (10, 144),
    "cls": (5, 10),
    "maps": (45, 12, 1, 1),
}


@pytest.fixture(scope="module")
def dialect(tmp_path_factory: pytest.TempPathFactory) -> Backend:
    proto = (SCHEMAS / "ssd" / "caffe.proto").read_text(encoding="utf-8")
    folder = tmp_path_factory.mktemp("regions")
    return build(folder, MAPPING, proto.replace("message LayerParameter {", FIELDS) + MESSAGES)


def weights() -> dict[str, list[Floats]]:
    random = Random(0)
    return {
        name: [
            random.normal(*sizes, scale=float(1.2 / np.prod(sizes[1:]) ** 0.5)),
            random.normal(sizes[0], scale=0.2),
        ]
        for name, sizes in SIZES.items()
    }


def inputs() -> dict[str, Floats]:
    return {"data": Random(1).normal(1, 3, 72, 104), "im_info": np.array([[72, 104, 1]], np.float32)}


def loaded(folder: Path, dialect: Backend) -> LoadedNet:
    """Return the whole detector, read by us; its weights are put in, as bvlc's schema lacks its layers."""
    path = folder / "net.prototxt"
    path.write_text(f"name: 'detector'\n{INPUTS}{RPN.replace('SMALL', '2').replace('LARGE', '4')}{HEADS}")
    return _with_weights(path, dialect)


def _with_weights(path: Path, dialect: Backend) -> LoadedNet:
    net = read_files(path, None, dialect)
    for layer in net.layers:
        layer.blobs = tuple(Dense(blob) for blob in weights().get(layer.name, ()))
    return LoadedNet(net, dialect)


def test_regions_are_those_of_caffe(caffe: Witness, dialect: Backend, tmp_path: Path) -> None:
    """That Caffe's scales are sides in pixels; rows behind those found are left over."""
    found = loaded(tmp_path, dialect).run(inputs(), ["rois", "own", "prob"])
    text = f"{INPUTS}{RPN.replace('SMALL', '16').replace('LARGE', '32')}"
    known = "\n".join(line for line in text.partition('layer { name: "rois"')[0].splitlines())
    files = vendor.write(
        tmp_path, known, {k: v for k, v in weights().items() if k not in ("fc", "cls", "maps")}
    )
    files[0].write_text(text)
    expected = caffe.run(*files, inputs(), ["rois", "own", "prob"])
    assert difference(found["prob"], expected["prob"]) < 1e-5
    assert 8 < len(found["rois"]) <= 20
    for name in ("rois", "own"):
        assert difference(found[name], expected[name][: len(found[name])]) < 1e-5
    assert found["own"].shape == found["rois"].shape[:1] and (np.diff(found["own"]) <= 0).all()


def test_regions_of_two_images_are_those_of_caffe(caffe: Witness, dialect: Backend, tmp_path: Path) -> None:
    """One row tells the size of both; py-faster-rcnn's own layer takes one image only."""
    random = np.random.default_rng(0)
    given: dict[str, Floats] = {
        "prob": random.uniform(0, 1, (2, 12, 7, 9)).astype(np.float32),
        "deltas": random.normal(0, 0.2, (2, 24, 7, 9)).astype(np.float32),
        "im_info": np.array([[56, 72, 1]], np.float32),
    }
    text = net(
        'name: "rois" type: "Proposal" bottom: "prob" bottom: "deltas" bottom: "im_info" '
        'top: "rois" top: "own" '
        "proposal_param { feat_stride: 8 base_size: 8 min_size: 6 ratio: 0.25 ratio: 1 ratio: 4 "
        "scale: SMALL scale: LARGE pre_nms_topn: 150 post_nms_topn: 6 nms_thresh: 0.5 }",
        **{name: array.shape for name, array in given.items()},
    )
    files = vendor.write(tmp_path, "name: 'none'", {})
    files[0].write_text(text.replace("SMALL", "16").replace("LARGE", "32"))
    expected = caffe.run(*files, given, ["rois", "own"])
    files[0].write_text(text.replace("SMALL", "2").replace("LARGE", "4"))
    found = load(files[0], None, dialect).run(given, ["rois", "own"])
    assert found["rois"][:, 0].tolist() == [0] * 6 + [1] * 6
    for name in ("rois", "own"):
        assert difference(found[name], expected[name]) < 1e-5
    files[0].write_text(files[0].read_text().replace("dim: 1 dim: 3", "dim: 2 dim: 3"))
    with pytest.raises(ReadError, match="one row tells the size of all images"):
        load(files[0], None, dialect)


def test_a_second_top_of_regions_may_be_left_out(dialect: Backend, tmp_path: Path) -> None:
    both = loaded(tmp_path, dialect).run(inputs(), ["rois"])["rois"]
    path = tmp_path / "net.prototxt"
    path.write_text(path.read_text().replace(' top: "own"', ""))
    np.testing.assert_array_equal(_with_weights(path, dialect).run(inputs(), ["rois"])["rois"], both)


def test_the_head_of_faster_rcnn_is_that_of_a_caffe_with_roi_pooling(
    sophgo: Witness, dialect: Backend, tmp_path: Path
) -> None:
    """Real Caffe is given the map and the regions that we find, in four dimensions as its own are."""
    names = ["pooled", "fc", "cls_prob"]
    found = loaded(tmp_path, dialect).run(inputs(), ["c2", "rois", *names])
    given = {"c2": found["c2"], "rois": found["rois"][None, None]}
    text = "".join(
        f'layer {{ name: "{name}" type: "Input" top: "{name}" input_param {{ shape {{ '
        f"{' '.join(f'dim: {size}' for size in array.shape)} }} }} }}\n"
        for name, array in given.items()
    )
    layers = HEADS.partition('layer { name: "maps"')[0]
    files = vendor.write(
        tmp_path, text + "layer {" + layers.split("layer {", 2)[2], {k: weights()[k] for k in ("fc", "cls")}
    )
    files[0].write_text(text + layers)
    expected = sophgo.run(*files, given, names)
    for name in names:
        assert expected[name].std() > 0
        assert difference(found[name], expected[name]) < 1e-5, name


def test_the_heads_pool_what_torchvision_does(dialect: Backend, tmp_path: Path) -> None:
    names = ["c2", "rois", "pooled", "cls_prob", "maps", "bins", "vote"]
    found = loaded(tmp_path, dialect).run(inputs(), names)
    rois = torch.from_numpy(found["rois"])
    pooled = torchvision.ops.roi_pool(torch.from_numpy(found["c2"]), rois, (3, 4), 0.125)
    np.testing.assert_allclose(found["pooled"], pooled.numpy(), rtol=1e-5)
    fc, cls = (weights()[name] for name in ("fc", "cls"))
    hidden = np.maximum(pooled.numpy().reshape(len(rois), -1) @ fc[0].T + fc[1], 0)
    logits = torch.from_numpy(hidden @ cls[0].T + cls[1])
    np.testing.assert_allclose(found["cls_prob"], torch.softmax(logits, 1).numpy(), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found["vote"][:, :, 0, 0], found["bins"].mean((2, 3)), rtol=1e-4, atol=1e-6)
    assert found["cls_prob"].std(0).max() > 1e-3  # regions differ


def test_shapes_are_changed_behind_regions_that_only_a_run_counts(dialect: Backend, tmp_path: Path) -> None:
    """The witness is NumPy. A size that stays is copied, one that moves is what is left."""
    shapes = {
        "row": ((1, -1), "shape { dim: 1 dim: -1 }"),
        "pairs": ((-1, 2), "shape { dim: -1 dim: 2 }"),
        "kept": ((-1, 5, 2), "shape { dim: 0 dim: 5 dim: -1 }"),
        "inner": ((-1, 2, 5), "axis: 1 num_axes: 1 shape { dim: 2 dim: 5 }"),
        "moved": ((1, -1, 10), "axis: 0 num_axes: 0 shape { dim: 1 }"),
    }
    loaded(tmp_path, dialect)
    path = tmp_path / "net.prototxt"
    added = (
        f'layer {{ name: "{name}" type: "Reshape" bottom: "fc" top: "{name}" reshape_param {{ {text} }} }}'
        for name, (_, text) in shapes.items()
    )
    path.write_text("\n".join([path.read_text(), *added]))
    found = _with_weights(path, dialect).run(inputs(), ["fc", *shapes])
    assert len(found["fc"]) > 8
    for name, (shape, _) in shapes.items():
        np.testing.assert_array_equal(found[name], found["fc"].reshape(shape), name)
    path.write_text(path.read_text().replace("dim: 0 dim: 5 dim: -1", "dim: 7 dim: 10"))
    with pytest.raises(ReadError, match=r"\[regions, 10\] has no shape \[7, 10\] from axis 0"):
        _with_weights(path, dialect)


SEGNET = """name: "segnet"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 dim: 14 dim: 18 } } }
layer { name: "c1" type: "Convolution" bottom: "data" top: "c1"
  convolution_param { num_output: 6 kernel_size: 3 pad: 1 } }
layer { name: "r1" type: "ReLU" bottom: "c1" top: "c1" }
layer { name: "p1" type: "Pooling" bottom: "c1" top: "p1" top: "m1"
  pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "c2" type: "Convolution" bottom: "p1" top: "c2"
  convolution_param { num_output: 8 kernel_size: 3 pad: 1 } }
layer { name: "p2" type: "Pooling" bottom: "c2" top: "p2" top: "m2"
  pooling_param { kernel_size: 3 stride: 2 } }
layer { name: "u2" type: "MaxUnPool" bottom: "p2" bottom: "m2" top: "u2"
  max_unpool_param { dst_h: 7 dst_w: 9 } }
layer { name: "d2" type: "Convolution" bottom: "u2" top: "d2"
  convolution_param { num_output: 6 kernel_size: 3 pad: 1 } }
layer { name: "u1" type: "MaxUnPool" bottom: "d2" bottom: "m1" top: "u1"
  max_unpool_param { dst_h: 14 dst_w: 18 } }
layer { name: "d1" type: "Convolution" bottom: "u1" top: "d1"
  convolution_param { num_output: 4 kernel_size: 3 pad: 1 } }
layer { name: "argmax" type: "ArgMax" bottom: "d1" top: "argmax" argmax_param { axis: 1 } }
"""


def test_segnet_unpools_as_caffe_does(caffe: Witness, dialect: Backend, tmp_path: Path) -> None:
    sizes = {"c1": (6, 3), "c2": (8, 6), "d2": (6, 8), "d1": (4, 6)}
    random = Random(5)
    blobs = {
        n: [random.normal(*s, 3, 3, scale=0.3), random.normal(s[0], scale=0.1)] for n, s in sizes.items()
    }
    plain = "".join(f"layer {{{part}" for part in SEGNET.split("layer {")[1:] if "MaxUnPool" not in part)
    files = vendor.write(tmp_path, plain, blobs)  # the schema of bvlc does not know MaxUnPool
    files[0].write_text(SEGNET)
    x = {"data": Random(6).normal(2, 3, 14, 18)}
    names = ["p1", "m1", "u2", "u1", "d1", "argmax"]
    expected, found = caffe.run(*files, x, names), load(*files, dialect).run(x, names)
    for name in names:
        assert expected[name].std() > 0
        assert difference(found[name], expected[name]) < 1e-5, name
