"""The traps of reading a net by another vendor's schema: refused, reported or read right, never silent.

Each net is written by protobuf under the schema of one vendor and read by the backend of another.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from types import ModuleType

import numpy as np
import pytest
import torch
from torch.nn import functional

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.caffe_files import read_files
from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.identify import read_otherwise
from caffeforge.runtime.loaded import LoadedNet
from tests.generator.dialects import NAMES, backend, proto
from tests.generator.judge import Judge

pytestmark = pytest.mark.skipif(not NAMES, reason="needs ../shared/dialects")

INPUT = (
    'layer {{ name: "{name}" type: "Input" top: "{name}" input_param {{ shape {{ dim: [{shape}] }} }} }}\n'
)
OLD_INPUT = 'input: "{name}" input_shape {{ dim: [{shape}] }}\n'
LAYER = 'layer {{ name: "y" type: "{kind}" {bottoms} top: "y" {parameters} }}\n'


@cache
def judge(dialect: str) -> Judge:
    return Judge(proto(dialect))


@cache
def reader(dialect: str) -> ModuleType:
    return backend(dialect, Path(mkdtemp(prefix="cross-")))


@dataclass(frozen=True)
class Trap:
    """A layer that one vendor's Caffe writes and another's reads, with the shapes of what it takes."""

    by: str
    to: str
    kind: str
    parameters: str
    bottoms: tuple[tuple[int, ...], ...] = ((1, 4, 6, 6),)
    blobs: tuple[tuple[int, ...], ...] = ()

    def __str__(self) -> str:
        return f"{self.by} to {self.to}: {self.kind} {self.parameters}"


def written(trap: Trap, folder: Path) -> tuple[Path, Path]:
    """Write a net of one layer, text and binary, by a vendor's own schema."""
    names = [f"x{place}" for place in range(len(trap.bottoms))]
    form = OLD_INPUT if "input" in judge(trap.by).net_parameter.DESCRIPTOR.fields_by_name else INPUT
    text = "".join(
        form.format(name=name, shape=", ".join(map(str, shape)))
        for name, shape in zip(names, trap.bottoms, strict=True)
    )
    read = " ".join(f'bottom: "{name}"' for name in names)
    text += LAYER.format(kind=trap.kind, bottoms=read, parameters=trap.parameters)
    (folder / "net.prototxt").write_text(text)
    net = judge(trap.by).text(folder / "net.prototxt")
    for seed, shape in enumerate(trap.blobs):
        blob = net.layer[-1].blobs.add()
        blob.shape.dim.extend(shape)
        blob.data.extend(np.random.default_rng(seed).uniform(0.5, 1.5, shape).ravel().tolist())
    (folder / "net.caffemodel").write_bytes(net.SerializeToString())
    return folder / "net.prototxt", folder / "net.caffemodel"


def given(trap: Trap) -> dict[str, NDArray]:
    """Return numbers for the inputs; the second of a layer of regions are boxes."""
    random = np.random.default_rng(0)
    inputs = [random.standard_normal(shape).astype(np.float32) for shape in trap.bottoms]
    if trap.kind.startswith("ROI"):
        inputs[1] = np.array([[0, 1, 1, 4, 5]], np.float32)
    return {f"x{place}": array for place, array in enumerate(inputs)}


