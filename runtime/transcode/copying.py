"""A layer of one dialect as the same layer of another: only where both are read as the same ops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from google.protobuf.message import Message as Proto

from caffeforge.runtime.backend import Backend
from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.graph import Value
from caffeforge.runtime.message import Field
from caffeforge.runtime.net import Layer
from caffeforge.runtime.op import python_name
from caffeforge.runtime.private_pool import typed_layer
from caffeforge.runtime.prototxt_reader import TRAINING_FIELDS
from caffeforge.runtime.transcode.by_name import Missing, copy_by_name
from caffeforge.runtime.transcode.reading import Reading, read_layer, same

FRAME = frozenset({"name", "type", "bottom", "top"})


class Copier:
    """Copies layers from one dialect to another.

    Args:
        source: the dialect of the layers.
        target: the other one.
        layer_parameter: the target's class of a layer's message.

    Attributes:
        notes: what was left out of copies because it does not matter for inference, one sentence each.
    """

    def __init__(self, source: Backend, target: Backend, layer_parameter: Any) -> None:
        self.source = source
        self.target = target
        self.layer_parameter = layer_parameter
        self.notes: list[str] = []

    def copy(self, layer: Layer, proto: Proto, bottoms: Sequence[Value], reading: Reading) -> Proto | None:
        """Return the layer as the target has it, None if it has none that is read alike.

        Args:
            layer: the layer, with its weights.
            proto: the same as its text says it.
            bottoms: its operands.
            reading: what it computes of them.
        """
        cls = self.target.layer_types.get(layer.type)
        reader = self.source.readers.get(layer.type)
        if cls is None or reader is None:
            return None
        for defaults in (False, True):
            new = self.layer_parameter()
            missing = [m for m in copy_by_name(proto, new) if not _is_of_no_matter(m, reader.ignores)]
            if missing or self._foreign(new, layer.type):
                return None
            if defaults and not self._set_defaults(layer, new):
                return None
            try:
                param = typed_layer(cls, new)
                if same(reading, read_layer(replace(layer, param=param), self.target, bottoms)):
                    self._note(proto, new, layer)
                    return new  # type: ignore[no-any-return]
            except CaffeforgeError:
                continue
        return None

    def copy_unread(self, proto: Any) -> Proto | None:
        """Return a layer that inference does without, None if the target's schema has another one."""
        new = self.layer_parameter()
        if proto.type not in self.target.layer_types or copy_by_name(proto, new):
            return None
        ours, theirs = self.source.layer_types.get(proto.type), self.target.layer_types[proto.type]
        known = {field.name: field.default for field in ours.FIELDS} if ours is not None else {}
        other = any(known.get(f.name, f.default) != f.default for f in theirs.FIELDS)
        return None if other or self._foreign(new, proto.type) else new

    def _foreign(self, proto: Proto, kind: str) -> list[str]:
        """Return the fields that are set and mean nothing to the type in the target."""
        cls, reader = self.target.layer_types[kind], self.target.readers.get(kind)
        own = {cls.PARAM.name} if cls.PARAM is not None else {field.name for field in cls.FIELDS}
        own |= FRAME | TRAINING_FIELDS | set(reader.ignores if reader else ())
        return [field.name for field, _ in proto.ListFields() if field.name not in own]

    def _set_defaults(self, layer: Layer, new: Any) -> bool:
        """Set the fields that the layer leaves out and whose default is another one in the target."""
        cls, reads = self.target.layer_types[layer.type], self.source.readers[layer.type].reads
        theirs = {field.name: field for field in cls.FIELDS}
        held = getattr(new, cls.PARAM.name) if cls.PARAM is not None else new
        changed = False
        for field in layer.param.FIELDS:
            other = theirs.get(field.name)
            absent = getattr(layer.param, python_name(field.name)) is None
            if other is None or not absent or field.name not in reads or field.kind == "message":
                continue
            if field.default is not None and field.default != other.default:
                setattr(held, field.name, _number(other, field.default))
                changed = True
        return changed

    def _note(self, proto: Proto, new: Proto, layer: Layer) -> None:
        lost = copy_by_name(proto, self.layer_parameter())
        if lost:
            paths = ", ".join(dict.fromkeys(m.path for m in lost))
            self.notes.append(f"layer {layer.name} loses {paths}, of no matter for inference")


def _is_of_no_matter(missing: Missing, ignores: Sequence[str]) -> bool:
    """Tell whether a field that has no place is for training, or ignored by the rule of its layer."""
    first, _, rest = missing.path.partition(".")
    return first in TRAINING_FIELDS or first in ignores or rest.partition(".")[0] in ignores


def _number(field: Field, value: Any) -> Any:
    """Return a default as protobuf sets it: an enum's value by number."""
    return field.type[value] if field.kind == "enum" else value
