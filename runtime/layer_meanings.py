"""What the layers of a net compute in its dialect, and whether another dialect reads one of them the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from caffeforge.runtime.backend import Backend
from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.graph import Value
from caffeforge.runtime.net import Layer, Net
from caffeforge.runtime.random_weights import Ones, with_random_blobs
from caffeforge.runtime.read import Read
from caffeforge.runtime.refusal import Refused, working_out
from caffeforge.runtime.transcode.reading import Reading, read_layer, same


@dataclass(frozen=True)
class Meaning:
    """One layer, with weights of the right shapes if its net has none, and what it computes."""

    layer: Layer
    bottoms: Sequence[Value]
    reading: Reading


def meanings(net: Net, backend: Backend) -> dict[str, Meaning]:
    """Return what each layer of a net computes, by name; none from the first one on that is refused."""
    bare = not any(layer.blobs for layer in net.layers)
    values = {name: Value(name, "float32", shape) for name, shape in net.inputs}
    found: dict[str, Meaning] = {}
    for layer in net.layers:
        if any(name not in values for name in layer.bottoms):
            break
        bottoms = [values[name] for name in layer.bottoms]
        try:
            full = with_ones(layer, backend, bottoms) if bare else layer
            reading = read_layer(full, backend, bottoms, is_source=True)
        except (CaffeforgeError, Refused):
            break
        found[layer.name] = Meaning(full, bottoms, reading)
        inputs = [Value(top, "float32", s) for top, s in zip(layer.tops, reading.input_shapes, strict=False)]
        values.update(zip(layer.tops, inputs or reading.results, strict=True))
    return found


def means_the_same(meaning: Meaning, layer: Layer, backend: Backend) -> bool:
    """Tell whether a dialect's reading of the same layer computes the same."""
    try:
        given = replace(layer, blobs=meaning.layer.blobs)
        return same(meaning.reading, read_layer(given, backend, meaning.bottoms, is_source=True))
    except CaffeforgeError:
        return False


def with_ones(layer: Layer, backend: Backend, bottoms: Sequence[Value]) -> Layer:
    """Return a layer with blobs of the shapes that its rule asks for; as it is if it has no rule.

    Raises:
        Refused: the rule refuses it whatever its blobs are.
    """
    reader = backend.readers.get(layer.type)
    if reader is None:
        return layer

    def build(trial: Layer) -> None:
        with working_out(reader.rule):
            reader.function(Read(trial, bottoms), trial.param)

    return with_random_blobs(layer, 0, build, Ones)
