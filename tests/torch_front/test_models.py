"""Small models of the kinds that are deployed: U-Nets, text recognizers, taggers, upscalers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from tests.torch_front.checking import checked, seeded, types


def block(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
    )


class UNet(nn.Module):
    """Two levels down and up, with skips, by transposed convolutions or by interpolation."""

    def __init__(self, *, transposed: bool) -> None:
        super().__init__()
        self.first, self.second, self.third = block(3, 8), block(8, 16), block(16, 32)
        self.pool = nn.MaxPool2d(2)
        if transposed:
            self.up: Any = nn.ConvTranspose2d(32, 16, 2, 2)
        else:
            self.up = nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(32, 16, 1))
        self.last = nn.Sequential(block(32, 16), nn.Conv2d(16, 2, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skip = self.second(self.pool(self.first(x)))
        y = torch.cat([self.up(self.third(self.pool(skip))), skip], 1)
        z: torch.Tensor = nn.functional.interpolate(self.last(y), x.shape[2:], mode="nearest")
        return z.sigmoid()


class CRNN(nn.Module):
    """Reads a line of text: convolutions, then a recurrent layer over the columns."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(block(1, 8), nn.MaxPool2d(2), block(8, 16), nn.MaxPool2d((2, 1)))
        self.rnn = nn.LSTM(16 * 4, 12, num_layers=2, bidirectional=True)
        self.head = nn.Linear(24, 11)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        columns = self.body(x).flatten(1, 2).permute(2, 0, 1)
        y, _ = self.rnn(columns)
        scores: torch.Tensor = self.head(y)
        return scores.log_softmax(2)


class Tagger(nn.Module):
    """Embeds words and reads them both ways."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 8, padding_idx=0)
        self.gru = nn.GRU(8, 6, batch_first=True, bidirectional=True)
        self.head = nn.Linear(12, 5)

    def forward(self, ids: torch.Tensor) -> Any:
        y, last = self.gru(self.words(ids))
        weights = (ids != 0).float().unsqueeze(-1)
        mean = (y * weights).sum(1) / weights.sum(1).clamp(min=1)
        return {"tags": self.head(y).argmax(-1), "mean": mean, "last": last}


class Upscaler(nn.Module):
    """Super-resolution by channels that become pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.PReLU(16), nn.Conv2d(16, 12, 3, padding=1)
        )
        self.shuffle = nn.PixelShuffle(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        near = nn.functional.interpolate(x, scale_factor=2.0, mode="bicubic")
        y: torch.Tensor = self.shuffle(self.body(x)) + near
        return y.clamp(0, 1)


@pytest.mark.parametrize("transposed", [True, False])
def test_u_net(transposed: bool) -> None:
    graph = checked(UNet(transposed=transposed), seeded(1, 3, 16, 24)).graph
    assert types(graph).count("Concat") == 1
    assert ("ConvTranspose" in types(graph)) == transposed


def test_text_recognizer() -> None:
    graph = checked(CRNN(), seeded(2, 1, 16, 20)).graph
    assert types(graph).count("LSTM") == 2


def test_tagger_of_words() -> None:
    graph = checked(Tagger(), torch.tensor([[3, 5, 0, 0], [7, 1, 19, 2]])).graph
    assert types(graph)[:3] == ["Gather", "Transpose", "GRU"]


def test_upscaler() -> None:
    graph = checked(Upscaler(), seeded(1, 3, 6, 7)).graph
    assert sorted(types(graph)) == sorted(["Conv", "PRelu", "Conv", "DepthToSpace", "Resize", "Add", "Clip"])
