"""``caffeforge check``: all that a backend refuses of a model, of a net, of a net in another dialect."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from caffeforge.generator.generate import generate, write
from caffeforge.generator.schema_folder import SCHEMAS
from caffeforge.runtime.cli import main

MODEL = """
import torch
class Good(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1
class Bad(torch.nn.Module):
    def forward(self, x):
        return x.abs() ** torch.sigmoid(x) + torch.sigmoid(x) ** x
"""
POOL = """
layer { name: "%s" type: "Pooling" bottom: "x" top: "%s" pooling_param { kernel_size: %d } }
"""
NET = 'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 2 dim: 40 dim: 40 } } }'
SMALL_POOLS = """
backend: small
extends: bvlc
constraints:
  Pooling:
    - {expr: "k[0] <= 8 and k[1] <= 8", else: the NPU pools windows up to 8, source: data sheet}
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A chip that pools small windows only."""
    folder = tmp_path_factory.mktemp("small") / "small"
    folder.mkdir()
    (folder / "mapping.yaml").write_text(SMALL_POOLS)
    write(generate(folder), folder.parent / "generated")
    return str(folder.parent / "generated" / "small")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "checked_models.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_model_that_fits_is_counted(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "checked_models:Good", "--backend", "bvlc", "--shape", "2x3"]) == 0
    assert capsys.readouterr().out.startswith("bvlc takes it: 2 operations become 2")
    assert main(["check", "checked_models:Good", "--backend", "onnx_opset11", "--shape", "2x3"]) == 0
    assert "onnx_opset11 takes it" in capsys.readouterr().out
    assert sorted(path.name for path in here.iterdir() if path.name != "__pycache__") == ["checked_models.py"]


def test_all_that_is_refused_in_a_model_is_listed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "checked_models:Bad", "--backend", "bvlc", "--shape", "2x3", "--json"]) == 1
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert not document["passed"]
    assert [refused["op"] for refused in document["refused"]] == ["Pow", "Pow"]
    assert "checked_models.py:" in document["findings"][0]["where"]
    assert "bvlc refuses 2 things" in said.err


def test_every_layer_that_a_chip_refuses_is_listed(
    here: Path, small: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pools = "".join(POOL % (name, name, size) for name, size in (("a", 9), ("b", 3), ("c", 12)))
    (here / "net.prototxt").write_text(NET + pools)
    assert main(["check", "net.prototxt", "--backend", small]) == 1
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        f"net.prototxt:{line}:1: layer {name} (Pooling): the NPU pools windows up to 8 (source: data sheet)"
        " [small/mapping.yaml:6]"
        for name, line in (("a", 2), ("c", 6))
    ]
    assert "small refuses 2 things" in said.err
    assert main(["check", "net.prototxt", "--backend", "bvlc"]) == 0


def test_a_net_is_checked_for_another_dialect(
    here: Path, small: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "net.prototxt").write_text(NET + POOL % ("a", "a", 3))
    assert main(["check", "net.prototxt", "--from", "bvlc", "--backend", small]) == 0
    assert "small takes it: 2 layers" in capsys.readouterr().out


def test_what_belongs_to_nets_is_refused_for_models(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "model.onnx", "--from", "bvlc", "--backend", "bvlc"]) == 2
    assert "--from and weights belong to a net" in capsys.readouterr().err


def test_a_field_inside_a_message_that_no_rule_reads_is_found(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = here / "deep"
    folder.mkdir()
    text = (SCHEMAS / "bvlc" / "caffe.proto").read_text()
    head = "message BlobShape {"
    (folder / "caffe.proto").write_text(text.replace(head, f"{head} optional int32 layout = 9;"))
    write(generate(folder), here / "generated")
    shape = "reshape_param { shape { layout: 1 dim: 1 dim: -1 } }"
    reshape = f'layer {{ name: "flat" type: "Reshape" bottom: "x" top: "flat" {shape} }}'
    (here / "net.prototxt").write_text(NET + reshape)
    assert main(["check", "net.prototxt", "--backend", "generated/deep"]) == 1
    assert "field shape.layout is set, and the rule does not read it" in capsys.readouterr().out


IN = 'input: "x" input_shape { dim: 1 dim: 3 dim: 8 dim: 8 }\n'
PYTHON = "that stands in a Python program, of which the net tells no more than the name (python_param)"


@pytest.mark.parametrize(
    ("layers", "says"),
    [
        (
            IN + 'layer { name: "p" type: "Python" bottom: "x" top: "p" }',
            f"layer p (Python): no rule .*: {PYTHON}",
        ),
        (
            'layer { name: "d" type: "Data" top: "x" }'
            + 'layer { name: "r" type: "ReLU" bottom: "x" top: "r" }',
            "layer d (Data): the net does not tell the shape of what it loads",
        ),
        (
            IN
            + 'layer { name: "l" type: "EuclideanLoss" bottom: "x" bottom: "x" top: "l" }'
            + 'layer { name: "r" type: "ReLU" bottom: "l" top: "r" }',
            "layer l (EuclideanLoss): it is for training, and a layer that inference needs reads its result",
        ),
        (
            IN + 'layer { name: "r" type: "ReLU" bottom: "y" top: "r" }',
            "layer r (ReLU): bottom y is not computed by any layer before",
        ),
        (
            IN
            + 'layer { name: "c" type: "Convolution" bottom: "x" top: "c" '
            + "convolution_param { num_output: 2 kernel_size: 9 } }",
            "layer c (Convolution): the window is larger than the bottom",
        ),
        (
            IN.replace("8", "-8") + 'layer { name: "r" type: "ReLU" bottom: "x" top: "r" }',
            r"input x: it has a size below 0: [1, 3, -8, -8]",
        ),
    ],
)
def test_check_and_transcode_tell_what_is_wrong_with_a_net_itself(
    layers: str, says: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a net without weights too; transcode names the line, as running it does."""
    (here / "net.prototxt").write_text(layers)
    sentence = re.escape(says).replace(r"\.\*", ".*")
    assert main(["check", "net.prototxt", "--backend", "bvlc"]) == 1
    assert re.search(sentence, capsys.readouterr().out)
    assert main(["run", "net.prototxt", "--backend", "bvlc", "--random", "--random-weights"]) == 1
    assert re.search(sentence, capsys.readouterr().err)
    if "window" in says:  # of which a transcoding wants the weights first
        return
    assert main(["transcode", "net.prototxt", "--from", "bvlc", "--to", "ssd", "--out", "new"]) == 1
    assert re.search(sentence, capsys.readouterr().err)
    assert not list(here.glob("new*"))
