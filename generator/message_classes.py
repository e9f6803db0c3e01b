"""The classes of ``layers.py``: one per enum, message and layer type of the schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from caffeforge.generator.compatibility import Inheritance, Uses
from caffeforge.generator.diagnostics import Diagnostics
from caffeforge.generator.names import OF_LAYERS, field_name, free_name
from caffeforge.generator.proto import ProtoField, ProtoMessage, ProtoSchema
from caffeforge.generator.python_text import Code, call, dict_of, doc, is_name, list_of, literal, tuple_of
from caffeforge.generator.types import ANY, BOOL, FLOAT, INT, STRING, Type
from caffeforge.generator.yaml_source import Scalar

PYTHON_TYPES = {"float": "float", "double": "float", "bool": "bool", "string": "str", "bytes": "bytes"}
ZEROS: dict[str, Any] = {"float": 0.0, "double": 0.0, "bool": False, "string": "", "bytes": b""}


@dataclass(frozen=True)
class LayerType:
    """One layer type of the dialect.

    Attributes:
        param: the field of LayerParameter that holds its parameters, if there is just one.
        fields: its parameter fields, as rules name them.
        python: its class in ``layers.py``.
    """

    name: str
    param: ProtoField | None
    fields: tuple[ProtoField, ...]
    python: Code

    @property
    def message(self) -> str:
        """The message that holds the fields."""
        return self.param.type if self.param else "LayerParameter"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameter fields."""
        return tuple(field.name for field in self.fields)


def layer_types(
    types: Mapping[str, tuple[Scalar, tuple[Scalar, ...]]],
    schema: ProtoSchema,
    inheritance: Inheritance,
    diagnostics: Diagnostics,
) -> dict[str, LayerType]:
    """Return the layer types of ``types:``; names the proto does not have go to `diagnostics`.

    An inherited type whose field the schema does not have is left out.
    """
    known = {field.name: field for field in schema.messages["LayerParameter"].fields}
    found: dict[str, LayerType] = {}
    taken = {*OF_LAYERS, *map(class_name, schema.messages), *_enum_names(schema)}
    for name, (key, params) in types.items():
        missing = [param for param in params if param.text not in known]
        if inheritance.is_inherited(key.position):
            uses = Uses(read=[("LayerParameter", param.text) for param in params])
            if inheritance.drops(name, key.position, Diagnostics(), uses):
                continue
        for param in missing:
            diagnostics.unknown("unknown-field", param.position, "field of LayerParameter", param.text, known)
        other = [param for param in params if param not in missing and known[param.text].kind != "message"]
        for param in other:
            sentence = f"{param.text} is no message with parameters, but a {known[param.text].kind}"
            diagnostics.error("types-field", param.position, sentence)
        if not is_name(name):
            diagnostics.error("layer-name", key.position, f"layer type {name!r} is not an identifier")
        elif not missing and not other:
            python = free_name(name, taken)
            taken.add(python)
            found[name] = _layer_type(name, [known[param.text] for param in params], schema, python)
    return found


def _layer_type(name: str, fields: Sequence[ProtoField], schema: ProtoSchema, python: Code) -> LayerType:
    single = fields[0] if len(fields) == 1 and fields[0].kind == "message" else None
    inner = schema.messages[single.type].fields if single else tuple(fields)
    return LayerType(name, single, inner, python)


def _enum_names(schema: ProtoSchema) -> Iterator[str]:
    for name in schema.enums:
        yield from (class_name(name), f"_{class_name(name)}")


def class_name(proto_name: str) -> Code:
    """Return the class or alias of a message or enum: nested names are joined by underscores."""
    return free_name(proto_name.replace(".", "_"), OF_LAYERS)


def python_type(field: ProtoField) -> str:
    """Return the Python type of one element of a field."""
    if field.kind in ("message", "enum"):
        return class_name(field.type)
    return PYTHON_TYPES.get(field.kind, "int")


