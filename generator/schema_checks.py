"""Whether messages, enums, fields and layer types can be Python classes, each with a name of its own."""

from __future__ import annotations

from collections.abc import Iterator

from caffeforge.generator.diagnostics import Diagnostics, Position
from caffeforge.generator.message_classes import class_name
from caffeforge.generator.names import field_name
from caffeforge.generator.proto import ProtoMessage, ProtoSchema
from caffeforge.generator.python_text import is_name


def check_schema(schema: ProtoSchema, diagnostics: Diagnostics) -> None:
    """Report names that Python cannot hold, and messages that hold themselves."""
    for message in schema.messages.values():
        _check_name(message.name.replace(".", "_"), _place(schema, message), "message", diagnostics)
        _check_fields(schema, message, diagnostics)
    for enum in schema.enums.values():
        _check_name(enum.name.replace(".", "_"), _place(schema, enum), "enum", diagnostics)
    for path in _cycles(schema):
        first, name = path[0]
        held = " > ".join([*(f"{message}.{inner}" for message, inner in path), first])
        at = schema.messages[first].field(name)
        position = Position(schema.file, at.line, at.column) if at else Position(schema.file)
        diagnostics.error("proto-recursive", position, f"a message holds itself: {held}")
    _check_classes(schema, diagnostics)


def _place(schema: ProtoSchema, element: object) -> Position:
    return Position(schema.file, getattr(element, "line", 1), getattr(element, "column", 1))


def _check_name(name: str, position: Position, what: str, diagnostics: Diagnostics) -> None:
    if not is_name(name):
        sentence = f"the {what} {name} cannot be a class of Python: it begins with two underscores"
        diagnostics.error("proto-name", position, sentence)


def _check_fields(schema: ProtoSchema, message: ProtoMessage, diagnostics: Diagnostics) -> None:
    first: dict[str, str] = {}
    for element in message.fields:
        position = _place(schema, element)
        if not is_name(element.name):
            sentence = f"the field {message.name}.{element.name} has a name that Python uses"
            diagnostics.error("proto-name", position, sentence)
            continue
        python = str(field_name(element.name))
        if python in first:
            sentence = (
                f"the fields {first[python]} and {element.name} of {message.name} would both be {python}"
            )
            diagnostics.error("name-clash", position, sentence)
        first.setdefault(python, element.name)


def _cycles(schema: ProtoSchema) -> Iterator[list[tuple[str, str]]]:
    """Yield each way from a message back to itself once, as (message, field)."""
    done: set[str] = set()

    def visit(name: str, path: list[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
        names = [message for message, _ in path]
        if name in names:
            yield path[names.index(name) :]
        elif name not in done:
            for element in schema.messages[name].fields:
                if element.kind == "message":
                    yield from visit(element.type, [*path, (name, element.name)])
            done.add(name)

    for name in schema.messages:
        yield from visit(name, [])


def _check_classes(schema: ProtoSchema, diagnostics: Diagnostics) -> None:
    """Report messages and enums that would be called alike in ``layers.py``."""
    taken: dict[str, str] = {}
    elements = [("message", *entry) for entry in schema.messages.items()]
    for kind, name, element in [*elements, *(("enum", *entry) for entry in schema.enums.items())]:
        if not is_name(name.replace(".", "_")):
            continue
        python = str(class_name(name))
        for code in (python, f"_{python}") if kind == "enum" else (python,):
            if code in taken:
                sentence = f"the {kind} {name} would be called {code}, as the {taken[code]} is"
                diagnostics.error("name-clash", _place(schema, element), sentence)
            taken.setdefault(code, f"{kind} {name}")
