"""A Caffe net, read back from its files and run; its map beside it says which value each blob is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.graph import Origin
from caffeforge.runtime.loaded import LoadedNet, load
from caffeforge.runtime.sides.net_map import naming_of, origin_of, read_map
from caffeforge.runtime.sides.side import Computed, Input


class CaffeSide:
    """A net of a dialect.

    Args:
        prototxt: the text.
        caffemodel: the weights; None for a net without.
        backend: the dialect.
        providers: onnxruntime's execution providers.

    Raises:
        CaffeforgeError: the net cannot be read, or its map is none.
    """

    def __init__(
        self, prototxt: Path, caffemodel: Path | None, backend: str, providers: Sequence[str]
    ) -> None:
        self._net = load(prototxt, caffemodel, backend, providers=providers, exact=True)
        self.title = f"{backend} net {prototxt.name}"
        self.inputs: Mapping[str, Input] = {name: Input(shape) for name, shape in self._net.inputs.items()}
        self.outputs: Sequence[str] = self._net.outputs
        mapped = read_map(prototxt.with_suffix(".map.json"))
        types = {layer.name: layer.type for layer in self._net.net.layers}
        mapped = {name: entry for name, entry in mapped.items() if entry.get("type") == types.get(name)}
        self.naming = naming_of(mapped)
        self._blobs, self.computed = _computed(self._net, mapped)

    def run(self, inputs: Mapping[str, NDArray], *, inner: bool) -> dict[str, NDArray]:
        held = {name: name for name in self.outputs}
        if inner:
            held = {**self._blobs, **held}
        found = self._net.run(inputs, list(dict.fromkeys(held.values())))
        return {value: found[blob] for value, blob in held.items()}


def _computed(
    net: LoadedNet, mapped: Mapping[str, Mapping[str, Any]]
) -> tuple[dict[str, str], list[Computed]]:
    """Return the blob that holds each value, and the values in order.

    A layer that the map knows gives the source's value, any other one is called by its blob. What others
    overwrite is called as ``blob@layer``; the map does not tell it.
    """
    last = {top: layer for layer in net.net.layers for top in layer.tops}
    blobs: dict[str, str] = {}
    computed = []
    for layer in net.net.layers:
        tops = [top for top in layer.tops if top in net.hub.blobs]
        if not tops or not layer.bottoms:
            continue
        entry = mapped.get(layer.name, {})
        if entry and not entry.get("value"):
            continue  # an inner layer of a rule: the source has no such value
        origin = origin_of(entry) if entry else Origin(source=layer.origin.source)
        for top in tops[:1] if entry else tops:
            held = top if last[top] is layer else f"{top}@{layer.name}"
            value = entry.get("value") or held
            blobs[value] = held
            computed.append(Computed(value, layer.name, layer.type, origin, entry.get("op", "")))
    return blobs, computed
