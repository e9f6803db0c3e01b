"""What a chip refuses although its dialect can say it: of one layer, of any layer, of a net."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from caffeforge.runtime.backend import Backend
from caffeforge.runtime.errors import GraphError, LegalizeError
from caffeforge.runtime.graph import Graph, Value
from caffeforge.runtime.net import Layer
from caffeforge.runtime.read import Read
from caffeforge.runtime.refusal import Refused, Refusing, working_out


def constrain_type(read: Read, layer: Layer, backend: Backend) -> None:
    """Refuse a layer that the constraints of its type do not take; `read` has its bottoms.

    Raises:
        Refused: by the first condition that does not hold, if `read` does not keep what is refused.
    """
    constraint = backend.constraints.get(layer.type)
    if constraint is not None:
        constraint(read, layer.param)


def constrain_any(refusing: Refusing, layer: Layer, values: Layered, backend: Backend) -> None:
    """Refuse a layer that the constraints on all layers do not take.

    Args:
        refusing: keeps what is refused, or raises it.
        layer: it may be any.
        values: its bottoms and its results; of these only the known ones.
        backend: whose constraints.
    """
    if backend.constrain_any is not None:
        backend.constrain_any(refusing, layer.type, *values)


Layered = tuple[Sequence[Value], Sequence[Value]]


def all_refusals(layer: Layer, bottoms: Sequence[Value], backend: Backend) -> Iterator[Refused]:
    """Yield all that the constraints of its type refuse in a layer.

    What cannot be worked out because an earlier condition does not hold is no refusal of its own.
    """
    read = Read(layer, bottoms)
    read.kept = []
    place = f"constraints of {layer.type}"
    try:
        with working_out(place):
            constrain_type(read, layer, backend)
    except Refused as refused:
        if refused.rule != place or not read.kept:
            read.kept.append(refused)
    except (GraphError, TypeError):
        if not read.kept:
            raise
    yield from read.kept


def any_refusals(
    layer: Layer, bottoms: Sequence[Value], results: Sequence[Value], backend: Backend
) -> list[Refused]:
    """Return all that the constraints on every layer refuse in this one."""
    refusing = Refusing()
    refusing.kept = []
    try:
        with working_out(f"constraints of {backend.name}"):
            constrain_any(refusing, layer, (bottoms, results), backend)
    except Refused as refused:
        refusing.kept += [] if refusing.kept else [refused]
    return refusing.kept


def net_refusals(inputs: Sequence[Value], outputs: Sequence[Value], backend: Backend) -> list[Refused]:
    """Return all that a chip refuses of a net's inputs and outputs."""
    refusing = Refusing()
    refusing.kept = []
    if backend.constrain_net is not None:
        try:
            with working_out(f"constraints of {backend.name}"):
                backend.constrain_net(refusing, inputs, outputs)
        except Refused as refused:
            refusing.kept.append(refused)
    return refusing.kept


def refuse_net(graph: Graph, backend: Backend) -> None:
    """Refuse a graph whose inputs and outputs the chip does not take.

    Raises:
        LegalizeError: with one line for each condition that does not hold.
    """
    found = net_refusals(graph.inputs, graph.outputs, backend)
    if found:
        said = "\n".join(f"  {refused.rule}: {refused.sentence}" for refused in found)
        document = {
            "backend": backend.name,
            "graph": graph.name,
            "refused": [],
            "net": [{"rule": refused.rule, "refused": refused.sentence} for refused in found],
        }
        raise LegalizeError(f"{backend.name} does not take {graph.name} as a net:\n{said}", document=document)
