"""Prototxt of one dialect as a Net without weights: what Caffe would build from it in phase TEST.

protobuf parses the text with the dialect's own schema; this module then refuses what would be read
wrongly: parameters that a layer's type does not have, layers fixed to phase TRAIN. What only steers
training is dropped.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final, NamedTuple

from google.protobuf import text_format
from google.protobuf.message import Message as Proto

from caffeforge.runtime.backend import Backend
from caffeforge.runtime.errors import FileError, joined
from caffeforge.runtime.graph import Origin
from caffeforge.runtime.in_place import unsafe
from caffeforge.runtime.legacy import v0_net
from caffeforge.runtime.legacy.v1_net import upgraded_layer
from caffeforge.runtime.net import Layer, Net
from caffeforge.runtime.net_state import State, enum_name, get, included
from caffeforge.runtime.parse_faults import knows_v1, parse_fault
from caffeforge.runtime.private_pool import PrivatePool, typed_layer
from caffeforge.runtime.training_layers import for_inference
from caffeforge.runtime.unknown_names import Unknown, UnknownName, merged, unknown_names

# What a LayerParameter says of training, sharing and phases: none of it is a parameter of a layer.
TRAINING_FIELDS: Final = frozenset({"param", "loss_weight", "propagate_down", "include", "exclude", "phase"})
_OF_LOSSES: Final = "loss_param"  # which Softmax may keep of the loss that it was in training
_NET_FIELDS: Final = frozenset({"input", "input_shape", "input_dim", "state", "force_backward", "debug_info"})
_TOKEN: Final = re.compile(
    r'"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])*'"
    r"|#[^\n]*"
    r"|(?P<open>[{<\[])|(?P<close>[}>\]])|(?P<word>\w+)"
)

_QUOTED: Final = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*')
_STRAY: Final = re.compile("[\udc80-\udcff]")


class Share(NamedTuple):
    """What ``param { name: }`` says of one blob: the name under which layers share it, or empty."""

    name: str
    permissive: bool


@dataclass(frozen=True)
class Prototxt:
    """A net as its text describes it.

    Attributes:
        net: its layers have no blobs yet.
        sharing: for each layer of `net`, the shares of its first blobs.
        dropped: names of the layers that the net has only in other phases or stages, or only for training.
        source: the text and its name, for places in messages.
        indices: for each layer of `net`, its index among the layers of the text.
        protos: every layer of the text by index, as a LayerParameter; also those that `net` leaves out.
    """

    net: Net
    sharing: tuple[tuple[Share, ...], ...]
    dropped: frozenset[str]
    source: Source
    indices: tuple[int, ...]
    protos: Mapping[int, Proto] = field(default_factory=dict)

    def place(self, index: int) -> str:
        """Return ``file:line:col`` of layer `index` of the net."""
        return self.source.place(self.source.layer_word, self.indices[index])


@dataclass(frozen=True)
class Source:
    """The text of a net and the name of its file."""

    text: str
    name: str

    def place(self, word: str, index: int) -> str:
        """Return ``file:line:col`` of the `index`-th `word` outside all braces, else the file's name."""
        found = self._words.get(word, ())
        return self.at(found[index]) if index < len(found) else self.name

    def line(self, word: str, index: int) -> str:
        """Return `place` without the column."""
        found = self._words.get(word, ())
        return self.at(found[index]).rpartition(":")[0] if index < len(found) else self.name

    def at(self, offset: int) -> str:
        """Return ``file:line:col`` of an offset in the text."""
        line = bisect_right(self._starts, offset)
        return f"{self.name}:{line}:{offset - self._starts[line - 1] + 1}"

    def unclosed(self) -> int | None:
        """Return the offset of the last brace that is not closed, None if all are."""
        opened = []
        for token in _TOKEN.finditer(self.text):
            if token["open"]:
                opened.append(token.start())
            elif token["close"] and opened:
                opened.pop()
        return opened[-1] if opened else None

    def has(self, word: str) -> bool:
        """Tell whether `word` stands outside all braces."""
        return word in self._words

    @property
    def layer_word(self) -> str:
        """``layers`` in a net of the format before 2015, else ``layer``."""
        return "layers" if self.has("layers") and not self.has("layer") else "layer"

    @cached_property
    def _starts(self) -> list[int]:
        """The offsets at which lines begin."""
        return [0, *(found.end() for found in re.finditer("\n", self.text))]

    @cached_property
    def _words(self) -> dict[str, list[int]]:
        """The words outside all braces, each with its offsets."""
        depth = 0
        words: dict[str, list[int]] = {}
        for token in _TOKEN.finditer(self.text):
            depth += bool(token["open"]) - bool(token["close"])
            if token["word"] and not depth:
                words.setdefault(token["word"], []).append(token.start())
        return words


def decode(raw: bytes) -> str:
    """Return the text of a prototxt; bytes that are not UTF-8 (comments in GBK) become lone surrogates."""
    return raw.decode("utf-8-sig", "surrogateescape")


