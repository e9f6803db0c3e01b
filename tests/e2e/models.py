"""Small networks of kinds that torchvision does not have: segmentation, super-resolution, text, sequences."""

from __future__ import annotations

import torch
from torch import nn


class Twice(nn.Sequential):
    """Two convolutions with batch normalization."""

    def __init__(self, inputs: int, outputs: int) -> None:
        layers: list[nn.Module] = []
        for channels in (inputs, outputs):
            layers += [
                nn.Conv2d(channels, outputs, 3, padding=1),
                nn.BatchNorm2d(outputs),
                nn.ReLU(inplace=True),
            ]
        super().__init__(*layers)


class UNet(nn.Module):
    """Two levels down and up again, with skip connections, a transposed convolution and bilinear resizing."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.bottom = Twice(3, 8), Twice(8, 16), Twice(16, 24)
        self.up = nn.ConvTranspose2d(24, 16, 2, stride=2)
        self.right, self.last = Twice(32, 16), Twice(24, 8)
        self.head = nn.Conv2d(8, 5, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one = self.first(x)
        two = self.second(nn.functional.max_pool2d(one, 2))
        below = self.bottom(nn.functional.max_pool2d(two, 2))
        right = self.right(torch.cat([self.up(below), two], 1))
        grown = nn.functional.interpolate(right, scale_factor=2.0, mode="bilinear", align_corners=True)
        result: torch.Tensor = self.head(self.last(torch.cat([grown, one], 1)))
        return result


class Fsrcnn(nn.Module):
    """Super-resolution that works at low resolution and ends in a transposed convolution (FSRCNN-like)."""

    def __init__(self) -> None:
        super().__init__()
        self.feature, self.shrink = nn.Conv2d(3, 12, 5, padding=2), nn.Conv2d(12, 6, 1)
        self.map, self.expand = nn.Conv2d(6, 6, 3, padding=1), nn.Conv2d(6, 12, 1)
        self.slopes = nn.ModuleList([nn.PReLU(12), nn.PReLU(6), nn.PReLU(6), nn.PReLU(12)])
        self.up = nn.ConvTranspose2d(12, 3, 9, stride=3, padding=4, output_padding=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer, slope in zip((self.feature, self.shrink, self.map, self.expand), self.slopes, strict=True):
            x = slope(layer(x))
        result: torch.Tensor = self.up(x)
        return result


class PixelShuffleNet(nn.Module):
    """Super-resolution by sub-pixel convolution, on top of the image grown by nearest neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.GELU(), nn.Conv2d(16, 12, 3, padding=1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.pixel_shuffle(self.body(x), 2) + nn.functional.interpolate(x, scale_factor=2.0)


class Crnn(nn.Module):
    """A text line recogniser: convolutions, columns as a sequence, an LSTM in both directions."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 12, 3, padding=1),
            nn.ReLU(),
        )
        self.lstm = nn.LSTM(12, 7, bidirectional=True)
        self.head = nn.Linear(14, 11)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        columns = self.body(x).mean(2).permute(2, 0, 1)
        result: torch.Tensor = self.head(self.lstm(columns)[0])
        return result


class BiGru(nn.Module):
    """A GRU in both directions over rows of pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(24, 6, bidirectional=True, batch_first=True)
        self.head = nn.Linear(12, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.head(self.gru(x.mean(1))[0])
        return result
