"""What a chip refuses of any layer and of a net: passed over, refused, listed by check."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from caffeforge.generator.generate import generate, write
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.backends import find
from caffeforge.runtime.cli import main
from caffeforge.runtime.errors import LegalizeError
from caffeforge.runtime.export import export
from caffeforge.runtime.loaded import load

NARROW = """
backend: narrow
extends: bvlc
constraints:
  "*":
    - expr: all([t.rank <= 4 for t in bottoms]) and all([t.rank <= 4 for t in results])
      else: blobs of four axes
      source: manual
    - {expr: 'type not in ["ELU", "Im2col"]', else: no such layer, source: manual}
  Convolution:
    - {expr: "max(k) <= 3", else: small windows}
    - {expr: "max(s) <= 2", else: small steps}
net:
  constraints:
    - {expr: len(outputs) <= 2, else: up to two outputs, source: manual}
"""
INPUT = """
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 8 dim: 9 dim: 9 } } }
"""
WIDE = f"""{INPUT.rstrip()}
layer {{ name: "wide" type: "Reshape" bottom: "x" top: "wide"
  reshape_param {{ shape {{ dim: 1 dim: 2 dim: 4 dim: 9 dim: 9 }} }} }}
"""
OPEN = f"""{INPUT.rstrip()}
layer {{ name: "a" type: "AbsVal" bottom: "x" top: "a" }}
layer {{ name: "b" type: "BNLL" bottom: "x" top: "b" }}
layer {{ name: "c" type: "AbsVal" bottom: "x" top: "c" }}
"""
NET = f"""{WIDE.rstrip()}
layer {{ name: "e" type: "ELU" bottom: "wide" top: "e" }}
layer {{ name: "conv" type: "Convolution" bottom: "x" top: "conv"
  convolution_param {{ num_output: 4 kernel_size: 5 stride: 3 bias_term: false }} }}
layer {{ name: "a" type: "AbsVal" bottom: "conv" top: "a" }}
layer {{ name: "b" type: "BNLL" bottom: "x" top: "b" }}
"""


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Backend:
    """A chip for blobs of four axes and nets of two outputs."""
    folder = tmp_path_factory.mktemp("narrow") / "narrow"
    folder.mkdir()
    (folder / "mapping.yaml").write_text(NARROW)
    write(generate(folder), folder.parent / "generated")
    return find(folder.parent / "generated" / "narrow")


def test_check_lists_all_that_is_refused_one_line_each(
    narrow: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("caffeforge.runtime.backends.find", lambda _: narrow)
    Path("net.prototxt").write_text(NET)
    assert main(["check", "net.prototxt", "--backend", "narrow"]) == 1
    said = capsys.readouterr()
    at = "narrow/mapping.yaml"
    assert said.out.splitlines() == [
        f"net.prototxt:3:1: layer wide (Reshape): blobs of four axes (source: manual) [{at}:6]",
        f"net.prototxt:5:1: layer e (ELU): blobs of four axes (source: manual) [{at}:6]",
        f"net.prototxt:5:1: layer e (ELU): no such layer (source: manual) [{at}:9]",
        f"net.prototxt:6:1: layer conv (Convolution): small windows [{at}:11]",
        f"net.prototxt:6:1: layer conv (Convolution): small steps [{at}:12]",
        f"the net: up to two outputs (source: manual) [{at}:15]",
    ]


class Shuffled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.pixel_shuffle(x, 2)


class Three(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return x.abs(), x.relu(), x.exp()


def test_an_export_goes_around_what_is_refused(narrow: Backend, tmp_path: Path) -> None:
    x = torch.randn(1, 8, 3, 5)
    export(narrow, Shuffled(), (x,), tmp_path / "net", verify=False)
    loaded = load(tmp_path / "net.prototxt", tmp_path / "net.caffemodel", narrow)
    assert "Reshape" not in [layer.type for layer in loaded.net.layers]
    (found,) = loaded.run({"x": x.numpy()}).values()
    np.testing.assert_allclose(found, Shuffled()(x).numpy(), rtol=1e-5, atol=1e-6)


def test_a_net_of_too_many_outputs_is_refused_and_nothing_is_written(narrow: Backend, tmp_path: Path) -> None:
    with pytest.raises(LegalizeError, match=r"mapping.yaml:15: up to two outputs \(source: manual\)"):
        export(narrow, Three(), (torch.randn(1, 2),), tmp_path / "net")
    assert list(tmp_path.iterdir()) == []


def test_transcoding_keeps_the_constraints_of_the_target(
    narrow: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    bvlc = find("bvlc")
    monkeypatch.setattr("caffeforge.runtime.backends.find", lambda name: narrow if name == "narrow" else bvlc)
    Path("net.prototxt").write_text(WIDE)
    assert main(["check", "net.prototxt", "--from", "bvlc", "--backend", "narrow"]) == 1
    assert "layer wide: " in (said := capsys.readouterr().out) and "blobs of four axes" in said
    Path("net.prototxt").write_text(OPEN)
    assert main(["check", "net.prototxt", "--from", "bvlc", "--backend", "narrow"]) == 1
    assert "up to two outputs (source: manual)" in capsys.readouterr().out


def test_explain_shows_constraints_on_any_layer_and_on_a_net(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "nnie", "*"]) == 0
    assert "whatever the layer of nnie" in (said := capsys.readouterr().out)
    assert "else: blobs have up to four axes (source: " in said
    assert main(["explain", "nnie", "net:"]) == 0
    assert "needs len(outputs) <= 16" in capsys.readouterr().out
    assert main(["explain", "bvlc", "*"]) == 2