def parse(
    text: str,
    backend: Backend,
    name: str = "prototxt",
    pool: PrivatePool | None = None,
    state: State = State(),  # noqa: B008  # it cannot change
) -> Prototxt:
    """Return the net that `text` describes in the backend's dialect; `name` stands for the file in messages.

    Raises:
        FileError: the text is not a net of this dialect; it lists every layer that cannot be read.
    """
    pool = pool or PrivatePool(backend)
    source = Source(text, name)
    if (place := _stray(text)) is not None:  # which protobuf does not survive
        raise FileError(
            "a byte that is not UTF-8 stands outside strings and comments", where=source.at(place)
        )
    proto = pool.message("NetParameter")()
    unknown: list[Unknown] = []
    try:
        text_format.Parse(text, proto)
    except text_format.ParseError as error:
        unknown = unknown_names(text, proto.DESCRIPTOR, source.layer_word)
        if not unknown or (source.layer_word == "layers" and not knows_v1(pool)):
            raise parse_fault(error, source, backend, pool) from None
        proto = pool.message("NetParameter")()
        try:
            text_format.Parse(text, proto, allow_unknown_field=True)
        except RecursionError:
            raise FileError("the braces are nested too deep for a net", where=source.name) from None
        except text_format.ParseError as other:
            problems = [_unknown_name(each, source, backend) for each in unknown]
            fault = parse_fault(other, source, backend, pool)
            known = {problem.where for problem in problems}
            listed = [*problems, *([fault] if fault.where not in known else [])]
            raise joined(merged(listed), source.name) from None
    return _Reader(backend, pool, source, state).read(proto, unknown)


def _stray(text: str) -> int | None:
    """Return where the first byte that is not UTF-8 stands outside strings and comments."""
    if text.isascii():
        return None
    found = _STRAY.search(_QUOTED.sub(lambda part: " " * len(part[0]), text))
    return found.start() if found else None


def read_proto(proto: Proto, backend: Backend, pool: PrivatePool, source: Source) -> Prototxt:
    """Return the net that a NetParameter of the pool describes; `source` tells the places of its layers.

    Raises:
        FileError: it is no net of this dialect; it lists every layer that cannot be read.
    """
    return _Reader(backend, pool, source, State()).read(proto)


