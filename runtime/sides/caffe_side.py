"""A Caffe net, read back from its files and run; its map beside it says which value each blob is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import FileError
from caffeforge.runtime.graph import Origin
from caffeforge.runtime.loaded import LoadedNet, load
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
        self._net = load(prototxt, caffemodel, backend, providers=providers)
        self.title = f"{backend} net {prototxt.name}"
        self.inputs: Mapping[str, Input] = {name: Input(shape) for name, shape in self._net.inputs.items()}
        self.outputs: Sequence[str] = self._net.outputs
        self._blobs, self.computed = _computed(self._net, _map(prototxt.with_suffix(".map.json")))

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

    A blob that several layers write holds what the last of them leaves; a layer that the map knows gives
    the source's value, any other one is called by its blob.
    """
    last = {top: layer for layer in net.net.layers for top in layer.tops}
    blobs: dict[str, str] = {}
    computed = []
    for layer in net.net.layers:
        tops = [top for top in layer.tops if last[top] is layer and top in net.hub.blobs]
        if not tops or not layer.bottoms:
            continue
        entry = mapped.get(layer.name, {})
        if entry and not entry.get("value"):
            continue  # an inner layer of a rule: the source has no such value
        origin = Origin(entry.get("module", ""), entry.get("source_op", ""), entry.get("source", ""))
        for top in tops[:1] if entry else tops:
            value = entry.get("value") or top
            blobs[value] = top
            computed.append(Computed(value, layer.name, layer.type, origin))
    return blobs, computed


def _map(path: Path) -> dict[str, dict[str, Any]]:
    """Return the entries of a map by layer name; none if there is no such file.

    Raises:
        FileError: it is no map.
    """
    try:
        layers = json.loads(path.read_text("utf-8"))["layers"]
        return {entry["layer"]: entry for entry in layers}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError):
        hint = "export the net again, or remove the file to compare by blob names"
        raise FileError("this is no map of a net", where=str(path), hint=hint) from None
