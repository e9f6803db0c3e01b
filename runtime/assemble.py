"""Legal layers over values -> a Net of named blobs, with Input layers and no loose ends."""

from __future__ import annotations

from collections.abc import Sequence

from caffeforge.runtime.backend import Backend
from caffeforge.runtime.emit import LayerCall
from caffeforge.runtime.errors import LegalizeError
from caffeforge.runtime.graph import Graph, Value
from caffeforge.runtime.net import Layer, Net
from caffeforge.runtime.refusal import Refused


def assemble(graph: Graph, calls: Sequence[LayerCall], backend: Backend) -> Net:
    """Return the net of `calls`, which compute `graph`; a blob is named as the value it holds.

    Raises:
        LegalizeError: an input has no static shape, or a top is loose and the dialect cannot take it.
    """
    inputs, layers = _inputs(graph.inputs, backend)
    names = {value.name for node in graph.nodes for value in node.outputs}
    for call in calls:
        layers.append(
            Layer(
                name=call.name,
                param=call.param,
                bottoms=tuple(v.name for v in call.bottoms),
                tops=tuple(v.name for v in call.tops),
                blobs=call.blobs,
                rule=call.rule,
                origin=call.node.origin,
                op=(call.root or call.node).op.op_type,
                source=call.tops[0].name if call.tops and call.tops[0].name in names else "",
            )
        )
    net = Net(graph.name, layers, inputs)
    _take_loose_tops(net, {value.name for value in graph.outputs}, backend)
    return net


def _inputs(
    values: Sequence[Value], backend: Backend
) -> tuple[list[tuple[str, tuple[int, ...]]], list[Layer]]:
    try:
        if backend.net.input is None:
            return [(value.name, value.shape[:]) for value in values], []
        return [], [Layer(value.name, backend.net.input(value), (), (value.name,)) for value in values]
    except Refused as refused:
        raise LegalizeError(f"an input of a Caffe net has a fixed shape: {refused.sentence}") from None


def _take_loose_tops(net: Net, outputs: set[str], backend: Backend) -> None:
    """Give every top that nothing reads, and that is no output, to the dialect's layer for it."""
    loose = [top for top in net.outputs() if top not in outputs]
    inputs = {name for layer in net.layers if not layer.bottoms for name in layer.tops}
    loose = [top for top in loose if top not in inputs]
    if not loose:
        return
    if backend.net.loose_tops is None:
        raise LegalizeError(f"{backend.name} has no layer that takes unused tops: {', '.join(loose)}")
    name = "loose"
    while any(layer.name == name for layer in net.layers):
        name += "_"
    net.layers.append(Layer(name, backend.net.loose_tops(), tuple(loose)))