class _Reader:
    """Turns one parsed NetParameter into a Net."""

    def __init__(self, backend: Backend, pool: PrivatePool, source: Source, state: State) -> None:
        self.backend = backend
        self.source = source
        self.state = state
        skeleton = backend.skeleton
        self.net_name = pool.field_name("NetParameter", skeleton.net_name)
        self.net_layer = pool.field_name("NetParameter", skeleton.net_layer)
        self.name = pool.field_name("LayerParameter", skeleton.layer_name)
        self.type = pool.field_name("LayerParameter", skeleton.layer_type)
        self.bottom = pool.field_name("LayerParameter", skeleton.layer_bottom)
        self.top = pool.field_name("LayerParameter", skeleton.layer_top)

    def read(self, proto: Proto, unknown: Sequence[Unknown] = ()) -> Prototxt:
        """Return the net; `unknown` is what its text names and `proto` does not have."""
        names: dict[int, list[FileError]] = {}
        for each in unknown:
            names.setdefault(each.layer, []).append(_unknown_name(each, self.source, self.backend))
        if -1 in names:
            raise joined(merged([name for found in names.values() for name in found]), self.source.name)
        problems: list[FileError] = []
        self._refuse_net_fields(proto)
        stages = (*get(get(proto, "state"), "stage", ()), *self.state.stages)
        state = State(self.state.level, stages)
        layers, sharing, indices, dropped = [], [], [], set()
        protos = {}
        given_layers, faults = self._given(proto)
        for index, given in given_layers.items():
            try:
                if index in faults:
                    raise faults[index]
                layer = self._today(given, proto)
                protos[index] = layer
                if not included(layer, state):
                    dropped.add(getattr(layer, self.name))
                    continue
                problems += names.get(index, ())
                layers.append(self._layer(layer, index))
                sharing.append(_shares(layer))
                indices.append(index)
            except FileError as problem:
                problem.where = self.source.place(self.source.layer_word, index)
                problems.append(problem)
        if problems:
            problems += self._meaningless(layers, indices)
            raise joined(merged(problems), self.source.name)
        inference = for_inference(layers, self.backend.net)
        kept = inference.layers
        dropped.update(layer.name for index, layer in enumerate(layers) if index not in kept)
        net = Net(getattr(proto, self.net_name), list(kept.values()), self._inputs(proto), inference.notes)
        shares, places = tuple(sharing[index] for index in kept), tuple(indices[index] for index in kept)
        return Prototxt(net, shares, frozenset(dropped), self.source, places, protos)

    def _meaningless(self, layers: Sequence[Layer], indices: Sequence[int]) -> Iterator[FileError]:
        """Yield layers of which only the type is known, as Python, so that all faults show at once."""
        style = self.backend.net
        for layer, index in zip(layers, indices, strict=True):
            if layer.type not in self.backend.readers and layer.type not in (*style.training, *style.data):
                what = f"no rule of {self.backend.name} tells what layer {layer.name} ({layer.type}) computes"
                why = style.untold.get(layer.type)
                where = self.source.place(self.source.layer_word, index)
                yield FileError(f"{what}: {why}" if why else what, where=where)

    def _given(self, proto: Proto) -> tuple[dict[int, Any], dict[int, FileError]]:
        """Return the layers by index, without padding layers of the oldest format, and what is wrong."""
        old = get(proto, "layers", ())
        if v0_net.is_v0(old):
            unpadded = v0_net.without_padding(old)
            return unpadded.layers, unpadded.faults
        return dict(enumerate(old or getattr(proto, self.net_layer))), {}

    def _refuse_net_fields(self, proto: Proto) -> None:
        given = [descriptor.name for descriptor, _ in proto.ListFields()]
        if "layers" in given and self.net_layer in given:
            what = "the net has both `layer` and `layers`, of which Caffe takes only one kind"
            raise FileError(what, where=self.source.place("layers", 0), hint="write all as `layer`")
        for name in given:
            if name not in _NET_FIELDS and name not in (self.net_name, self.net_layer, "layers"):
                where = self.source.place(name, 0)
                raise FileError(f"the net sets {name}, which has no meaning known here", where=where)
        if self.net_layer not in given and "layers" not in given:
            raise FileError("the text describes no layers", where=self.source.name)

    def _today(self, layer: Proto, net: Proto) -> Proto:
        """Return a layer as it is written today; one of the format before 2015 is upgraded."""
        kind = net.DESCRIPTOR.fields_by_name[self.net_layer].message_type
        if layer.DESCRIPTOR is kind:
            return layer
        result: Proto = type(net)().layer.add()  # type: ignore[attr-defined]
        if v0_net.is_v0(get(net, "layers", ())):
            v0_net.upgrade(layer, result)
        else:
            upgraded_layer(layer, result)
        return result

    def _layer(self, proto: Proto, index: int) -> Layer:
        name, kind = getattr(proto, self.name), getattr(proto, self.type)
        if not kind:
            raise FileError(f"layer {name} has no type", hint='give it one, as `type: "ReLU"`')
        cls = self.backend.layer_types.get(kind)
        if cls is None:
            near = get_close_matches(kind, self.backend.layer_types, 1)
            what = f"layer {name} has type {kind!r}, unknown to {self.backend.name}"
            raise UnknownName(what, f"type {kind}", "".join(near), self.backend.name)
        reader = self.backend.readers.get(kind)
        own = {cls.PARAM.name} if cls.PARAM is not None else {field.name for field in cls.FIELDS}
        own |= {self.name, self.type, self.bottom, self.top, _OF_LOSSES} | TRAINING_FIELDS
        own.update(reader.ignores if reader else ())
        for descriptor, _ in proto.ListFields():
            if descriptor.name == "blobs":
                what = f"layer {name} has weights in the text, where they are not looked for"
                raise FileError(what, hint="let Caffe save them in a caffemodel")
            if descriptor.name not in own:
                raise FileError(
                    f"layer {name} sets {descriptor.name}, which means nothing to its type {kind}",
                    hint="remove it, or name it under `ignore:` of the type's rule",
                )
        if enum_name(proto, "phase") == "TRAIN":
            raise FileError(f"layer {name} is fixed to phase TRAIN", hint="remove `phase: TRAIN` from it")
        bottoms, tops = tuple(getattr(proto, self.bottom)), tuple(getattr(proto, self.top))
        if reason := unsafe(kind, bottoms, tops, self.backend.net):
            raise FileError(f"layer {name}: {reason}", hint="give the top another name")
        return Layer(
            name=name,
            param=typed_layer(cls, proto),
            bottoms=bottoms,
            tops=tops,
            rule=reader.rule if reader else "",
            origin=Origin(source=self.source.line(self.source.layer_word, index)),
        )

    def _inputs(self, proto: Proto) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Return the inputs given as fields of the net, each with its shape, as Caffe pairs them."""
        names = tuple(get(proto, "input", ()))
        shapes = [tuple(shape.dim) for shape in get(proto, "input_shape", ())]
        dims = tuple(get(proto, "input_dim", ()))
        if not shapes and len(dims) == 4 * len(names):  # older nets
            shapes = [dims[start : start + 4] for start in range(0, len(dims), 4)]
        if len(shapes) != len(names):
            given = f"{len(shapes)} input_shape" if shapes else f"{len(dims)} input_dim"
            raise FileError(
                f"the net names {len(names)} inputs and gives {given}",
                where=self.source.place("input", 0),
                hint="give each input one input_shape, or four input_dim",
            )
        return tuple(zip(names, shapes, strict=True))


def _shares(layer: Proto) -> tuple[Share, ...]:
    return tuple(
        Share(get(spec, "name", ""), enum_name(spec, "share_mode") == "PERMISSIVE")
        for spec in get(layer, "param", ())
    )


def _unknown_name(unknown: Unknown, source: Source, backend: Backend) -> UnknownName:
    where = source.at(unknown.offset)
    return UnknownName(unknown.what, unknown.what, unknown.near, backend.name, where=where)
