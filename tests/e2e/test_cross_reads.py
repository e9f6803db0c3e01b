"""The traps of reading a net by another vendor's schema: refused, reported or read right, never silent.

Each net is written by protobuf under the schema of one vendor and read by the backend of another.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from types import ModuleType

import numpy as np
import pytest
import torch
from torch.nn import functional

from caffeforge.runtime.errors import CaffeforgeError
from tests.generator.dialects import NAMES, backend, proto
from tests.generator.judge import Judge

pytestmark = pytest.mark.skipif(not NAMES, reason="needs ../shared/dialects")

INPUT = """
input: "x" input_shape {{ dim: [{shape}] }}
layer {{ name: "y" type: "{kind}" bottom: "x" top: "y" {parameters} }}
"""


@cache
def judge(dialect: str) -> Judge:
    return Judge(proto(dialect))


@cache
def reader(dialect: str) -> ModuleType:
    return backend(dialect, Path(mkdtemp(prefix="cross-")))


def written(
    by: str, kind: str, parameters: str, folder: Path, shape: str = "1, 4, 6, 6"
) -> tuple[Path, Path]:
    """Write a net of one layer, text and binary, by a vendor's own schema."""
    text = INPUT.format(kind=kind, parameters=parameters, shape=shape)
    (folder / "net.prototxt").write_text(text)
    net = judge(by).text(folder / "net.prototxt")
    (folder / "net.caffemodel").write_bytes(net.SerializeToString())
    return folder / "net.prototxt", folder / "net.caffemodel"


TRAPS = [  # written by, read by, layer type, parameters
    (
        "bvlc",
        "openvino_dev_2022.3",
        "Pooling",
        "pooling_param { kernel_size: 3 stride: 2 round_mode: FLOOR }",
    ),
    ("bvlc", "ascend_ge", "Pooling", "pooling_param { kernel_size: 3 stride: 2 round_mode: FLOOR }"),
    ("bvlc", "nart_caffe", "Pooling", "pooling_param { kernel_size: 3 stride: 2 round_mode: FLOOR }"),
    ("sophgo_caffe", "ssd", "Pooling", "pooling_param { kernel_size: 3 avg_include_pad: false }"),
    ("ascend_ge", "sophgo_caffe", "Reorg", "reorg_param { stride: 2 }"),
    ("sophgo_caffe", "ascend_ge", "Reorg", "reorg_param { stride: 2 reverse: true }"),
    ("mobilenet_yolo", "segnet", "Upsample", "upsample_param { scale: 3 }"),
    ("ascend_ge", "sophgo_caffe", "Upsample", "upsample_param { stride: 2 }"),
    ("ssd", "armchina_compass", "Permute", "permute_param { order: [0, 2, 3, 1] }"),
    ("ssd", "nart_caffe", "Permute", "permute_param { order: [0, 2, 3, 1] }"),
    ("nart_caffe", "ssd", "Transpose", "transpose_param { dim: [0, 2, 3, 1] }"),
    ("bvlc", "acuitylite", "Clip", "clip_param { min: 0 max: 6 }"),
    ("bvlc", "nart_caffe", "PReLU", "prelu_param { channel_shared: true }"),
    ("bvlc", "nart_caffe", "Tile", "tile_param { tiles: 2 }"),
    ("bvlc", "ssd", "Swish", "swish_param { beta: 2 }"),
]


@pytest.mark.parametrize(("by", "to", "kind", "parameters"), TRAPS)
def test_a_net_of_another_vendor_is_read_alike_or_refused(
    by: str, to: str, kind: str, parameters: str, tmp_path: Path
) -> None:
    prototxt, caffemodel = written(by, kind, parameters, tmp_path)
    image = np.random.default_rng(0).standard_normal((1, 4, 6, 6)).astype(np.float32)
    right = None
    with suppress(CaffeforgeError):  # its own backend may not know the layer without a mapping
        right = reader(by).load(prototxt, caffemodel).run({"x": image})["y"]
    try:
        found = reader(to).load(prototxt, caffemodel).run({"x": image})["y"]
    except CaffeforgeError as error:
        assert str(error)
    else:
        assert right is not None
        np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("to", ["openvino_dev_2022.3", "ascend_ge", "nart_caffe"])
def test_a_pool_rounded_down_is_never_read_as_one_rounded_up(to: str, tmp_path: Path) -> None:
    parameters = "pooling_param { kernel_size: 3 stride: 2 round_mode: FLOOR }"
    prototxt, caffemodel = written("bvlc", "Pooling", parameters, tmp_path)
    image = torch.randn(1, 4, 6, 6)
    (right,) = reader("bvlc").load(prototxt, caffemodel).run({"x": image.numpy()}).values()
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
    parameters = "pooling_param { kernel_size: 3 stride: 2 round_mode: FLOOR ceil_mode: true }"
    prototxt, caffemodel = written("ascend_ge", "Pooling", parameters, tmp_path)
    with pytest.raises(CaffeforgeError, match="say different things"):
        reader("ascend_ge").load(prototxt, caffemodel)
