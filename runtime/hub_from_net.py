"""Net -> hub, layer by layer: the type's reader builds nodes, shapes are known before the next layer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import prod
from typing import Final

from caffeforge.generated import hub
from caffeforge.runtime.backend import Backend, Reader
from caffeforge.runtime.errors import FileError, GraphError, ReadError, joined
from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.message import Message
from caffeforge.runtime.net import Layer, Net
from caffeforge.runtime.open_sizes import name_apart
from caffeforge.runtime.random_weights import Blank, with_random_blobs
from caffeforge.runtime.read import Read
from caffeforge.runtime.refusal import Refused, working_out
from caffeforge.runtime.shared_memory import SharedMemory
from caffeforge.runtime.unread_layers import no_rule

NOT_COMPUTED: Final = "is not computed by any layer before"
_NAMED: Final = 8  # layers without weights that one message names


@dataclass(frozen=True)
class HubNet:
    """A net as a hub graph.

    Attributes:
        blobs: the value that each blob holds in the end.
        nodes: for each layer of the net those that compute it.
        tops: for each layer the values of its tops.
    """

    graph: Graph
    blobs: Mapping[str, Value]
    nodes: Sequence[Sequence[Node]] = ()
    tops: Sequence[Sequence[Value]] = ()


def hub_from_net(
    net: Net,
    backend: Backend,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    *,
    seed: int | None = None,
    blank: type[Blank] = Blank,
) -> HubNet:
    """Return what `net` computes.

    Args:
        net: typed layers with lazy blobs.
        backend: the dialect of `net`.
        shapes: those of inputs that differ from those in the net, as by ``Net.reshape`` in pycaffe.
        seed: give layers that need weights and have none random ones, which are put into `net`.
        blank: what they are; `Ones` where only their shapes matter.

    Raises:
        ReadError: naming the layer, and the condition of its rule that does not hold.
    """
    _check_types(net, backend)
    return _Reading(net, backend, shapes or {}, seed, blank).run()


def _check_types(net: Net, backend: Backend) -> None:
    unknown: dict[str, list[Layer]] = {}
    for layer in net.layers:
        if layer.type not in backend.readers:
            unknown.setdefault(layer.type, []).append(layer)
    if not unknown:
        return
    problems = []
    for kind, layers in unknown.items():
        names = ", ".join(layer.name for layer in layers[:3])
        place = layers[0].origin.source if not layers[0].origin.op else ""
        problems.append(FileError(f"layer {names} ({kind}): {no_rule(kind, backend)}", where=place))
    fault = joined(problems, problems[0].where.rpartition(":")[0] or net.name)
    hint = "cut the net there, or add what is missing under layers: of the mapping"
    if unknown.keys() & set(backend.net.data):
        hint = "put an Input layer with the same top in their place: input_param { shape { dim: ... } }"
    raise ReadError(fault.what, where=fault.where, hint=hint)


class _Reading:
    def __init__(
        self,
        net: Net,
        backend: Backend,
        shapes: Mapping[str, tuple[int, ...]],
        seed: int | None,
        blank: type[Blank],
    ) -> None:
        self.seed, self.blank = seed, blank
        self.net = net
        self.backend = backend
        self.shapes = shapes
        self.inputs: list[Value] = []
        self.nodes: list[Node] = []
        self.blobs: dict[str, Value] = {}
        self.by_layer: list[Sequence[Node]] = []
        self.tops: list[Sequence[Value]] = []
        self.memory = SharedMemory()
        self.open_sizes: set[str] = set()  # names of those that only a run tells
        self.writes_left = Counter(top for layer in net.layers for top in layer.tops)

    def run(self) -> HubNet:
        for name, shape in self.net.inputs:
            self._input(name, shape)
        for layer in self.net.layers:
            try:
                reader = self.backend.readers[layer.type]
                before = len(self.nodes)
                with working_out(reader.rule):
                    self._layer(layer, reader)
                self.by_layer.append(self.nodes[before:])
                self.tops.append([self.blobs[top] for top in layer.tops])
            except Refused as refused:
                rule = f" [{refused.rule}]" if refused.rule else ""
                hint = self._hint(layer, refused.sentence)
                raise ReadError(f"{refused.sentence}{rule}", where=_where(layer), hint=hint) from None
            except GraphError as error:
                raise ReadError(error.what, where=_where(layer)) from None
        outputs = self._outputs()
        _make_unique(self.nodes, {*self.inputs, *self.blobs.values()})
        graph = Graph(self.net.name or "net", self.inputs, outputs, self.nodes)
        return HubNet(graph, self.blobs, self.by_layer, self.tops)

    def _hint(self, layer: Layer, sentence: str) -> str:
        """Return what to do about a refusal for want of a bottom or of weights, empty for any other."""
        if sentence.endswith(NOT_COMPUTED):
            return self._hint_at_bottom(layer)
        if layer.blobs and re.search(r"\bblobs\b", sentence):
            shapes = ", ".join("x".join(map(str, blob.shape)) or "one number" for blob in layer.blobs)
            count = "1 blob" if len(layer.blobs) == 1 else f"{len(layer.blobs)} blobs"
            return f"the caffemodel gives it {count}: {shapes}"
        if layer.blobs or not re.search(r"\b(blobs?|weights)\b", sentence):
            return ""
        given = {other.type for other in self.net.layers if other.blobs}
        if not given:
            return "the net has no weights: give its caffemodel, or ask for random ones"
        without = [
            other.name
            for other in self.net.layers
            if other.type in (layer.type, *given) and not other.blobs and not other.borrows
        ]
        more = f" and {len(without) - _NAMED} more" if len(without) > _NAMED else ""
        return f"the caffemodel has no weights for {', '.join(without[:_NAMED])}{more}: other names there?"

    def _hint_at_bottom(self, layer: Layer) -> str:
        if not self.inputs:
            return "the net has no inputs: put an Input layer before its first layer, with the shape"
        missing = next(bottom for bottom in layer.bottoms if bottom not in self.blobs)
        near = get_close_matches(missing, self.blobs, 1)
        return f"did you mean {near[0]}?" if near else ""

    def _input(self, name: str, shape: Iterable[int]) -> None:
        given = self.shapes.get(name, tuple(shape))
        if min(given, default=0) < 0:
            raise ReadError(f"it has a size below 0: {list(given)}", where=f"input {name}")
        value = Value(name if not self.writes_left[name] else f"{name}@input", "float32", given)
        self.inputs.append(value)
        self.blobs[name] = value
        self.memory.allot(name)

    def _layer(self, layer: Layer, reader: Reader) -> None:
        refuse_unread(layer, reader)
        for bottom in layer.bottoms:
            if bottom not in self.blobs:
                raise Refused(f"bottom {bottom} {NOT_COMPUTED}")
            self.memory.read(bottom)
        for top in layer.tops:
            if top in self.blobs and top not in layer.bottoms:
                raise Refused(f"top {top} is computed by a layer before, and this one does not read it")
        bottoms = [self.blobs[bottom] for bottom in layer.bottoms]

        def build(layer: Layer) -> Read:
            read = Read(layer, bottoms)
            reader.function(read, layer.param)
            return read

        if self.seed is not None and not layer.blobs:
            layer.blobs = with_random_blobs(layer, self.seed, build, self.blank).blobs
        read = build(layer)
        if read.input_shapes:
            for top, shape in zip(layer.tops, read.input_shapes, strict=True):
                self.writes_left[top] -= 1
                self._input(top, shape)
            return
        name_apart(read.nodes, bottoms, self.open_sizes)
        self.nodes += read.nodes
        own = {value for node in read.nodes for value in node.outputs}
        for top, value in zip(layer.tops, list(read.results()), strict=True):
            if value not in own:
                result = Value(top, value.dtype, value.dims)
                self.nodes.append(
                    Node(f"{layer.name}/{top}", hub.Identity(), [value], [result], layer.origin)
                )
                value = result
            own.discard(value)
            self._note_memory(layer, top, value)
            self.writes_left[top] -= 1
            value.name = f"{top}@{layer.name}" if self.writes_left[top] else top
            self.blobs[top] = value

    def _note_memory(self, layer: Layer, top: str, value: Value) -> None:
        """Note which memory a top has; a view holds all elements of the only bottom."""
        first = layer.bottoms[0] if layer.bottoms else ""
        if top in layer.bottoms:
            if not isinstance(value.producer and value.producer.op, hub.Identity):  # as Dropout is
                self.memory.write(top, layer.name)
        elif (
            layer.type in self.backend.net.views
            and len(layer.bottoms) == 1
            and prod(value.dims) == prod(self.blobs[first].dims)
        ):
            self.memory.share(top, first)
        else:
            self.memory.allot(top)

    def _outputs(self) -> list[Value]:
        """Return the net's outputs; one that is an input goes through Identity."""
        outputs = []
        for name in self.net.outputs():
            try:
                self.memory.read(name)
            except Refused as refused:
                raise ReadError(refused.sentence, where=f"output {name}") from None
            value = self.blobs[name]
            if value.producer is None:
                result = Value(f"{name}@output", value.dtype, value.dims)
                self.nodes.append(Node(f"{name}@output", hub.Identity(), [value], [result]))
                value = result
            outputs.append(value)
        return outputs


