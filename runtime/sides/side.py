"""What a comparison needs of a side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.graph import Origin


@dataclass(frozen=True)
class Input:
    """An input: its shape, and its element type as NumPy calls it."""

    shape: tuple[int, ...]
    dtype: str = "float32"


@dataclass(frozen=True)
class Computed:
    """A value that a side computes.

    Attributes:
        value: its name in the source, by which two sides are lined up.
        layer: name of the layer or node.
        type: its type.
        origin: the source's module and line, as far as they are known.
        op: the operator of ONNX that the value is a result of, empty if it is not known.
    """

    value: str
    layer: str
    type: str
    origin: Origin = field(default_factory=Origin)
    op: str = ""


class Side(Protocol):
    """One of two things that should compute the same."""

    @property
    def title(self) -> str:
        """How the report calls it."""

    @property
    def inputs(self) -> Mapping[str, Input]:
        """The inputs in order."""

    @property
    def outputs(self) -> Sequence[str]:
        """Names of the outputs in order."""

    @property
    def computed(self) -> Sequence[Computed]:
        """The inner values in order; empty if none can be seen."""

    @property
    def naming(self) -> str:
        """Whose names the inner values have, `PYTORCH` or `ONNX`; empty if that is not known."""

    def run(self, inputs: Mapping[str, NDArray], *, inner: bool) -> dict[str, NDArray]:
        """Return the outputs, and if `inner` all values that can be seen, by name."""
