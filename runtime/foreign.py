"""Does a caffemodel say the same as the prototxt? If not, another dialect wrote it, or it is another net's.

A caffemodel read by the wrong dialect raises no error in protobuf: fields move silently. So its
parameters are never used; they are decoded by the dialect of the text only to be compared with the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from google.protobuf.message import DecodeError
from google.protobuf.message import Message as Proto

from caffeforge.runtime.backend import Backend
from caffeforge.runtime.caffemodel_reader import SavedLayer
from caffeforge.runtime.float32 import float32_text
from caffeforge.runtime.message import Field, Message, field_name
from caffeforge.runtime.net import Layer
from caffeforge.runtime.private_pool import PrivatePool, typed_layer, unknown
from caffeforge.runtime.prototxt_reader import TRAINING_FIELDS
from caffeforge.runtime.same_bytes import unsaid

_ZERO: Final = {"string": "", "bytes": b"", "bool": False, "float": 0.0, "double": 0.0}


class Comparison:
    """Compares the layers of one caffemodel with those of the text, in one dialect.

    Attributes:
        stripped: no layer has parameters; names, types and weights are the same in all dialects.
    """

    def __init__(self, backend: Backend, pool: PrivatePool, layers: Iterable[SavedLayer]) -> None:
        self.backend = backend
        self.layer_parameter = pool.message("LayerParameter")
        self.stripped = not any(self._has_parameters(layer) for layer in layers)

    def _parameters(self, saved: SavedLayer) -> Proto | None:
        """Decode the parameters of a layer; None if they are no LayerParameter of this dialect."""
        try:
            return self.layer_parameter.FromString(saved.rest)
        except DecodeError:
            return None

    def _has_parameters(self, saved: SavedLayer) -> bool:
        proto = self._parameters(saved)
        return proto is None or any(unknown(proto)) or bool(_given(proto) - TRAINING_FIELDS)

    def differences(self, layer: Layer, saved: SavedLayer) -> Iterator[str]:
        """Yield, as sentences, what in a saved layer is foreign to the dialect or different from the text.

        A layer that reads nothing feeds the net: that a deployed net is fed otherwise than a trained one is
        no difference.
        """
        source = not layer.bottoms and not saved.bottoms
        title = f"layer {layer.name}"
        if layer.type != saved.type:
            if not source or saved.blobs:
                yield f"{title} has type {layer.type} in the prototxt and {saved.type} in the caffemodel"
            return
        if self.stripped:
            return
        proto = self._parameters(saved)
        if proto is None:
            yield f"{title} has parameters in the caffemodel that cannot be decoded"
            return
        param = type(layer.param)
        own = {param.PARAM.name} if param.PARAM is not None else {field.name for field in param.FIELDS}
        reader = self.backend.readers.get(layer.type)
        ignored = frozenset(reader.ignores if reader else ())
        other = sorted(_given(proto) - own - TRAINING_FIELDS - ignored)
        foreign = sorted(set(unknown(proto)))
        if other:
            yield f"{title} has in the caffemodel {', '.join(other)}, no field of its type {layer.type}"
        elif foreign:
            yield f"{title} has in the caffemodel {', '.join(foreign)}, unknown to {self.backend.name}"
        elif reader and not source:
            prefix = f"{param.PARAM.name}." if param.PARAM is not None else ""
            there = typed_layer(param, proto)
            for path, ours, theirs in _compare(layer.param, there, ignored):
                yield f"{title}: {prefix}{path} is {ours} in the prototxt and {theirs} in the caffemodel"
            for sentence in unsaid(layer.param, there, ignored):
                yield f"{title} has in the caffemodel {prefix}{sentence}"


def _given(proto: Proto) -> set[str]:
    return {descriptor.name for descriptor, _ in proto.ListFields()}


def _compare(
    ours: Message | None, theirs: Message | None, ignored: frozenset[str] = frozenset()
) -> Iterator[tuple[str, str, str]]:
    """Yield path and both values of each field that differs; an absent one counts as its default."""
    some = ours if ours is not None else theirs
    for field in some.FIELDS if some is not None else ():
        left, right = _values(ours, field), _values(theirs, field)
        if field.name in ignored:
            continue
        if field.kind == "message" and len(left) == len(right):
            for index, (a, b) in enumerate(zip(left, right, strict=True)):
                name = f"{field.name}[{index}]" if field.label == "repeated" else field.name
                below = f"{field.name}."
                inner = frozenset(i.removeprefix(below) for i in ignored if i.startswith(below))
                for path, our, their in _compare(a, b, inner):
                    yield f"{name}.{path}", our, their
        elif _text(field, left) != _text(field, right):
            yield field.name, _text(field, left), _text(field, right)


def _values(message: Message | None, field: Field) -> tuple[Any, ...]:
    """Return the values of a field, one or its default if it is not repeated; an absent message is None."""
    value = getattr(message, field_name(field.name)) if message is not None else None
    if field.label == "repeated":
        return value or ()
    if value is None and field.kind != "message":
        value = field.default
        if value is None:
            value = next(iter(field.type)) if field.kind == "enum" else _ZERO.get(field.kind, 0)
    return (value,)


def _text(field: Field, values: tuple[Any, ...]) -> str:
    """Return values as people read them; equal texts are equal values."""
    texts = [float32_text(v) if field.kind == "float" else str(v) for v in values]
    return f"[{', '.join(texts)}]" if field.label == "repeated" else texts[0]
