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


class SmallSsd(nn.Module):
    """Boxes and classes from maps of two sizes, laid out as SSD has them: channels last, boxes in a row."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Twice(3, 8), Twice(8, 16)
        self.boxes = nn.ModuleList([nn.Conv2d(8, 3 * 4, 3, padding=1), nn.Conv2d(16, 3 * 4, 3, padding=1)])
        self.classes = nn.ModuleList([nn.Conv2d(8, 3 * 5, 3, padding=1), nn.Conv2d(16, 3 * 5, 3, padding=1)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        near = nn.functional.max_pool2d(self.first(x), 3, stride=4, padding=1, ceil_mode=True)
        far = nn.functional.max_pool2d(self.second(near), 2)
        found = [
            torch.cat(
                [
                    head(part).permute(0, 2, 3, 1).flatten(1)
                    for head, part in zip(heads, (near, far), strict=True)
                ],
                1,
            )
            for heads in (self.boxes, self.classes)
        ]
        boxes, classes = found[0].reshape(len(x), -1, 4), found[1].reshape(len(x), -1, 5)
        return torch.cat([boxes, classes], 2)


class SmallYolo(nn.Module):
    """A YOLO of two sizes: slices as a stem, SiLU, pools of three sizes side by side, growing and joining."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.down = self._conv(12, 8, 3), self._conv(8, 16, 3, 2)
        self.inner, self.outer = self._conv(8, 8, 3), self._conv(16, 16, 1)
        self.pooled, self.joined = self._conv(64, 16, 1), self._conv(24, 12, 3)
        self.heads = nn.ModuleList([nn.Conv2d(12, 3 * 7, 1), nn.Conv2d(16, 3 * 7, 1)])

    @staticmethod
    def _conv(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Sequential:
        conv = nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)
        return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.SiLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        corners = [x[..., i::2, j::2] for j in (0, 1) for i in (0, 1)]
        stem = self.stem(torch.cat(corners, 1))
        near = stem + self.inner(stem)
        far = self.outer(self.down(near))
        pools = [nn.functional.max_pool2d(far, size, 1, size // 2) for size in (3, 5, 7)]
        far = self.pooled(torch.cat([far, *pools], 1))
        near = self.joined(torch.cat([nn.functional.interpolate(far, scale_factor=2.0), near], 1))
        maps = [head(part) for head, part in zip(self.heads, (near, far), strict=True)]
        return torch.cat([m.reshape(len(x), 3, 7, -1).transpose(2, 3).flatten(1, 2) for m in maps], 1)


class Shuffled(nn.Module):
    """Channels in groups, dealt out between two convolutions, as in ShuffleNet."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 12, 3, padding=1), nn.Conv2d(12, 6, 3, groups=3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = torch.relu(self.first(x))
        batch, channels, height, width = found.shape
        groups = found.view(batch, 3, channels // 3, height, width)
        result: torch.Tensor = self.last(groups.transpose(1, 2).reshape(batch, channels, height, width))
        return result
