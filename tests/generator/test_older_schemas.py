"""Protos of Caffes that left the common line early: fields are missing, and sizes are one for all axes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from caffeforge.generator.generate import Package, generate, write
from caffeforge.generator.schema_folder import SCHEMAS
from caffeforge.runtime.errors import CaffeforgeError, LegalizeError
from tests.generator.dialects import imported
from tests.generator.inputs import result
from tests.generator.judge import Judge

PROTO = (SCHEMAS / "bvlc" / "caffe.proto").read_text(encoding="utf-8")
SIZES = {"pad": 3, "kernel_size": 4, "stride": 6}


def older(*, stride: int = 1) -> str:
    """Return bvlc's proto as it was when a convolution had one size and no dilation."""
    head, mark, tail = PROTO.partition("message ConvolutionParameter {")
    body, end, rest = tail.partition("\n}\n")
    for name, number in SIZES.items():
        default = f" [default = {stride}]" if name == "stride" else ""
        body, count = re.subn(
            rf"repeated uint32 {name} = {number}\b", f"optional uint32 {name} = {number}{default}", body
        )
        assert count == 1
    for name in ("dilation", "axis"):
        body, count = re.subn(rf"(optional int32|repeated uint32) {name} = .*", "", body)
        assert count == 1
    return head + mark + body + end + rest


def package(folder: Path, proto: str, mapping: str = "") -> Package:
    source = folder / "vendorx"
    source.mkdir()
    (source / "caffe.proto").write_text(proto, encoding="utf-8")
    if mapping:
        (source / "mapping.yaml").write_text(f"backend: vendorx\nextends: bvlc\n{mapping}", encoding="utf-8")
    return generate(source)


def test_convolutions_are_written_where_they_need_nothing_newer(tmp_path: Path) -> None:
    made = package(tmp_path, older())
    write(made, tmp_path / "out")
    module = imported(tmp_path / "out" / made.name)
    image = torch.randn(1, 3, 8, 9, generator=torch.Generator().manual_seed(0))
    plain = torch.nn.Conv2d(3, 4, (3, 2), stride=(2, 1), padding=(1, 0)).eval()
    module.export(plain, image, tmp_path / "plain")  # verifies the files
    assert "dilation" not in (tmp_path / "plain.prototxt").read_text()
    with pytest.raises(LegalizeError, match="there is no field dilation for another value here"):
        module.export(torch.nn.Conv2d(3, 4, 3, dilation=2).eval(), image, tmp_path / "dilated")
    assert not list(tmp_path.glob("dilated*"))


def test_one_size_for_all_axes_is_read(tmp_path: Path) -> None:
    made = package(tmp_path, older())
    write(made, tmp_path / "out")
    module = imported(tmp_path / "out" / made.name)
    torch.manual_seed(0)
    conv, image = torch.nn.Conv2d(3, 4, 3, stride=2, padding=1).eval(), torch.randn(1, 3, 8, 9)
    module.export(conv, image, tmp_path / "net")
    path = tmp_path / "net.prototxt"
    text = re.sub(r" *(kernel|stride|pad)_w: \d\n", "", path.read_text())
    text = re.sub(
        r"(kernel|stride|pad)_h: (\d)", lambda m: f"{m[1].replace('kernel', 'kernel_size')}: {m[2]}", text
    )
    path.write_text(text)
    judge = Judge(older())
    blobs = judge.binary(tmp_path / "net.caffemodel").layer[-1].blobs
    net = judge.text(path)
    net.layer[-1].blobs.extend(blobs)
    (tmp_path / "net.caffemodel").write_bytes(net.SerializeToString())
    assert "kernel_size: 3" in text and "stride: 2" in text and "pad: 1" in text
    (found,) = module.load(path, tmp_path / "net.caffemodel").run({"input": image.numpy()}).values()
    np.testing.assert_allclose(found, conv(image).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_a_field_that_is_there_all_the_same_is_not_taken_for_missing(tmp_path: Path) -> None:
    head = "message ConvolutionParameter {"
    made = package(tmp_path, older().replace(head, f"{head} optional uint32 hole = 90 [default = 1];"))
    write(made, tmp_path / "out")
    module = imported(tmp_path / "out" / made.name)
    net = 'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 1 dim: 4 dim: 4 } } }\n'
    net += 'layer { name: "y" type: "Convolution" bottom: "x" top: "y" convolution_param { hole: 2 } }'
    (tmp_path / "net.prototxt").write_text(net)
    with pytest.raises(CaffeforgeError, match="hole"):
        module.load(tmp_path / "net.prototxt")


def test_one_size_with_an_own_default_is_not_left_out(tmp_path: Path) -> None:
    dropped = package(tmp_path, older(stride=2)).dropped
    (reason,) = {d.reason for d in dropped if d.subject == "Conv" and "stride" in d.reason}
    assert reason == "ConvolutionParameter.stride has default 2, 1 is expected"


def test_a_value_for_a_field_that_no_rule_reads_is_an_error(tmp_path: Path) -> None:
    source = tmp_path / "vendorx"
    source.mkdir()
    text = "layers:\n  TanH:\n    before: {slope: 1}\n    rewrite: tops[0] = Tanh(bottom)\n"
    (source / "mapping.yaml").write_text(f"backend: vendorx\nextends: bvlc\n{text}", encoding="utf-8")
    (error,) = result(source)[1]
    assert (error.id, error.position.line) == ("unused-let", 5)
