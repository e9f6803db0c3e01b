"""Nets of one dialect written in another: what stays, what is rewritten, what real Caffes say of both."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from caffeforge.generator.generate import generate, write
from caffeforge.generator.schema_folder import SCHEMAS
from caffeforge.runtime.array import Dense
from caffeforge.runtime.backends import find
from caffeforge.runtime.caffe_files import read_files, write_files
from caffeforge.runtime.cli import main
from caffeforge.runtime.errors import LegalizeError
from caffeforge.runtime.loaded import load
from caffeforge.runtime.transcode import TranscodeResult, transcode
from tests.real_caffe.witness import Witness

INPUT = (
    'layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 dim: 7 dim: 6 } } }'
)
CONV = """
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" param { lr_mult: 1 } param { lr_mult: 2 }
  convolution_param { num_output: 4 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } engine: CAFFE } }
"""
POOL = """
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool"
  pooling_param { pool: AVE kernel_size: 2 stride: 2 round_mode: FLOOR } }
"""
TRAINING = """
layer { name: "label" type: "Input" top: "label" include { phase: TRAIN }
  input_param { shape { dim: 2 } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "pool" bottom: "label" top: "loss" loss_weight: 3
  include { phase: TRAIN } }
"""
BLOBS = {"conv": ((4, 3, 3, 3), (4,))}


def files(folder: Path, text: str, dialect: str, shapes: Mapping[str, tuple[tuple[int, ...], ...]]) -> Path:
    """Write a net with random weights of these shapes; return its text, the weights lie beside it."""
    stem = folder / "source"
    stem.with_suffix(".prototxt").write_text(f'name: "net" {INPUT} {text}')
    backend = find(dialect)
    net = read_files(stem.with_suffix(".prototxt"), None, backend)
    generator = np.random.default_rng(1)
    for layer in net.layers:
        layer.blobs = tuple(
            Dense(generator.standard_normal(shape, np.float32) / 2) for shape in shapes.get(layer.name, ())
        )
    write_files(net, backend, folder / "weights", "{}")
    (folder / "weights.caffemodel").rename(stem.with_suffix(".caffemodel"))
    return stem.with_suffix(".prototxt")


def run(prototxt: Path, source: str | Path, target: str | Path, out: Path) -> TranscodeResult:
    return transcode(prototxt, prototxt.with_suffix(".caffemodel"), out, source=source, target=target)


def image() -> dict[str, npt.NDArray[np.float32]]:
    return {"data": np.random.default_rng(3).standard_normal((2, 3, 7, 6), np.float32)}


def test_layers_that_both_dialects_read_alike_are_copied_with_all_they_say(tmp_path: Path) -> None:
    """Learning rates, fillers, phases and losses stay; the wider dialect reads the same."""
    text = CONV + POOL.replace("round_mode: FLOOR", "") + TRAINING
    prototxt = files(tmp_path, text, "bvlc", BLOBS)
    result = run(prototxt, "bvlc", "bvlc_master", tmp_path / "out")
    assert result.copied == ("data", "conv", "pool", "label", "loss") and not result.rewritten
    written = (tmp_path / "out.prototxt").read_text()
    for said in ("lr_mult: 2", 'type: "xavier"', "engine: CAFFE", "loss_weight: 3", "phase: TRAIN"):
        assert said in written


def test_what_the_target_lacks_is_rewritten_and_equal_in_real_caffes(
    caffe: Witness, kendryte: Witness, tmp_path: Path
) -> None:
    """The source runs in a Caffe with round_mode and Swish, the result in Caffe 1.0."""
    swish = 'layer { name: "act" type: "Swish" bottom: "pool" top: "act" swish_param { beta: 1.5 } }'
    prototxt = files(tmp_path, CONV + POOL + swish, "bvlc_master", BLOBS)
    result = run(prototxt, "bvlc_master", "bvlc", tmp_path / "out")
    assert result.copied == ("data", "conv") and set(result.rewritten) == {"pool", "act"}
    expected = kendryte.run(prototxt, prototxt.with_suffix(".caffemodel"), image())["act"]
    found = caffe.run(tmp_path / "out.prototxt", tmp_path / "out.caffemodel", image())
    assert list(found) == ["act"] and np.ptp(expected) > 1
    np.testing.assert_allclose(found["act"], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("where", ["conv", "data"])
def test_a_layer_in_place_that_is_rewritten_keeps_the_names_of_blobs(
    where: str, caffe: Witness, kendryte: Witness, tmp_path: Path
) -> None:
    """Its several layers read the blob twice, so they cannot write over it at once."""
    swish = f'layer {{ name: "act" type: "Swish" bottom: "{where}" top: "{where}" }}'
    again = 'layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }'
    text = CONV + swish + again if where == "conv" else swish + CONV + again
    prototxt = files(tmp_path, text, "bvlc_master", BLOBS)
    result = run(prototxt, "bvlc_master", "bvlc", tmp_path / "out")
    assert list(result.rewritten) == ["act"]
    expected = kendryte.run(prototxt, prototxt.with_suffix(".caffemodel"), image())["conv"]
    found = caffe.run(tmp_path / "out.prototxt", tmp_path / "out.caffemodel", image())
    assert list(found) == ["conv"]
    np.testing.assert_allclose(found["conv"], expected, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Caffe 1.0 with other numbers, another default and without some fields and layers."""
    folder = tmp_path_factory.mktemp("other") / "other"
    folder.mkdir()
    text = (SCHEMAS / "bvlc" / "caffe.proto").read_text()
    changes = {
        "optional PoolMethod pool = 1 [default = MAX]": "optional PoolMethod pool = 41 [default = AVE]",
        "optional float negative_slope = 1": "optional float negative_slope = 7",
        "optional ELUParameter elu_param = 140;": "",
    }
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    (folder / "caffe.proto").write_text(text)
    write(generate(folder), folder.parent / "generated")
    return folder.parent / "generated" / "other"


def test_a_default_that_differs_is_written_out(other: Path, tmp_path: Path) -> None:
    pool = POOL.replace("round_mode: FLOOR", "").replace("pool: AVE", "")
    relu = 'layer { name: "relu" type: "ReLU" bottom: "pool" top: "pool" relu_param { negative_slope: 0.5 } }'
    prototxt = files(tmp_path, CONV + pool + relu, "bvlc", BLOBS)
    result = run(prototxt, "bvlc", other, tmp_path / "out")
    assert result.copied == ("data", "conv", "pool", "relu")
    assert "pool: MAX" in (tmp_path / "out.prototxt").read_text()
    assert result.verification is not None and result.verification.passed


def test_what_the_target_cannot_say_is_listed_and_nothing_is_written(tmp_path: Path, other: Path) -> None:
    argmax = """
    layer { name: "one" type: "Threshold" bottom: "conv" top: "one" threshold_param { threshold: 0.5 } }
    layer { name: "two" type: "Threshold" bottom: "conv" top: "two" threshold_param { threshold: 1.5 } }
    """
    prototxt = files(tmp_path, CONV + argmax, "bvlc", BLOBS)
    folder = tmp_path / "poor"
    folder.mkdir()
    (folder / "mapping.yaml").write_text(
        "backend: poor\nextends: bvlc\nops:\n"
        + "".join(f"  {op}: null\n" for op in ("Greater", "Less", "Sub", "Add"))
        + "layers:\n  Threshold: null\n"
    )
    write(generate(folder), tmp_path / "generated")
    with pytest.raises(LegalizeError, match="poor cannot say 2 layers of net") as error:
        run(prototxt, "bvlc", tmp_path / "generated" / "poor", tmp_path / "out")
    assert "layer one:" in error.value.what and "layer two:" in error.value.what
    assert not list(tmp_path.glob("out*"))


def test_the_command_reports_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prototxt = files(tmp_path, CONV + POOL, "bvlc_master", BLOBS)
    arguments = [str(prototxt), str(prototxt.with_suffix(".caffemodel")), "--out", str(tmp_path / "out")]
    assert main(["transcode", *arguments, "--from", "bvlc_master", "--to", "bvlc"]) == 0
    said = capsys.readouterr().out
    assert "2 layers copied, 1 rewritten" in said and "verified: 1 output and 0 layers agree" in said


def test_the_layers_of_a_stage_are_written(tmp_path: Path) -> None:
    """As in nets of DIGITS, whose texts hold several nets; the rules stay in the text."""
    text = tmp_path / "net.prototxt"
    text.write_text(
        'input: "x" input_shape { dim: 1 dim: 3 }\n'
        'layer { name: "a" type: "TanH" bottom: "x" top: "y" include { stage: "deploy" } }\n'
        'layer { name: "b" type: "AbsVal" bottom: "x" top: "y" exclude { stage: "deploy" } }\n'
    )
    x = np.array([[-1, 2, 3]], np.float32)
    for stages, expected in ((["deploy"], np.tanh(x)), ([], np.abs(x))):
        options = [option for stage in stages for option in ("--stage", stage)]
        for target in ("ssd", "onnx_opset17"):
            command = [
                "transcode",
                str(text),
                "--from",
                "bvlc",
                "--to",
                target,
                "--out",
                str(tmp_path / "new"),
            ]
            assert main([*command, *options]) == 0
        found = load(tmp_path / "new.prototxt", None, "ssd", stages=stages).run({"x": x})["y"]
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        session = onnxruntime.InferenceSession(str(tmp_path / "new.onnx"))
        np.testing.assert_allclose(session.run(None, {"x": x})[0], expected, rtol=1e-6)
