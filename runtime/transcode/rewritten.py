"""One layer of a dialect as layers of another, through the hub."""

from __future__ import annotations

from collections.abc import Sequence

from caffeforge.generated.hub.fusions import PATTERNS
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.emit import LayerCall
from caffeforge.runtime.fuse import fuse
from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.legalize import directly, legalize
from caffeforge.runtime.net import Layer
from caffeforge.runtime.transcode.reading import read_layer, with_identities


def rewrite(layer: Layer, source: Backend, target: Backend, bottoms: Sequence[Value]) -> list[LayerCall]:
    """Return layers of `target` that compute what `layer` does; values are named as its blobs.

    Args:
        layer: what to express.
        source: its dialect.
        target: the other one.
        bottoms: its operands, of which only dtypes and shapes count.

    Raises:
        LegalizeError: the target cannot express it.
        ReadError: it has no meaning in its own dialect.
    """
    given = {name: Value(name, v.dtype, v.dims) for name, v in zip(layer.bottoms, bottoms, strict=True)}
    operands = [given[name] for name in layer.bottoms]
    reading = with_identities(read_layer(layer, source, operands, is_source=True), layer, operands)
    for top, value in zip(layer.tops, reading.results, strict=True):
        value.name = top if top not in given else f"{top}@{layer.name}"
    graph = Graph(layer.name, list(given.values()), list(reading.results), _named(reading.nodes, layer))
    fuse(graph, (*target.patterns, *PATTERNS), lambda node: directly(node, target))
    return legalize(graph, target)


def _named(nodes: Sequence[Node], layer: Layer) -> list[Node]:
    """Return nodes with names of their own; the last one is the layer's."""
    names: set[str] = set()
    for node in nodes:
        count, name = 1, node.name
        while name in names:
            count += 1
            name = f"{node.name}~{count}"
        node.name = name
        names.add(name)
    if layer.name not in names:
        nodes[-1].name = layer.name
    return list(nodes)
