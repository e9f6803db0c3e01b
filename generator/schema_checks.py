"""Whether messages, enums, fields and layer types can be Python classes, each with a name of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from caffeforge.generator.diagnostics import Diagnostics, Position
from caffeforge.generator.message_classes import LayerType, class_name, layer_class
from caffeforge.generator.names import field_name
from caffeforge.generator.proto import ProtoMessage, ProtoSchema
from caffeforge.generator.python_text import is_name
from caffeforge.generator.yaml_source import Scalar

# What layers.py imports and defines besides.
MODULE_NAMES = (
    "Field", "Final", "LAYER_TYPES", "LayerParam", "Literal", "MESSAGES", "Mapping", "Message", "annotations",
    "bool", "bytes", "float", "int", "object", "str", "tuple",
)  # fmt: skip


def check_schema(schema: ProtoSchema, diagnostics: Diagnostics) -> ClassNames:
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
    names = ClassNames(schema, diagnostics)
    names.schema_elements()
    return names


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


@dataclass
class ClassNames:
    """Sees to it that no two classes of ``layers.py`` have one name."""

    schema: ProtoSchema
    diagnostics: Diagnostics
    taken: dict[str, str] = field(
        default_factory=lambda: dict.fromkeys(MODULE_NAMES, "generated module itself")
    )

    def schema_elements(self) -> None:
        """Report messages and enums that would be called alike."""
        for kind, elements in (("message", self.schema.messages), ("enum", self.schema.enums)):
            for name, element in elements.items():
                if not is_name(name.replace(".", "_")):
                    continue
                python, position = str(class_name(name)), _place(self.schema, element)
                self._take(python, f"{kind} {name}", position)
                if kind == "enum":
                    self._take(f"_{python}", f"enum {name}", position)

    def layer_types(self, types: Mapping[str, LayerType], keys: Mapping[str, Scalar]) -> None:
        """Report layer types that would be called as something else; `keys` is where they stand."""
        for name in types:
            self._take(str(layer_class(name)), f"layer type {name}", keys[name].position)

    def _take(self, python: str, what: str, position: Position) -> None:
        if python in self.taken:
            sentence = f"the {what} would be called {python}, as the {self.taken[python]} is"
            self.diagnostics.error("name-clash", position, sentence)
        self.taken.setdefault(python, what)
