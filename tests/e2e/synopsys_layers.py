"""Single layers of Synopsys' Caffe: protobuf writes them under its schema, our executor runs them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from caffeforge.runtime import load
from tests.e2e import vendor

Floats = npt.NDArray[np.float32]

ODD = {  # types whose parameters are named in another way
    "FarthestPointSample": "point_net",
    "PyramidROIAlign": "pyramid_roi_align",
    "QueryBallPoint": "point_net",
    "SeLUDropout": "selu_dropout",
    "Tensor2Box": "tensor2box",
}


@dataclass(frozen=True)
class Case:
    """A layer, what it reads, and what it must give.

    Attributes:
        fields: the text of its parameters.
        expected: one array for each top.
    """

    type: str
    fields: str
    bottoms: Sequence[Floats]
    expected: Sequence[Any] = field(repr=False)
    blobs: Sequence[Floats] = field(default=(), repr=False)

    def __str__(self) -> str:
        return f"{self.type}: {self.fields}"

    @property
    def text(self) -> str:
        """Return all of the layer but its name, bottoms and tops."""
        name = ODD.get(self.type) or re.sub("(?<=[a-z0-9])(?=[A-Z][a-z]|ND)", "_", self.type).lower()
        return f'type: "{self.type}" ' + (f"{name}_param {{ {self.fields} }}" if self.fields else "")


def computed(
    layer: str, bottoms: Sequence[Floats], folder: Path, *, blobs: Sequence[Floats] = (), tops: int = 1
) -> list[Floats]:
    """Return the tops of a layer that has these bottoms and blobs."""
    names, results = [f"x{index}" for index in range(len(bottoms))], [f"y{index}" for index in range(tops)]
    text = ""
    for name, bottom in zip(names, bottoms, strict=True):
        shape = f"input_param {{ shape {{ dim: {[*bottom.shape]} }} }}"
        text += f'layer {{ name: "{name}" type: "Input" top: "{name}" {shape} }}\n'
    read = " ".join(f'bottom: "{name}"' for name in names)
    given = " ".join(f'top: "{name}"' for name in results)
    text += f'layer {{ name: "y" {read} {given} {layer} }}\n'
    net = load(*vendor.write(folder, text, {"y": blobs}, "synopsys"), dialect="synopsys")
    found = net.run(dict(zip(names, bottoms, strict=True)), blobs=results)
    return [np.asarray(found[name]) for name in results]


def check(case: Case, folder: Path) -> None:
    """Compare the tops of a layer with what is expected, shapes too."""
    found = computed(case.text, case.bottoms, folder, blobs=case.blobs, tops=len(case.expected))
    for top, expected in zip(found, case.expected, strict=True):
        assert top.shape == expected.shape and not np.isnan(expected).any()
        np.testing.assert_allclose(top, expected, rtol=1e-4, atol=1e-5)
