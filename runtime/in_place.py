"""In-place layers: activations that write over their bottom, as Caffe nets have them, where that is safe.

Caffe itself checks few layers: most of those that read a bottom after they wrote a top compute nonsense.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from caffeforge.runtime.backend import NetStyle
from caffeforge.runtime.net import Net


def run_in_place(net: Net, types: Collection[str], views: Collection[str], outputs: Collection[str]) -> None:
    """Let layers of `types` work in place, in `net` itself, where nothing else reads their bottom.

    A blob that several layers write has the name of the first one, or of the net's output that it is. The
    values that are written over cannot be observed any more: their layers have no source.

    Args:
        net: each blob has one writer.
        types: layer types that the dialect can run in place.
        views: layer types whose tops share their bottom's memory, which others may still read.
        outputs: blobs whose names must stay.
    """
    readers = Counter(bottom for layer in net.layers for bottom in layer.bottoms)
    writers = {top: index for index, layer in enumerate(net.layers) for top in layer.tops}
    fixed = {name for name, _ in net.inputs} | set(outputs)
    fixed.update(top for layer in net.layers if not layer.bottoms for top in layer.tops)
    renamed: dict[str, str] = {}
    for layer in net.layers:
        if layer.type not in types or len(layer.bottoms) != 1 or len(layer.tops) != 1:
            continue
        (bottom,), (top,) = layer.bottoms, layer.tops
        writer = net.layers[writers[bottom]] if bottom in writers else None
        if bottom in fixed or readers[bottom] != 1 or writer is None or writer.type in views:
            continue
        name = _final(bottom, renamed)
        renamed[name if top in fixed else top] = top if top in fixed else name
        if writer.tops[0] == bottom:
            net.layers[writers[bottom]] = replace(writer, source="")
    for index, layer in enumerate(net.layers):
        bottoms = tuple(_final(name, renamed) for name in layer.bottoms)
        tops = tuple(_final(name, renamed) for name in layer.tops)
        net.layers[index] = replace(layer, bottoms=bottoms, tops=tops)


def unsafe(kind: str, bottoms: Sequence[str], tops: Sequence[str], style: NetStyle) -> str:
    """Return why a layer of type `kind` may not write over a bottom, empty if it does not or may."""
    over = [name for name in tops if name in bottoms]
    if not over:
        return ""
    if kind not in style.in_place and kind not in style.takes_in_place:
        return f"top {over[0]} is a bottom too, and {kind} computes something else when it works in place"
    if over != [bottoms[0]] or tops[0] != bottoms[0] or bottoms.count(bottoms[0]) > 1:
        only = "only the first top may be the first bottom, which is read once"
        return f"top {over[0]} is a bottom too: {only}"
    return ""


def _final(name: str, renamed: dict[str, str]) -> str:
    while name in renamed:
        name = renamed[name]
    return name
