"""Examples of layers: one layer's parameters, and the types of what it reads.

``Pooling(float32[1, 2, 7, 7], pool=MAX, kernel_size=3)``: types are bottoms, ``const(type)`` and numbers are
blobs, the rest are fields of its parameters as in ``fields:`` of a rule; a message is ``{dim: [2, 3]}``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from caffeforge.generator.application import Application, applications, elements, weights_type
from caffeforge.generator.compatibility import Inheritance
from caffeforge.generator.diagnostics import Diagnostics, Position
from caffeforge.generator.examples import place_of, refused_nodes
from caffeforge.generator.expression import Printer, Scope
from caffeforge.generator.mapping import ConstraintRule, LayerEntry, Rule
from caffeforge.generator.message_classes import LayerType
from caffeforge.generator.names import place
from caffeforge.generator.parameters import ParameterPrinter
from caffeforge.generator.proto import ProtoSchema
from caffeforge.generator.python_text import Code, call, literal, tuple_of
from caffeforge.generator.source import Source
from caffeforge.generator.yaml_source import Mapping as YamlMapping
from caffeforge.generator.yaml_source import Node, Scalar
from caffeforge.generator.yaml_source import Sequence as YamlSequence

DTYPES = ("float32", "int64", "bool")  # what a blob of floats is filled with


@dataclass
class LayerExamples:
    """Prints the examples of a backend's layers; an inherited one that the schema cannot hold is left out."""

    schema: ProtoSchema
    types: Mapping[str, LayerType]
    printer: Printer
    inheritance: Inheritance

    def table(self, rules: Iterable[Rule], constraints: Iterable[ConstraintRule]) -> Code:
        """Return the table of the package: what rules read, and what they and constraints refuse."""
        entries: list[str] = []
        for rule in rules:
            entries += self._entries(rule.name, rule, None, rule.example)
            for at, node in refused_nodes(rule):
                entries += self._entries(rule.name, rule, at, node)
        for constraint in constraints:
            for condition in constraint.require:
                at = place(condition.source.position)
                entries += self._entries(constraint.type, None, at, condition.refused)
        return tuple_of("LAYERS: Final[tuple[LayerExample, ...]] = ", entries, 0)

    def _entries(self, name: Scalar, rule: Rule | None, refused: str | None, node: Node | None) -> list[str]:
        """Return the entries of one ``example:`` or ``refused:``; that of a condition names its place."""
        if node is None or name.text not in self.types:
            return []
        inherited = self.inheritance.is_inherited(node.position)
        diagnostics = Diagnostics() if inherited else self.printer.diagnostics
        entries = []
        for found in applications(node, name.text, diagnostics):
            before = len(diagnostics.found)
            printer = Printer(self.printer.functions, diagnostics)
            code = self._code(found, name.position, rule, refused, printer)
            if len(diagnostics.found) == before:
                entries.append(code)
        return entries

    def _code(
        self, found: Application, at: Position, rule: Rule | None, refused: str | None, printer: Printer
    ) -> str:
        bottoms, blobs = [], []
        for arg in found.operands:
            kind, value = (weights_type(arg), "") if weights_type(arg) else elements(arg)
            if isinstance(arg, ast.Subscript) and _is_type(arg):
                bottoms.append(ast.unparse(arg))
            elif kind:
                blobs.append(f"{kind} = {value}" if value else kind)
            else:
                sentence = f"{ast.unparse(arg)!r} is no type, const(type), number or list of numbers"
                printer.diagnostics.error("example", place_of(found.source, arg), sentence)
        fields = tuple(
            (Scalar(key, place_of(found.source, value)), _node(found.source, value))
            for key, value in found.fields
        )
        parameters = ParameterPrinter(self.schema, self.types, printer)
        kind_of = Scalar(found.name, found.source.position)
        tops = 0 if _has_no_top(rule) else len(found.results)
        args = [
            str(literal(found.name)),
            str(literal(place(at))),
            str(literal(" ".join(found.source.text.split()))),
            parameters.param(LayerEntry(kind_of, fields), Scope({})),
            str(literal(tuple(bottoms))),
            str(literal(tuple(blobs))),
            str(tops),
        ]
        args += [str(literal(refused))] if refused is not None else []
        return str(call("LayerExample", args, 0, margin=4))


def _has_no_top(rule: Rule | None) -> bool:
    """Tell whether a layer gives nothing: its rule is an empty rewrite."""
    return rule is not None and all(
        a.rewrite is not None and not a.rewrite.text.strip() for a in rule.alternatives
    )


def _is_type(arg: ast.Subscript) -> bool:
    items = arg.slice.elts if isinstance(arg.slice, ast.Tuple) else [arg.slice]
    sizes = all(isinstance(item, ast.Constant) and type(item.value) is int for item in items)
    return sizes and isinstance(arg.value, ast.Name) and arg.value.id in DTYPES


def _node(source: Source, value: ast.expr) -> Node:
    """Return a field's value as the YAML that says the same in ``fields:``."""
    at = place_of(source, value)
    if isinstance(value, (ast.List, ast.Tuple)):
        return YamlSequence(tuple(_node(source, item) for item in value.elts), at)
    if isinstance(value, ast.Dict) and all(isinstance(key, ast.Name) for key in value.keys):
        entries = zip(value.keys, value.values, strict=True)
        keyed = [(Scalar(ast.unparse(key), at), inner) for key, inner in entries if key is not None]
        return YamlMapping(tuple((key, _node(source, inner)) for key, inner in keyed), at)
    return Scalar(ast.unparse(value), at)
