"""Net: the ordered, typed layers of one dialect. Readers give it, writers take it, surgery works on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from caffeforge.runtime.array import Array
from caffeforge.runtime.graph import Origin
from caffeforge.runtime.message import LayerParam


@dataclass(slots=True)
class Layer:
    """One layer of a net.

    Attributes:
        param: the typed parameters; their class tells the layer's type.
        blobs: weights, lazy, in the order of the layer's blobs.
        rule: the rule of the mapping that wrote or reads it.
        origin: the module and line of the source, or the line of the text; equal layers may differ in it.
        shared: names under which Caffe keeps the blobs, one each, if other layers have the same ones.
        borrows: the blobs are another layer's, which has them in the caffemodel.
        source: name of the hub value that the first top holds; empty for a layer's inner result.
    """

    name: str
    param: LayerParam
    bottoms: tuple[str, ...] = ()
    tops: tuple[str, ...] = ()
    blobs: tuple[Array, ...] = ()
    rule: str = ""
    origin: Origin = field(default_factory=Origin, compare=False)
    op: str = ""
    source: str = ""
    shared: tuple[str, ...] = ()
    borrows: bool = False

    @property
    def type(self) -> str:
        return self.param.TYPE


@dataclass(slots=True)
class Net:
    """A net of one dialect.

    Attributes:
        inputs: those given as fields of the net, not by Input layers.
        notes: what a reader left out or a writer changed, one sentence each.
    """

    name: str
    layers: list[Layer]
    inputs: Sequence[tuple[str, tuple[int, ...]]] = ()
    notes: Sequence[str] = ()

    def outputs(self) -> list[str]:
        """Return the blobs that no later layer reads, in order: Caffe's outputs."""
        open_tops: dict[str, None] = {}
        for layer in self.layers:
            for bottom in layer.bottoms:
                open_tops.pop(bottom, None)
            open_tops.update(dict.fromkeys(layer.tops))
        return list(open_tops)
