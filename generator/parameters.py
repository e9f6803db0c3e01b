"""Prints a layer's parameters: the constructor of its class with the fields that a rule gives."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace

from caffeforge.generator import types
from caffeforge.generator.compatibility import Uses
from caffeforge.generator.diagnostics import Position
from caffeforge.generator.expression import Printer, Scope
from caffeforge.generator.mapping import LayerEntry
from caffeforge.generator.message_classes import LayerType, class_name, field_type
from caffeforge.generator.names import field_name
from caffeforge.generator.proto import ProtoField, ProtoSchema
from caffeforge.generator.python_text import call, literal, tuple_of
from caffeforge.generator.source import Source, SourceError
from caffeforge.generator.yaml_reader import source_of
from caffeforge.generator.yaml_source import Mapping as YamlMapping
from caffeforge.generator.yaml_source import Node, Scalar
from caffeforge.generator.yaml_source import Sequence as YamlSequence

Entries = Sequence[tuple[Scalar, Node]]


class ParameterPrinter:
    """Prints the parameters of layers; remembers which fields it wrote and which it left out."""

    def __init__(self, schema: ProtoSchema, types: Mapping[str, LayerType], printer: Printer) -> None:
        self.schema = schema
        self.types = types
        self.printer = printer
        self.uses = Uses()

    def param(self, entry: LayerEntry, scope: Scope) -> str:
        """Return the Python that builds the parameters of one layer."""
        layer = self.types.get(entry.type.text)
        if layer is None:
            at = entry.type.position
            self.printer.diagnostics.unknown("unknown-layer", at, "layer type", entry.type.text, self.types)
            return "None"
        fields = self._fields(entry.fields, layer.fields, layer.message, scope)
        return call(f"layers.{layer.python}", fields, 0, margin=8)

    def _fields(self, entries: Entries, known: Sequence[ProtoField], message: str, scope: Scope) -> list[str]:
        printed = []
        given = {key.text for key, _ in entries}
        if message != "LayerParameter":  # its other fields belong to other layer types, or to none
            self.uses.absent += [(message, field.name) for field in known if field.name not in given]
        for key, node in entries:
            field = next((f for f in known if f.name == key.text), None)
            if field is None:
                names = [f.name for f in known]
                self.printer.diagnostics.unknown(
                    "unknown-field", key.position, f"field of {message}", key.text, names
                )
                continue
            always = field.label == "repeated" or self._is_always_there(field, node, scope)
            (self.uses.present if always else self.uses.read).append((message, field.name))
            printed.append(f"{field_name(field.name)}={self._value(field, node, scope)}")
        return printed

    def _is_always_there(self, field: ProtoField, node: Node, scope: Scope) -> bool:
        """Tell whether what stands for a field is a value for every node; if in doubt, it is not."""
        if not isinstance(node, Scalar) or self._is_enum_word(field, node, scope):
            return True
        given = self.printer.infer(source_of(node), scope)
        return not given.optional and given.kind not in ("any", "none")

    def _value(self, field: ProtoField, node: Node, scope: Scope) -> str:
        if field.label == "repeated" and not isinstance(node, Scalar):
            items = node.items if isinstance(node, YamlSequence) else (node,)
            one = replace(field, label="optional")
            return tuple_of("", [self._element(one, item, scope) for item in items], 0, 16)
        return self._element(field, node, scope)

    def _element(self, field: ProtoField, node: Node, scope: Scope) -> str:
        if isinstance(node, YamlMapping):
            return self._message(field, node, scope)
        if isinstance(node, YamlSequence):
            sentence = f"{field.name} takes one value, no list"
            self.printer.diagnostics.error("field-value", node.position, sentence)
            return "None"
        if self._is_enum_word(field, node, scope):
            return self._enum(field, node)
        source = source_of(node)
        if field.kind == "enum" and not self._check_words(field, source):
            return "None"
        due = field_type(field, self.schema)
        return self.printer.print(source, scope, types.optional(due))

    def _is_enum_word(self, field: ProtoField, node: Scalar, scope: Scope) -> bool:
        return field.kind == "enum" and node.text.isidentifier() and node.text not in scope.names

    def _message(self, field: ProtoField, node: YamlMapping, scope: Scope) -> str:
        if field.kind != "message":
            sentence = f"{field.name} is a single value, no message with fields"
            self.printer.diagnostics.error("field-value", node.position, sentence)
            return "None"
        inner = self.schema.messages[field.type].fields
        fields = self._fields(node.entries, inner, field.type, scope)
        return call(f"layers.{class_name(field.type)}", fields, 0, margin=16)

    def _enum(self, field: ProtoField, node: Scalar) -> str:
        self._check_word(field, node.text, node.position)
        return str(literal(node.text))

    def _check_words(self, field: ProtoField, source: Source) -> bool:
        """Report words that an expression may yield and the enum does not have.

        Return whether it is an expression: a number, or a word behind the enum's name and a dot, is none.
        """
        try:
            waiting = [source.expression()]
        except SourceError:
            return True
        text = ast.unparse(waiting[0])
        if text.isdigit() or text.startswith(f"{field.type.rpartition('.')[2]}."):
            self._check_word(field, text, source.position, text.rpartition(".")[2])
            return False
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.IfExp):
                waiting += [node.body, node.orelse]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                self._check_word(field, node.value, self.printer.at(source, node))
        return True

    def _check_word(self, field: ProtoField, word: str, position: Position, meant: str = "") -> None:
        values = [value for value, _ in self.schema.enums[field.type].values]
        if meant in values:
            sentence = f"unknown value of {field.name} {word!r}"
            self.printer.diagnostics.error("unknown-enum", position, sentence, f"write {meant}")
            return
        if word not in values:
            self.printer.diagnostics.unknown("unknown-enum", position, f"value of {field.name}", word, values)