NCHW = (1, 4, 6, 6)
ROIS = (NCHW, (1, 5))
PAIR = (NCHW, NCHW)
CHANNEL = (4,)
EACH = (1, 4, 1, 1)
POOL = "pooling_param {{ kernel_size: 3 stride: 2 {} }}"
FLOOR, CEIL, NO_CEIL = (
    POOL.format(word) for word in ("round_mode: FLOOR", "ceil_mode: true", "ceil_mode: false")
)
WINDOW = "convolution_param { num_output: 2 bias_term: false kernel_h: 3 kernel_w: 3 hole_h: 2 hole_w: 2 }"
TRAPS = [
    # The number 13 of a pool means nine things, 14 four, and both names of the rounding stand for opposites.
    *(
        Trap("bvlc", to, "Pooling", FLOOR)
        for to in (
            "openvino_dev_2022.3",
            "ascend_ge",
            "nart_caffe",
            "cambricon",
            "synopsys",
            "sophgo_caffe",
            "ssd",
        )
    ),
    *(Trap("openvino_dev_2022.3", to, "Pooling", CEIL) for to in ("bvlc", "nart_caffe", "sophgo_caffe")),
    *(Trap("opencv_4.5.5", to, "Pooling", NO_CEIL) for to in ("bvlc", "nart_caffe", "thead", "inisis")),
    Trap("nart_caffe", "ascend_ge", "Pooling", NO_CEIL),
    Trap("ascend_ge", "nart_caffe", "Pooling", FLOOR),
    Trap("nart_caffe", "bvlc", "Pooling", POOL.format("torch_padding: true")),
    Trap("sophgo_caffe", "ssd", "Pooling", "pooling_param { kernel_size: 3 avg_include_pad: false }"),
    Trap("sophgo_caffe", "bvlc", "Pooling", "pooling_param { kernel_size: 3 avg_include_pad: true }"),
    Trap("sophgo_caffe", "bvlc", "Pooling", "pooling_param { kernel_size: 3 yolo: true }"),
    # One name and one number with another meaning or default.
    Trap("ascend_ge", "sophgo_caffe", "Reorg", "reorg_param { stride: 2 }"),
    Trap("sophgo_caffe", "ascend_ge", "Reorg", "reorg_param { stride: 2 reverse: true }"),
    Trap("ascend_ge", "sophgo_caffe", "ROIPooling", "roi_pooling_param { pooled_h: 2 pooled_w: 2 }", ROIS),
    Trap("sophgo_caffe", "ascend_ge", "ROIPooling", "roi_pooling_param { pooled_h: 2 pooled_w: 2 }", ROIS),
    Trap("opencv_4.5.5", "ssd", "PriorBox", "prior_box_param { min_size: 9 }", PAIR),
    Trap("ssd", "opencv_4.5.5", "PriorBox", "prior_box_param { min_size: 9 }", PAIR),
    Trap("ssd", "ppq", "PriorBox", "prior_box_param { min_size: 2 min_size: 3 }", PAIR),
    Trap("ssd", "cambricon", "PriorBox", "prior_box_param { min_size: 9 }", PAIR),
    Trap("mobilenet_yolo", "segnet", "Upsample", "upsample_param { scale: 3 }"),
    Trap("mobilenet_yolo", "opencv_4.5.5", "Upsample", "upsample_param { scale: 2 }"),
    Trap("mobilenet_yolo", "ascend_ge", "Upsample", "upsample_param { scale: 3 }"),
    Trap("ascend_ge", "sophgo_caffe", "Upsample", "upsample_param { stride: 2 }"),
    Trap("sophgo_caffe", "cambricon", "Upsample", "upsample_param { scale: 2 }"),
    Trap("thead", "sophgo_caffe", "Upsample", "upsample_param { scale: 2 }"),
    # Names and numbers that other vendors give to other layers.
    Trap("ssd", "armchina_compass", "Permute", "permute_param { order: [0, 2, 3, 1] }"),
    Trap("ssd", "nart_caffe", "Permute", "permute_param { order: [0, 2, 3, 1] }"),
    Trap("nart_caffe", "ssd", "Transpose", "transpose_param { dim: [0, 2, 3, 1] }"),
    Trap("ssd", "armchina_compass", "PriorBox", "prior_box_param { min_size: 9 }", PAIR),
    Trap("ssd", "nart_caffe", "Normalize", "norm_param { across_spatial: false }", blobs=(CHANNEL,)),
    Trap("nart_caffe", "ppq", "ShuffleChannel", "shuffle_channel_param { group: 2 }"),
    Trap("ppq", "nart_caffe", "ChannelShuffle", "channel_shuffle_param { group: 2 }"),
    Trap("acuitylite", "armchina_compass", "Axpy", "Axpy_param { }", ((1, 4), NCHW, NCHW)),
    Trap("nart_caffe", "synopsys", "Pad", 'pad_param { mode: "edge" pads: [0, 0, 1, 1, 0, 0, 1, 1] }'),
    Trap("synopsys", "nart_caffe", "Pad", "pad_param { paddings: [0, 0, 0, 0, 1, 1, 1, 1] }"),
    Trap("ppq", "nart_caffe", "ReflectionPad", "pad_param { pad_h: 1 pad_w: 2 }"),
    Trap(
        "sophgo_caffe", "synopsys", "MatMul", "matmul_param { dim_1: 4 dim_2: 2 dim_3: 4 }", ((4, 2), (4, 2))
    ),
    Trap("nart_caffe", "sophgo_caffe", "MatMul", "matmul_param { mode: NT }", ((4, 2), (4, 2))),
    Trap(
        "nart_caffe",
        "sophgo_caffe",
        "BN",
        "bn_param { var_eps: 0.5 moving_average: true }",
        blobs=(EACH,) * 4,
    ),
    Trap("sophgo_caffe", "nart_caffe", "BN", "bn_param { eps: 0.5 }", blobs=(EACH,) * 4),
    Trap("segnet", "sophgo_caffe", "BN", "bn_param { bn_mode: INFERENCE }", blobs=(EACH,) * 2),
    Trap("sophgo_caffe", "segnet", "BN", "bn_param { eps: 0.5 }", blobs=(EACH,) * 4),
    # Layers of Caffe's own whose numbers SenseTime and others gave to other parameters.
    Trap("bvlc", "acuitylite", "Clip", "clip_param { min: 0 max: 6 }"),
    Trap("bvlc", "nart_caffe", "PReLU", "prelu_param { channel_shared: true }", blobs=((1,),)),
    Trap("bvlc", "nart_caffe", "Tile", "tile_param { tiles: 2 }"),
    Trap("bvlc", "nart_caffe", "BatchNorm", "batch_norm_param { eps: 0.5 }", blobs=(CHANNEL, CHANNEL, (1,))),
    Trap("bvlc", "ppq", "Scale", "scale_param { axis: 1 }", blobs=(CHANNEL,)),
    Trap("bvlc", "ssd", "Swish", "swish_param { beta: 2 }"),
    Trap("nart_caffe", "bvlc", "Convolution", WINDOW, blobs=((2, 4, 3, 3),)),
    Trap(
        "bvlc",
        "nart_caffe",
        "Convolution",
        WINDOW.replace("hole_h: 2 hole_w: 2", "dilation: 2"),
        blobs=((2, 4, 3, 3),),
    ),
    Trap(
        "bvlc",
        "nart_caffe",
        "Convolution",
        "convolution_param { num_output: 2 bias_term: false kernel_size: [3, 5] }",
        blobs=((2, 4, 3, 5),),
    ),
]


