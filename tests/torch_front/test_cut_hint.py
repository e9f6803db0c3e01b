"""A model that decides by values names the cut that leaves the decision outside, and that cut works."""

from pathlib import Path

import pytest
import torch
from torch import nn

from caffeforge.generated.bvlc import export
from caffeforge.runtime import cli
from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.torch_front import trace


class Head(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.boxes = nn.Conv2d(8, 4, 1)
        self.scores = nn.Sequential(nn.Conv2d(8, 2, 1), nn.Sigmoid())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        boxes: torch.Tensor = self.boxes(x).flatten(2)
        scores = self.scores(x).flatten(2).amax(1)
        keep = scores[0] > 0.5
        if keep.sum() == 0:
            return boxes[:, :, :1]
        return boxes[:, :, keep]


class Detector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.neck = nn.Conv2d(8, 8, 3, padding=1)
        self.head = Head()

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.stem(image))
        result: torch.Tensor = self.head(x + self.neck(x))
        return result


IMAGE = torch.randn(1, 3, 16, 16, generator=torch.Generator().manual_seed(0))
CUT = ["head.boxes", "head.scores"]


def test_the_hint_names_the_modules_that_nothing_else_has_read() -> None:
    with pytest.raises(FrontEndError) as caught:
        trace(Detector().eval(), IMAGE)
    assert caught.value.where == f"{__file__}:{Head.forward.__code__.co_firstlineno + 4}"
    assert caught.value.hint.endswith(f"outputs_at={CUT!r}")


def test_export_ends_at_the_named_modules(tmp_path: Path) -> None:
    model = Detector().eval()
    result = export(model, IMAGE, tmp_path / "net", outputs_at=CUT, output_names=["boxes", "scores"])
    assert result.verification and result.verification.conclusive
    assert result.errors.keys() == {"boxes", "scores"} and max(result.errors.values()) < 1e-5
    for name in ("stem", "neck", "head"):
        assert not getattr(model, name)._forward_hooks


def test_the_command_cuts_too_and_takes_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = torch.export.export(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).eval(), (IMAGE,))
    torch.export.save(program, "made.pt2")
    assert cli.main(["export", "made.pt2", "--backend", "bvlc"]) == 0
    assert Path("made.prototxt").is_file() and Path("made.caffemodel").is_file()
    source = (f"{Detector.__module__}:Detector", "--backend", "bvlc", "--shape", "1x3x16x16", "--out", "cut")
    assert cli.main(["export", *source]) == 1
    assert not Path("cut.prototxt").exists()
    assert cli.main(["export", *source, "--outputs-at", ",".join(CUT)]) == 0
    assert Path("cut.prototxt").is_file()


def test_a_model_without_finished_modules_gets_no_cut() -> None:
    class Choosy(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if x.sum() > 0 else -x

    with pytest.raises(FrontEndError) as caught:
        trace(Choosy().eval(), IMAGE)
    assert caught.value.hint.endswith("cut the model before it with outputs_at")
