"""Nets written in another shipped dialect: what means the same is copied, what does not is said otherwise."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from caffeforge.runtime.transcode import TranscodeResult, transcode
from tests.e2e import vendor
from tests.e2e.layer_cases import TOLERANCE, Floats, Random, difference
from tests.e2e.test_mobilenet_yolo import darknet
from tests.e2e.test_ssd import small_ssd
from tests.real_caffe.witness import Witness

INPUT = 'layer { name: "data" type: "Input" top: "data" input_param { shape { dim: %s } } }\n'


def run(
    folder: Path, text: str, source: str, target: str, blobs: dict[str, list[Floats]] | None = None
) -> TranscodeResult:
    """Write a net of `source` by protobuf and transcode it."""
    files = vendor.write(folder, text, blobs or {}, source)
    return transcode(*files, folder / "out", source=source, target=target)


def test_one_layer_that_two_dialects_order_otherwise_is_not_copied(sophgo: Witness, tmp_path: Path) -> None:
    """Both call it Reorg, with the same message: darknet's order here, space-to-depth there."""
    x = Random(1).normal(2, 8, 4, 6)
    text = INPUT % " dim: ".join(map(str, x.shape)) + (
        'layer { name: "r" type: "Reorg" bottom: "data" top: "r" reorg_param { stride: 2 } }'
    )
    result = run(tmp_path, text, "mobilenet_yolo", "sophgo")
    assert result.copied == ("data",) and list(result.rewritten) == ["r"]
    found = sophgo.run(tmp_path / "out.prototxt", tmp_path / "out.caffemodel", {"data": x})
    np.testing.assert_array_equal(found["r"], darknet(x, 2))


def test_a_whole_ssd_is_copied_but_for_its_numbers(sophgo: Witness, caffe: Witness, tmp_path: Path) -> None:
    text, blobs = small_ssd()
    (tmp_path / "ssd").mkdir()
    files = vendor.write(tmp_path / "ssd", text, blobs, "ssd")
    result = transcode(*files, tmp_path / "out", source="ssd", target="sophgo")
    assert len(result.copied) > 20 and set(result.rewritten) <= {"p1"}  # Pooling is another rule there
    inputs = {"data": Random(4).normal(1, 3, 24, 32)}
    found = sophgo.run(tmp_path / "out.prototxt", tmp_path / "out.caffemodel", inputs)["found"]
    assert difference(found, caffe.run(*files, inputs)["found"]) <= TOLERANCE


def test_layers_of_the_community_become_layers_of_caffe_1(
    sophgo: Witness, caffe: Witness, tmp_path: Path
) -> None:
    r = Random(2)
    x = r.normal(2, 4, 6, 6)
    text = INPUT % " dim: ".join(map(str, x.shape)) + "\n".join(
        f'layer {{ name: "{name}" type: "{kind}" bottom: "{bottom}" top: "{name}" {rest} }}'
        for name, kind, bottom, rest in (
            ("pad", "Padding", "data", "padding_param { pad_l: 1 pad_b: 2 }"),
            ("shuffle", "ShuffleChannel", "pad", "shuffle_channel_param { group: 2 }"),
            ("pool", "Pooling", "shuffle", "pooling_param { pool: AVE kernel_size: 3 stride: 2 }"),
            ("act", "ReLU6", "pool", ""),
            ("up", "Upsample", "act", "upsample_param { scale: 2 }"),
            ("mish", "Mish", "up", ""),
        )
    )
    result = run(tmp_path, text, "sophgo", "bvlc")
    assert result.copied == ("data",) and len(result.rewritten) == 6
    inputs = {"data": x}
    due = sophgo.run(tmp_path / "net.prototxt", tmp_path / "net.caffemodel", inputs)["mish"]
    found = caffe.run(tmp_path / "out.prototxt", tmp_path / "out.caffemodel", inputs)["mish"]
    assert difference(found, due) <= TOLERANCE
