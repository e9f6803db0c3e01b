"""What one alternative of a rule yields for one node: layers of the backend, or other nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from caffeforge.runtime.array import Array
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.builder import Builder
from caffeforge.runtime.constraints import constrain_any, constrain_type
from caffeforge.runtime.graph import Node, Value
from caffeforge.runtime.message import LayerParam
from caffeforge.runtime.net import Layer
from caffeforge.runtime.read import Read
from caffeforge.runtime.refusal import Refused, Refusing

T = TypeVar("T")


class Call(Protocol):
    """What a target's rules yield at last, a layer or an op; see LayerCall for the attributes."""

    name: str
    node: Node
    rule: str
    root: Node | None
    notes: tuple[str, ...]
    approximate: bool

    @property
    def kind(self) -> str: ...


C = TypeVar("C", bound=Call)


@dataclass
class LayerCall:
    """A layer over values, before blobs have names.

    Attributes:
        node: what the rule wrote it for.
        rule: where that rule stands, after those whose lowering led to it.
        root: the node of the source's graph that it is part of.
        notes: what the rules say that a report should say.
        approximate: a rule that led to it is an approximation.
    """

    name: str
    param: LayerParam
    bottoms: tuple[Value, ...]
    tops: list[Value]
    blobs: tuple[Array, ...]
    node: Node
    rule: str
    root: Node | None = None
    notes: tuple[str, ...] = ()
    approximate: bool = False

    @property
    def kind(self) -> str:
        """What reports call it: the layer's type."""
        return self.param.TYPE


class Emission(Builder, Generic[C]):
    """What one alternative yields for `node`: calls of the target, then nodes that have to be legalized."""

    def __init__(self, node: Node, rule: str, counts: dict[str, int] | None = None) -> None:
        super().__init__(node.name, node.origin, counts)
        self.node = node
        self.rule = rule
        self.calls: list[C] = []

    def known(self, static: T | None) -> T:
        """Return a static input that the op needs; refused where it is computed when the model runs."""
        if static is None:
            raise Refused("an input that must be known is computed when the model runs", self.rule)
        return static


class Emit(Emission[LayerCall]):
    """Handed to a generated emitter, which calls `layer`, or `value` and `apply` for a rewrite."""

    def __init__(self, node: Node, rule: str, backend: Backend, counts: dict[str, int] | None = None) -> None:
        super().__init__(node, rule, counts)
        self.backend = backend

    def layer(
        self,
        param: LayerParam,
        bottoms: Sequence[Value | None],
        *,
        blobs: Sequence[Value | Array | None] = (),
        tops: Sequence[Value | None] | None = None,
        loose: int = 0,
        kept: int = 0,
    ) -> Value:
        """Append a layer and return the top that goes on.

        Args:
            param: the layer's parameters.
            bottoms: operands; an absent one is dropped.
            blobs: weights; an absent one is dropped, one that is no constant is refused.
            tops: the node's results, for its last layer; None for an inner result.
            loose: how many further tops it has, which nothing reads.
            kept: the place among them of the top that goes on.
        """
        last = tops is not None
        name = self.stem if last else self.fresh(param.TYPE)
        results = [t for t in tops if t is not None] if tops is not None else [Value(name, "float32", ())]
        result = results[0] if results else None
        others = [Value(f"{name}/loose_{index}", "float32", ()) for index in range(loose)]
        results = [*others[:kept], *results, *others[kept:]]
        arrays = tuple(self._blob(blob) for blob in blobs if blob is not None)
        given = tuple(b for b in bottoms if b is not None)
        for bottom in given:
            if bottom.data is not None:
                raise Refused(f"{bottom.name} is a constant where {param.TYPE} takes a bottom", self.rule)
        self.calls.append(LayerCall(name, param, given, results, arrays, self.node, self.rule))
        if self.backend.constraints or self.backend.constrain_any:
            self._constrain(self.calls[-1])
        return result or Value(name, "float32", ())

    def finish(self, top: Value, result: Value) -> None:
        """Make the last layer yield the node's result in place of `top`."""
        last = self.calls[-1]
        last.tops[last.tops.index(top)] = result
        last.name = self.stem

    def _constrain(self, call: LayerCall) -> None:
        """Refuse a layer that the chip refuses; give inner results the sizes that later layers need."""
        layer = Layer(call.name, call.param, tops=tuple(v.name for v in call.tops), blobs=call.blobs)
        constrain_type(Read(layer, call.bottoms), layer, self.backend)
        known = [top for top in call.tops if top.producer]
        reader = self.backend.readers.get(layer.type)
        if reader is not None and len(known) < len(call.tops):
            read = Read(layer, call.bottoms)
            reader.function(read, call.param)
            for top, value in zip(call.tops, read.results(), strict=True):
                top.dims = value.dims
            known = call.tops
        constrain_any(Refusing(), layer, (call.bottoms, known), self.backend)

    def _blob(self, blob: Value | Array) -> Array:
        if isinstance(blob, Array):
            return blob
        if blob.data is None:
            raise Refused(f"{blob.name} must be a constant, it is computed", self.rule)
        return blob.data
