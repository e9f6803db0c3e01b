"""What a vendor's schema has beyond its base: known layers, unknown ones, fields taken as neutral."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from caffeforge.generator.compatibility import Touched, effective_default
from caffeforge.generator.known_fit import Fitted
from caffeforge.generator.proto import ProtoField, ProtoSchema

HEADER = """# What layers of {file} mean that caffeforge does not know; docs/rules.md tells how to say it.
# A proto does not name layer types: correct those that have another name than their field suggests.
backend: {name}
extends: bvlc
"""


@dataclass(frozen=True)
class Arrival:
    """What a schema has beyond its base.

    Attributes:
        known: layer types that known_layers.yaml tells of, with the name of the meaning.
        open: types of which several meanings fit, with these.
        unknown: fields of LayerParameter with parameters that nobody knows.
        assumed: fields that the base does not know in messages of its layers, whose default is not zero or
            false: that one changes nothing is assumed.
    """

    known: tuple[tuple[str, str], ...] = ()
    open: tuple[tuple[str, str], ...] = ()
    unknown: tuple[ProtoField, ...] = ()
    assumed: tuple[tuple[str, str], ...] = ()


EMPTY = Arrival()


def arrival(
    schema: ProtoSchema,
    base: ProtoSchema | None,
    fits: Iterable[Fitted],
    open: Mapping[str, tuple[str, str]],
    claimed: set[str],
    own: set[Touched],
) -> Arrival:
    """Return what `schema` has beyond `base`.

    Args:
        schema: a dialect's.
        base: the one that its mapping extends; nothing is beyond none.
        fits: the known layers that it has.
        open: by field of LayerParameter, a layer type of which several meanings fit, and these.
        claimed: fields of LayerParameter that the mapping's types name, or its rules ignore.
        own: fields that the dialect's own rules or known layers tell of.
    """
    known = tuple((word.text, fit.known.id.text) for fit in fits for word in fit.types)
    opened = tuple(open.values())
    old = base.messages.get("LayerParameter") if base is not None else None
    layer = schema.messages.get("LayerParameter")
    if base is None or old is None or layer is None:
        return Arrival(known, opened)
    new = [f for f in layer.fields if f.kind == "message" and "param" in f.name and old.field(f.name) is None]
    unknown = tuple(f for f in new if f.name not in claimed | open.keys())
    return Arrival(known, opened, unknown, tuple(_assumed(schema, base, own)))


def _assumed(schema: ProtoSchema, base: ProtoSchema, own: set[Touched]) -> Iterable[tuple[str, str]]:
    params = {f.type for f in base.messages["LayerParameter"].fields if f.kind == "message"}
    for name in (name for name in schema.messages if name in params and name in base.messages):
        for field in schema.messages[name].fields:
            if base.messages[name].field(field.name) is None and (name, field.name) not in own:
                value = effective_default(field, schema) if field.label != "repeated" else None
                first = schema.enums[field.type].values[0][0] if field.kind == "enum" else None
                if value and value != first:
                    yield f"{name}.{field.name}", str(value)


def type_of(field: ProtoField) -> str:
    """Return the layer type that a parameter field's name suggests: ``RoiAlign`` for ``roi_align_param``."""
    words = field.name.removesuffix("_params").removesuffix("_param").split("_")
    return "".join(word[:1].upper() + word[1:] for word in words)


def skeleton(name: str, file: str, found: Arrival, schema: ProtoSchema) -> str:
    """Return a mapping that says nothing yet, with what is to be said in comments.

    Args:
        name: the backend's.
        file: the schema's file.
        found: what it brings.
        schema: the schema.
    """
    lines = [HEADER.format(name=name, file=Path(file).name).rstrip()]
    if found.open:
        lines += ["", "# Of these layers several meanings are known: leave the right one.", "#use:"]
        lines += [f"#  {kind}: {ids}" for kind, ids in found.open]
    if found.unknown:
        lines += ["", "#types:"]
        lines += [f"#  {type_of(f)}: {f.name}" for f in found.unknown]
        lines += ["", "#layers:"]
        for f in found.unknown:
            fields = ", ".join(p.name for p in schema.messages[f.type].fields)
            lines += [
                f"#  {type_of(f)}:" + (f"      # fields: {fields}" if fields else ""),
                "#    rewrite: tops[0] = WhatItComputes(bottom)      # in ops of docs/ops.md",
            ]
    return "\n".join(lines) + "\n"