def read(dialect: str, trap: Trap, *files: Path) -> NDArray | None:
    """Return what a dialect reads in the files, computed; None if it refuses them with a sentence."""
    try:
        net = read_files(files[0], files[1] if len(files) > 1 else None, reader(dialect).BACKEND)
        return LoadedNet(net, reader(dialect).BACKEND).run(given(trap))["y"]
    except CaffeforgeError as error:
        assert str(error)
        return None


@pytest.mark.parametrize("trap", TRAPS, ids=str)
def test_a_net_of_another_vendor_is_read_alike_or_refused(trap: Trap, tmp_path: Path) -> None:
    files = written(trap, tmp_path)
    found = read(trap.to, trap, *files)
    if found is not None:
        right = read(trap.by, trap, *files)
        assert right is not None
        np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("trap", TRAPS, ids=str)
def test_a_lone_caffemodel_of_another_vendor_is_read_alike_refused_or_told(
    trap: Trap, tmp_path: Path
) -> None:
    _, caffemodel = written(trap, tmp_path)
    found, right = read(trap.to, trap, caffemodel), read(trap.by, trap, caffemodel)
    if found is not None and (right is None or not np.array_equal(found, right)):
        assert read_otherwise(caffemodel, reader(trap.to).BACKEND, [reader(trap.by).BACKEND])


@pytest.mark.parametrize("to", ["openvino_dev_2022.3", "ascend_ge", "nart_caffe"])
def test_a_pool_rounded_down_is_never_read_as_one_rounded_up(to: str, tmp_path: Path) -> None:
    prototxt, caffemodel = written(Trap("bvlc", to, "Pooling", FLOOR), tmp_path)
    image = torch.randn(1, 4, 6, 6)
    (right,) = reader("bvlc").load(prototxt, caffemodel).run({"x0": image.numpy()}).values()
    np.testing.assert_array_equal(right, functional.max_pool2d(image, 3, 2).numpy())
    with pytest.raises(CaffeforgeError):  # whether by the text or by the bytes
        reader(to).load(prototxt, caffemodel)


def test_one_name_and_number_with_two_defaults_is_read_by_each_vendors_own() -> None:
    for name, default in (("opencv_4.5.5", True), ("ssd", False)):
        message = judge(name).net_parameter.DESCRIPTOR.file.message_types_by_name["PriorBoxParameter"]
        assert message.fields_by_name["clip"].default_value is default
        source = Path(reader(name).__file__ or "").with_name("read.py").read_text(encoding="utf-8")
        assert f"clip = param.clip if param.clip is not None else {default}" in source


def test_a_pool_of_two_minds_is_refused(tmp_path: Path) -> None:
    both = POOL.format("round_mode: FLOOR ceil_mode: true")
    prototxt, caffemodel = written(Trap("ascend_ge", "ascend_ge", "Pooling", both), tmp_path)
    with pytest.raises(CaffeforgeError, match="say different things"):
        reader("ascend_ge").load(prototxt, caffemodel)
