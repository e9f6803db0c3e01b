"""``make demo`` succeeds, and fails where something differs."""

from __future__ import annotations

from pathlib import Path

import pytest

from caffeforge.runtime import demo, load
from caffeforge.runtime.array import Full
from caffeforge.runtime.loaded import LoadedNet
from tests import checkout


def test_demo_writes_and_compares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert demo.main() == 0
    printed = capsys.readouterr().out
    assert "no difference in" in printed
    assert "SNR dB" in printed
    assert f"equal; the files are in {tmp_path}/out/demo" in printed
    files = sorted(path.name for path in (tmp_path / "out/demo").iterdir())
    assert files == ["resnet18.caffemodel", "resnet18.map.json", "resnet18.prototxt"]


def test_demo_fails_if_the_files_compute_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def load_and_change(*files: Path) -> LoadedNet:
        net = load(*files)
        (last,) = (layer for layer in net.net.layers if layer.name == "fc")
        last.blobs = (last.blobs[0], Full((1000,), 0.5))  # another bias
        return LoadedNet(net.net, net.backend)

    monkeypatch.setattr(demo, "load", load_and_change)
    assert demo.main() == 1
    assert "DIFFERENT" in capsys.readouterr().out


def test_demo_fails_if_the_backend_is_out_of_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "SCHEMAS", Path("schemas"))
    (tmp_path / "schemas").symlink_to(checkout.ROOT / "schemas")  # and no generated/ beside it
    assert demo.main() == 1
    assert "missing: generated/bvlc/emit.py" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()