class MessageFields(Mapping[str, Type]):
    """The types of a message's fields, looked up when they are read: messages hold messages to any depth."""

    def __init__(self, fields: Sequence[ProtoField], schema: ProtoSchema) -> None:
        self._fields = {field.name: field for field in fields}
        self._schema = schema

    def __getitem__(self, name: str) -> Type:
        field = self._fields[name]
        default = default_code(field, self._schema) if field.label != "repeated" else ""
        return replace(field_type(field, self._schema), default=default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


def field_type(field: ProtoField, schema: ProtoSchema) -> Type:
    """Return the type that expressions see in a field."""
    if field.kind == "enum":
        one = Type("string", values=tuple(value for value, _ in schema.enums[field.type].values))
    elif field.kind == "message":
        one = Type("message", fields=MessageFields(schema.messages[field.type].fields, schema))
    else:
        one = {"float": FLOAT, "double": FLOAT, "bool": BOOL, "string": STRING, "bytes": ANY}.get(
            field.kind, INT
        )
    return Type("list", one) if field.label == "repeated" else one


def default_code(field: ProtoField, schema: ProtoSchema) -> Code:
    """Return the Python, outside of ``layers.py``, of the value that an absent field has in proto2."""
    if field.label == "repeated":
        return Code("()")
    if field.kind == "message":
        return Code(f"layers.{class_name(field.type)}()")
    if field.default is not None:
        return literal(field.default)
    if field.kind == "enum":
        return literal(schema.enums[field.type].values[0][0])
    return literal(ZEROS.get(field.kind, 0))


def context(schema: ProtoSchema, types: Mapping[str, LayerType], file: str) -> dict[str, Any]:
    """Return what the template of ``layers.py`` prints."""
    layers = [_layer_class(t) for t in types.values()]
    return {
        "enums": [_enum(name, schema, file) for name in schema.enums],
        "messages": [_message(message, file) for message in _ordered(schema)],
        "layers": layers,
        "message_table": dict_of(
            "MESSAGES: Final[Mapping[str, type[Message]]] = ",
            [f"{literal(name)}: {class_name(name)}" for name in schema.messages],
            0,
        ),
        "layer_table": dict_of(
            "LAYER_TYPES: Final[Mapping[str, type[LayerParam]]] = ",
            [f"{literal(name)}: {layer.python}" for name, layer in types.items()],
            0,
        ),
    }


def _enum(name: str, schema: ProtoSchema, file: str) -> dict[str, Any]:
    enum = schema.enums[name]
    members = [literal(value) for value, _ in enum.values]
    return {
        "name": class_name(name),
        "comment": doc(f"{enum.comment} ({enum.file or file}:{enum.line})".strip()),
        "alias": list_of(f"{class_name(name)} = Literal", members, 0),
        "table": dict_of(
            f"_{class_name(name)}: Final[Mapping[str, int]] = ",
            [f"{literal(value)}: {number}" for value, number in enum.values],
            0,
        ),
    }


def _ordered(schema: ProtoSchema) -> Iterator[ProtoMessage]:
    """Yield messages after those that their fields hold, else in declaration order."""
    done: set[str] = set()

    def visit(message: ProtoMessage) -> Iterator[ProtoMessage]:
        if message.name in done:
            return
        done.add(message.name)
        for field in message.fields:
            if field.kind == "message":
                yield from visit(schema.messages[field.type])
        yield message

    for message in schema.messages.values():
        yield from visit(message)


def _message(message: ProtoMessage, file: str) -> dict[str, Any]:
    fields = [_field(f) for f in message.fields]
    return {
        "name": class_name(message.name),
        "comment": doc(f"{message.comment} ({message.file or file}:{message.line})".strip()),
        "slots": tuple_of("__slots__ = ", [literal(str(field_name(f.name))) for f in message.fields], 4),
        "table": tuple_of("FIELDS = ", [_field_entry(f) for f in message.fields], 4) if fields else Code(""),
        "fields": fields,
        "signature": call("def __init__", ["self", "*", *(f["parameter"] for f in fields)], 4, " -> None:"),
    }


def _field(field: ProtoField) -> dict[str, Any]:
    name, kind = field_name(field.name), python_type(field)
    held = f"tuple[{kind}, ...]" if field.label == "repeated" else f"{kind} | None"
    return {
        "name": name,
        "quoted": literal(str(name)),
        "held": Code(held),
        "parameter": Code(f"{name}: {held} = {'()' if field.label == 'repeated' else 'None'}"),
        "comment": doc(field.comment),
    }


def _field_entry(field: ProtoField) -> str:
    args = [str(literal(field.name)), str(field.number), str(literal(field.kind))]
    if field.label != "optional":
        args.append(f"label={literal(field.label)}")
    if field.packed:
        args.append("packed=True")
    if field.default is not None:
        args.append(f"default={literal(field.default)}")
    if field.kind == "enum":
        args.append(f"type=_{class_name(field.type)}")
    elif field.kind == "message":
        args.append(f"type={class_name(field.type)}")
    return call("Field", args, 0, margin=12)


def _layer_class(layer: LayerType) -> dict[str, Any]:
    if layer.param is not None:
        text = f"Layer ``{layer.name}``; its parameters stand in ``{layer.param.name}``."
    elif layer.fields:
        text = f"Layer ``{layer.name}``; parameters: {', '.join(f.name for f in layer.fields)}."
    else:
        text = f"Layer ``{layer.name}``, which has no parameters."
    fields = [_field(f) for f in layer.fields] if layer.param is None else []
    return {
        "name": layer.python,
        "type": literal(layer.name),
        "comment": doc(text),
        "base": class_name(layer.param.type) if layer.param else Code(""),
        "param": Code(_field_entry(layer.param)) if layer.param else Code(""),
        "slots": tuple_of("__slots__ = ", [str(f["quoted"]) for f in fields], 4),
        "table": tuple_of("FIELDS = ", [_field_entry(f) for f in layer.fields], 4) if fields else Code(""),
        "fields": fields,
        "signature": call("def __init__", ["self", "*", *(f["parameter"] for f in fields)], 4, " -> None:"),
    }