def _where(layer: Layer) -> str:
    """Return which layer it is, behind the line of the text that it was read from."""
    place = f"{layer.origin.source}: " if layer.origin.source and not layer.origin.op else ""
    return f"{place}layer {layer.name} ({layer.type})"


def _make_unique(nodes: list[Node], blobs: Collection[Value]) -> None:
    """Rename nodes, constants and inner values that have a blob's or another's name."""
    taken = {value.name for value in blobs}
    inner = dict.fromkeys(v for node in nodes for v in (*node.inputs, *node.outputs) if v is not None)
    for value in inner:
        if value not in blobs:
            value.name = free_name(value.name, taken)
            taken.add(value.name)
    names: set[str] = set()
    for node in nodes:
        node.name = free_name(node.name, names)
        names.add(node.name)


def free_name(name: str, taken: set[str]) -> str:
    """Return a name that is not taken: `name` itself, or with a count behind it."""
    count, free = 1, name
    while free in taken:
        count += 1
        free = f"{name}~{count}"
    return free


def refuse_unread(layer: Layer, reader: Reader) -> None:
    """Refuse a layer that sets a field, of a message in it too, that its rule neither reads nor ignores."""
    for path in unread(layer.param, reader):
        raise Refused(f"field {path} is set, and the rule does not read it", reader.rule)


def unread(param: Message, reader: Reader) -> Iterator[str]:
    """Yield the paths of the fields that are set and that a rule neither reads nor ignores."""
    return _unread(param, {*reader.reads, *reader.ignores})


def _unread(message: Message, known: Collection[str], above: str = "") -> Iterator[str]:
    """Yield the path of each field that is set and stands not in `known`, nor does a message around it."""
    for field, value in message.present():
        path = above + field.name
        if path in known:
            continue
        if not any(name.startswith(f"{path}.") for name in known):
            yield path
            continue
        for inner in value if field.label == "repeated" else (value,):
            yield from _unread(inner, known, f"{path}.")
