"""What one layer computes in one dialect, and whether that is what another dialect's layer computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from caffeforge.generated import hub
from caffeforge.runtime.array import Array
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.constraints import constrain_any, constrain_type
from caffeforge.runtime.errors import GraphError, ReadError
from caffeforge.runtime.graph import Node, Value
from caffeforge.runtime.hub_from_net import refuse_unread
from caffeforge.runtime.in_place import unsafe
from caffeforge.runtime.net import Layer
from caffeforge.runtime.read import Read
from caffeforge.runtime.refusal import Refused, working_out
from caffeforge.runtime.unread_layers import no_rule


@dataclass(frozen=True)
class Reading:
    """A layer as hub nodes over its bottoms.

    Attributes:
        results: what the tops hold; empty for a layer that gives inputs.
        input_shapes: for such a layer, the shape of each top.
    """

    nodes: tuple[Node, ...]
    results: tuple[Value, ...]
    input_shapes: tuple[tuple[int, ...], ...]


def read_layer(
    layer: Layer, backend: Backend, bottoms: Sequence[Value], *, is_source: bool = False
) -> Reading:
    """Return what a layer computes of `bottoms`.

    Args:
        layer: one of the dialect.
        backend: the dialect.
        bottoms: what the layer reads.
        is_source: it is there already, so that it does not matter whether the chip takes it.

    Raises:
        ReadError: the dialect has no rule for it, the rule does not hold, or the chip refuses the layer.
    """
    where = f"layer {layer.name} ({layer.type})"
    reader = backend.readers.get(layer.type)
    if reader is None:
        raise ReadError(no_rule(layer.type, backend), where=where)
    try:
        with working_out(reader.rule):
            refuse_unread(layer, reader)
            _refuse_unsafe(layer, backend)
            read = Read(layer, bottoms)
            if not is_source:
                constrain_type(read, layer, backend)
            reader.function(read, layer.param)
            if read.input_shapes:
                return Reading((), (), tuple(read.input_shapes))
            results = tuple(read.results())
            if not is_source:
                constrain_any(read, layer, (bottoms, results), backend)
            return Reading(tuple(read.nodes), results, ())
    except Refused as refused:
        raise ReadError(refused.sentence, where=where) from None
    except GraphError as error:
        raise ReadError(error.what, where=where) from None


def _refuse_unsafe(layer: Layer, backend: Backend) -> None:
    reason = unsafe(layer.type, layer.bottoms, layer.tops, backend.net)
    if reason:
        raise Refused(reason)


def same(one: Reading, other: Reading) -> bool:
    """Tell whether two readings of the same bottoms are the same ops, wired alike."""
    if one.input_shapes or other.input_shapes:
        return one.input_shapes == other.input_shapes
    if len(one.nodes) != len(other.nodes) or len(one.results) != len(other.results):
        return False
    pairs: dict[Value, Value] = {}
    for ours, theirs in zip(one.nodes, other.nodes, strict=True):
        if ours.op != theirs.op or not _are_paired(ours.inputs, theirs.inputs, pairs):
            return False
        if [v.dims for v in ours.outputs] != [v.dims for v in theirs.outputs]:
            return False
        pairs.update(zip(ours.outputs, theirs.outputs, strict=True))
    return _are_paired(one.results, other.results, pairs)


def _are_paired(
    ours: Sequence[Value | None], theirs: Sequence[Value | None], pairs: dict[Value, Value]
) -> bool:
    return len(ours) == len(theirs) and all(
        _is_pair(one, other, pairs) for one, other in zip(ours, theirs, strict=True)
    )


def _is_pair(one: Value | None, other: Value | None, pairs: dict[Value, Value]) -> bool:
    if one is None or other is None:
        return one is other
    if one.data is not None and other.data is not None:
        return _are_equal(one.data, other.data)
    return pairs.get(one, one) is other


def _are_equal(one: Array, other: Array) -> bool:
    if one is other:
        return True
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return bool(np.array_equal(one.numpy(), other.numpy(), equal_nan=one.dtype.startswith("float")))


def with_identities(reading: Reading, layer: Layer, bottoms: Sequence[Value]) -> Reading:
    """Return a reading in which each top is the result of a node, and of one alone, under its own name."""
    own = {value for node in reading.nodes for value in node.outputs}
    nodes, results = list(reading.nodes), []
    for top, value in zip(layer.tops, reading.results, strict=True):
        if value not in own:
            result = Value(top, value.dtype, value.dims)
            nodes.append(Node(f"{layer.name}/{top}", hub.Identity(), [value], [result], layer.origin))
            value = result
        own.discard(value)
        results.append(value)
    return Reading(tuple(nodes), tuple(results), reading.input_shapes)
