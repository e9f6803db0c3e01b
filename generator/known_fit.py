"""Which known layers a schema can have, and their rules as that schema needs them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from caffeforge.generator.compatibility import Touched
from caffeforge.generator.known_layers import Form, KnownLayer
from caffeforge.generator.proto import ProtoField, ProtoSchema
from caffeforge.generator.yaml_source import Mapping, Node, Scalar
from caffeforge.generator.yaml_source import Sequence as YamlSequence


@dataclass(frozen=True)
class Fitted:
    """A known layer in one schema.

    Attributes:
        field: the field of LayerParameter with the parameters, empty for none.
        types: the layer types that have this meaning here.
        ops: as those of the entry, for these types, without the fields that the schema does not have.
    """

    known: KnownLayer
    field: str
    types: tuple[Scalar, ...]
    ops: tuple[tuple[Scalar, Node], ...]
    fallback: tuple[tuple[Scalar, Node], ...]


def misfit(known: KnownLayer, schema: ProtoSchema) -> str:
    """Return why a schema cannot have these layers, empty if it can."""
    reasons = [_misfit(known, field, schema) for field in known.fields]
    layer = schema.messages["LayerParameter"]
    present = [reason for reason, name in zip(reasons, known.fields, strict=True) if layer.field(name)]
    if not known.fields or "" in reasons:
        return ""
    if not present and not known.adds and not known.is_open and all(form.optional for form in known.message):
        return ""  # a layer that does without parameters
    return (present or reasons)[0]


def fitted(known: KnownLayer, schema: ProtoSchema, kind: str = "") -> Fitted:
    """Return a known layer that a schema can have; `kind` names the only type that is meant, if one is."""
    types = tuple(word for word in known.types if not kind or word.text == kind)
    field = next((name for name in known.fields if not _misfit(known, name, schema)), "")
    held = _fields(schema, field)
    ops, fallback = (
        tuple((op, _adapted(node, known.written, types[0].text, held)) for op, node in ways)
        for ways in (known.ops, known.fallback)
    )
    return Fitted(known, field, types, ops, fallback)


def with_defaults(
    schema: ProtoSchema, fits: Iterable[Fitted], base: ProtoSchema | None
) -> tuple[ProtoSchema, set[Touched]]:
    """Return a schema with the defaults that rules mean where they leave a field out, and the known fields.

    Those are the defaults of known layers' forms, and those of the base for its own fields.
    """
    messages, own = dict(schema.messages), set[Touched]()
    for fit in fits:
        param = messages["LayerParameter"].field(fit.field)
        if param is None:
            continue
        old = base.messages.get(param.type) if base is not None else None
        due = {f.name: f.default for f in old.fields if f.label != "repeated"} if old is not None else {}
        due |= {form.name: form.default for form in fit.known.message}
        own |= {(param.type, form.name) for form in fit.known.message}
        fields = tuple(
            replace(f, default=due[f.name]) if f.name in due and f.label != "repeated" else f
            for f in messages[param.type].fields
        )
        messages[param.type] = replace(messages[param.type], fields=fields)
    return replace(schema, messages=messages), own


def _misfit(known: KnownLayer, name: str, schema: ProtoSchema) -> str:
    found = schema.messages["LayerParameter"].field(name)
    if found is None:
        return f"LayerParameter has no field {name}"
    if found.kind != "message":
        return f"{name} is no message"
    due = {form.name: form for form in known.message}
    fields = schema.messages[found.type].fields
    for field in fields if not known.is_open else ():
        form = due.pop(field.name, None)
        if form is None and not known.adds:
            return f"{found.type} has a field {field.name}, which says something more"
        if form is not None and not _has_form(field, form, schema):
            return f"{found.type}.{field.name} is {_form(field)}, {form} is expected"
    missing = next((form.name for form in due.values() if not form.optional), "")
    if known.adds and len(due) == len(known.message):
        missing = missing or known.message[0].name
    return f"{found.type} has no field {missing}" if missing else ""


def _has_form(field: ProtoField, form: Form, schema: ProtoSchema) -> bool:
    if field.kind not in form.kinds or (field.label == "repeated") != form.repeated:
        return False
    if field.kind == "enum":
        values = [value for value, _ in schema.enums[field.type].values]
    else:
        values = [f.name for f in schema.messages[field.type].fields] if field.kind == "message" else []
        known = {word.rstrip("?") for word in form.words}
        if form.words and not known.issuperset(values):
            return False  # it may say something more
    return all(word in values or word.endswith("?") for word in form.words)


def _form(field: ProtoField) -> str:
    return f"repeated {field.kind}" if field.label == "repeated" else field.kind


def _fields(schema: ProtoSchema, name: str) -> Sequence[str]:
    param = schema.messages["LayerParameter"].field(name)
    return [f.name for f in schema.messages[param.type].fields] if param is not None else []


def _adapted(node: Node, first: str, kind: str, held: Sequence[str]) -> Node:
    """Return rules with ``layer:`` of another type, and fields named with a ``?`` as the schema has them."""
    if isinstance(node, YamlSequence):
        return YamlSequence(tuple(_adapted(item, first, kind, held) for item in node.items), node.position)
    if isinstance(node, Scalar):
        return node
    entries: list[tuple[Scalar, Node]] = []
    for key, value in node.entries:
        name = key.text.rstrip("?")
        if key.text == "layer" and isinstance(value, Scalar) and value.text == first:
            entries.append((key, replace(value, text=kind)))
        elif name == key.text or name in held:
            entries.append((replace(key, text=name), _adapted(value, first, kind, held)))
    return Mapping(tuple(entries), node.position)
