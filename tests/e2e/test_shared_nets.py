"""Nets of 39 public repositories: read with all shapes in their dialect, or refused with place and reason.

``python -m tests.e2e.test_shared_nets`` prints the table. Nets of Caffes that are not shipped here are read
as those of Caffe 1.0, which must name what it does not know.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping

import pytest

from caffeforge.runtime.backends import find
from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.hub_from_net import hub_from_net
from caffeforge.runtime.joining import read_text
from tests import checkout

FOLDER = checkout.ROOT.parent / "shared" / "nets"

READ: Mapping[
    str, tuple[str, int]
] = {  # by the repository's owner and file: dialect, and layers for inference
    "Adrian-Yan16/mobilenet_v1_yolov3": ("sophgo", 197),
    "AlfredXiangWu/LightenedCNN_A_deploy": ("bvlc", 22),
    "AlfredXiangWu/LightenedCNN_B_deploy": ("bvlc", 37),
    "Ascend-Huawei/vanillacnn": ("bvlc", 19),
    "Hi-king/deploy": ("bvlc", 6),
    "Cambricon/add": ("cambricon", 3),
    "HyeonwooNoh/fcn-8s-pascal-deploy": ("cambricon", 48),
    "NVIDIA/deploy": ("bvlc", 9),
    "PaddlePaddle/deploy": ("ssd", 76),
    "alexgkendall/segnet_basic_camvid": ("segnet", 31),
    "arrybn/gtsrb": ("bvlc", 13),
    "eric612/mobilenet_yolo_lite_deploy": ("mobilenet_yolo", 61),
    "facebook/alexnet_deploy": ("bvlc", 23),
    "facebook/lenet": ("bvlc", 8),
    "foss-for-synopsys-dwc-arc-processors/DAN_convert_optimized_new": ("synopsys", 96),
    "intel/yolov2_test_performance_dummy": ("sophgo", 97),
    "mrisso/model": ("bvlc", 10),
    "mshabunin/faster_rcnn_zf": ("opencv", 38),
    "openvinotoolkit/deploy": ("openvino", 149),
    "openvinotoolkit/license-plate-recognition-barrier-0001": ("openvino", 43),
    "soeaver/rcnn_deploy_rfcn_coco_air101-merge": ("sophgo", 5),
    "wangxuewen99/FSRCNN_mat": ("bvlc", 15),
    "yahoo/lrcn_word_to_preds": ("bvlc", 5),
    "yuqj1991/mobilenet_yolov3_lite_deploy": ("mobilenet_yolo", 71),
}
REFUSED: Mapping[str, tuple[str, list[str]]] = {  # dialect, and each fault by its line and what is at fault
    # Layers whose meaning no dialect here has: what a detector does with boxes, by values.
    "Ascend/faster_rcnn": ("ascend", ["461 Proposal", "645 FSRDetectionOutput"]),
    "gklz1982/yolo": ("sophgo", ["1111 coords", "1113 biases"]),
    # No nets: an input without shape, prose behind the net, a size that is a word.
    "arrybn/reshape_and_slice_routines": ("opencv", ["2 names 1 inputs and gives 0 input_dim"]),
    "Derteanoo/deploy": ("sophgo", ["26 A", "27 Expected"]),
    "Xilinx/goog": ("bvlc", ["10 224X224_1"]),
    # Layers in Python.
    "peteanderson80/stage1_rpn_train.pt": ("ssd", ["2 Python", "206 Python", "246 smooth_l1_loss_param"]),
    # Caffes that are not shipped here.
    "dicecco1/deploy": (
        "bvlc",
        [
            *("8 XCLProgram", "11 xcl_param", "17 HWCN", "22 hwcn_param", "26 Pad", "31 pad_param"),
            *("37 CPFPConversion", "42 cpfp_conversion_param", "46 OCLCRHWCN", "64 cr_param"),
            *("117 OCLPoolingHWCN", "297 OCLHWCNInnerProduct"),
        ],
    ),
    "dongyf43/deploy": (
        "bvlc",
        ["41 GroupNorm", "46 group_norm_param", "241 Pooling3D", "246 pooling3d_param"],
    ),
    "happynear/normalize_layer_renorm": ("bvlc", ["9 Normalize", "15 normalize_param", "20 ChannelScale"]),
    "lltcggie/noise0_scale2.0x_model": ("bvlc", ["185 CropCenter", "190 crop_center_param", "197 Axpy"]),
    "lwplw/yolov2_tiny_3": ("bvlc", ["408 Region", "413 region_param"]),
    "senlinuc/densenet-res-blstm_deploy": (
        "bvlc",
        [
            *("31 DenseBlock", "36 denseblock_param", "321 Transpose", "326 transpose_param", "348 Lstm"),
            *("353 lstm_param", "366 Reverse", "371 reverse_param", "526 CTCGreedyDecoder"),
        ],
    ),
    "torrvision/TVG_CRFRNN_new_deploy": (
        "bvlc",
        ["603 MultiStageMeanfield", "619 multi_stage_meanfield_param"],
    ),
    "yuqj1991/lp_rec_deploy": ("kendryte", ["1611 CTCGreedyDecoder", "1616 ctc_decoder_param"]),
    "zhanglaplace/sphereface_deploy": ("bvlc", ["8 Flip"]),
}


def files() -> dict[str, str]:
    """Return the nets of the index by owner and the end of the file's name; none where it is missing."""
    if not FOLDER.exists():
        return {}
    with open(FOLDER / "INDEX.tsv", encoding="utf-8") as file:
        names = [row["file"] for row in csv.DictReader(file, delimiter="\t")]
    return {_short(name): name for name in names}


