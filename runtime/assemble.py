"""Legal layers over values -> a Net of named blobs, with Input layers and no loose ends."""

from __future__ import annotations

from collections.abc import Sequence

from caffeforge.generated import hub
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.emit import LayerCall
from caffeforge.runtime.errors import LegalizeError
from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.legalize import legalize
from caffeforge.runtime.net import Layer, Net
from caffeforge.runtime.refusal import Refused


def assemble(graph: Graph, calls: Sequence[LayerCall], backend: Backend) -> Net:
    """Return the net of `calls`, which compute `graph`; a blob is named as the value it holds.

    Raises:
        LegalizeError: an input has no static shape, or a top is loose and the dialect cannot take it.
    """
    inputs, layers = input_layers(graph.inputs, backend)
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
    for value in graph.outputs:
        _keep_loose(net, value, backend)
    _take_loose_tops(net, {value.name for value in graph.outputs}, backend)
    return net


def input_layers(
    values: Sequence[Value], backend: Backend
) -> tuple[list[tuple[str, tuple[int, ...]]], list[Layer]]:
    """Return what gives a net its inputs in this dialect: names and shapes for the net, or layers.

    Raises:
        LegalizeError: an input has no static shape.
    """
    try:
        if backend.net.input is None:
            return [(value.name, value.shape[:]) for value in values], []
        return [], [Layer(value.name, backend.net.input(value), (), (value.name,)) for value in values]
    except Refused as refused:
        raise LegalizeError(f"an input of a Caffe net has a fixed shape: {refused.sentence}") from None


def _keep_loose(net: Net, output: Value, backend: Backend) -> None:
    """Copy an output that layers read as well: Caffe's outputs are the blobs that no layer reads.

    The layer that computes it, and those that read it, then use a blob of another name. A dialect that has
    no layer for a copy keeps the output as a blob that is read by its name only.
    """
    blob = output.name
    writer = next((layer for layer in net.layers if blob in layer.tops), None)
    if writer is None or not writer.bottoms or all(blob not in layer.bottoms for layer in net.layers):
        return
    inner = Value(f"{blob}/read", output.dtype, output.dims)
    node = Node(f"{blob}/output", hub.Identity(), [inner], [Value(blob, output.dtype, output.dims)])
    try:
        calls = legalize(Graph("copy", [inner], node.outputs, [node]), backend)
    except LegalizeError:
        return
    for layer in net.layers:
        layer.bottoms = tuple(inner.name if name == blob else name for name in layer.bottoms)
    writer.tops = tuple(inner.name if name == blob else name for name in writer.tops)
    for call in calls:
        bottoms, tops = (tuple(value.name for value in values) for values in (call.bottoms, call.tops))
        net.layers.append(Layer(call.name, call.param, bottoms, tops, call.blobs, rule=call.rule))


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
