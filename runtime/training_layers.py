"""A net as inference needs it: without losses and accuracies, with inputs where it loaded data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from caffeforge.runtime.backend import NetStyle
from caffeforge.runtime.net import Layer


@dataclass(frozen=True)
class Inference:
    """What is left of a net's layers.

    Attributes:
        layers: by index among the given ones, in order, those that stay; some with fewer tops or bottoms.
        notes: what was changed, one sentence each.
    """

    layers: dict[int, Layer]
    notes: Sequence[str]


def for_inference(layers: Sequence[Layer], style: NetStyle) -> Inference:
    """Remove layers of the types `style.training` whose tops no remaining layer reads.

    Of the tops of a layer that loads data, those behind the first go if no remaining layer reads them, and
    the layer itself if none is read.
    A layer that only takes loose tops (Silence) reads nothing in this sense, and goes with its last bottom.
    """
    kept, read, notes = dict(enumerate(layers)), set[str](), list[str]()
    sink = style.loose_tops.TYPE if style.loose_tops is not None else ""
    for index, layer in reversed(tuple(kept.items())):
        if layer.type in style.training and read.isdisjoint(layer.tops):
            del kept[index]
        elif layer.type != sink:
            read.update(layer.bottoms)
    for index, layer in tuple(kept.items()):
        if layer.type in style.data and read.isdisjoint(layer.tops):
            del kept[index]
    removed = [layer for index, layer in enumerate(layers) if index not in kept]
    if removed:
        names = ", ".join(f"{layer.name} ({layer.type})" for layer in removed)
        notes.append(f"left out, as inference does not need them: {names}")
    gone = {top for layer in removed for top in layer.tops}
    for index, layer in tuple(kept.items()):
        if layer.type in style.data:
            tops = (*layer.tops[:1], *(top for top in layer.tops[1:] if top in read))
            gone.update(set(layer.tops) - set(tops))
            kept[index] = replace(layer, tops=tops)
            notes.append(
                f"layer {layer.name} ({layer.type}) gives inputs, as they leave it: {', '.join(tops)}"
            )
    for index, layer in tuple(kept.items()):
        if layer.type == sink and not gone.isdisjoint(layer.bottoms):
            bottoms = tuple(bottom for bottom in layer.bottoms if bottom not in gone)
            kept[index] = replace(layer, bottoms=bottoms)
            if not bottoms:
                del kept[index]
    return Inference(kept, tuple(notes))