def _short(name: str) -> str:
    owner, _, *rest = re.sub(r"\.prototxt_?$", "", name).split("__")
    return f"{owner}/{rest[-1].removesuffix('.deploy')}"


def outcome(name: str, dialect: str) -> str:
    """Return how many layers have shapes, or the places and reasons of the refusal."""
    path, backend = FOLDER / files()[name], find(dialect)
    try:
        net = read_text(path, backend).net
        hub_from_net(net, backend, seed=0)
    except CaffeforgeError as error:
        return f"{error.where} {error.what}".replace(str(path), "")
    return f"all shapes, {len(net.layers)} layers"


def faults(said: str) -> list[tuple[str, str]]:
    """Return line and reason of each fault in a refusal."""
    lines = said.splitlines()[1:] if " faults" in said.splitlines()[0] else [said]
    found = [re.match(r"\s*:(\d+)(?::\d+)?:? (.*)", line) for line in lines]
    return [(each[1], each[2]) for each in found if each is not None]


needs_nets = pytest.mark.skipif(not FOLDER.exists(), reason="the nets lie beside some checkouts only")


@needs_nets
def test_every_net_is_in_one_of_the_tables() -> None:
    assert sorted(files()) == sorted([*READ, *REFUSED])


@needs_nets
@pytest.mark.parametrize("name", READ)
def test_a_net_is_read_with_all_shapes(name: str) -> None:
    dialect, layers = READ[name]
    assert outcome(name, dialect) == f"all shapes, {layers} layers"


@needs_nets
@pytest.mark.parametrize("name", REFUSED)
def test_a_net_is_refused_with_its_places_and_reasons(name: str) -> None:
    dialect, expected = REFUSED[name]
    said = outcome(name, dialect)
    found = faults(said)
    assert len(found) == len(expected), said
    for (line, what), due in zip(found, expected, strict=True):
        number, _, words = due.partition(" ")
        assert line == number and words in what, said


def main() -> None:
    """Print the table."""
    read = 0
    for name in files():
        dialect = (READ.get(name) or REFUSED[name])[0]
        said = outcome(name, dialect)
        read += said.startswith("all shapes")
        lines = [line.strip() for line in said.splitlines()]
        print(f"{name[:55]:55} {dialect:15} {lines[0][:150]}")
        for line in lines[1:4]:
            print(f"{'':73}{line[:150]}")
    print(f"{read} of {len(files())} nets are read and have all shapes")


if __name__ == "__main__":
    main()
