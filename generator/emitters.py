"""Prints ``emit.py``: for each alternative of each op, a function that builds its layers or nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from caffeforge.generator.expression import Name, Printer, Scope, names_in
from caffeforge.generator.hub_schema import HubOp, HubSchema
from caffeforge.generator.mapping import Alternative, LayerEntry, NetRule, Rule, source_of
from caffeforge.generator.message_classes import LayerType, class_name, layer_class
from caffeforge.generator.names import function_name, place
from caffeforge.generator.proto import ProtoField, ProtoSchema
from caffeforge.generator.python_text import Code, call, dict_of, doc, indented, literal, tuple_of
from caffeforge.generator.python_text import name as python_name
from caffeforge.generator.rewrite import Rewriter
from caffeforge.generator.rule_code import conditions, lets, refuse_unless
from caffeforge.generator.yaml_source import Mapping as YamlMapping
from caffeforge.generator.yaml_source import Node, Scalar, Sequence

RESERVED = {"e", "op", "hub", "lib", "layers", "top"}


@dataclass
class Emitters:
    """Prints the emitters of one backend."""

    schema: ProtoSchema
    types: Mapping[str, LayerType]
    hub: HubSchema
    printer: Printer

    def context(self, rules: list[Rule], net: NetRule) -> dict[str, Any]:
        """Return what the template of ``emit.py`` prints."""
        functions, table = [], []
        for rule in rules:
            op = self.hub.ops.get(rule.name.text)
            if op is None:
                self.printer.diagnostics.unknown(
                    "unknown-op", rule.name.position, "op", rule.name.text, self.hub.ops
                )
                continue
            entries = []
            for index, alternative in enumerate(rule.alternatives):
                name = function_name("emit", op.name, index, len(rule.alternatives))
                functions.append(self._function(name, op, alternative))
                entries.append(f"Alternative({name}, {literal(place(alternative.position))})")
            parts = [str(tuple_of("", entries, 0, 20))]
            if rule.otherwise:
                parts.append(str(literal(rule.otherwise)))
            table.append(f"hub.{op.name}: {call('Rule', parts, 0, margin=20)}")
        rules = dict_of("RULES: Final[Mapping[type[Op], Rule]] = ", table, 0)
        return {"functions": functions, "rules": rules, "input": self._input(net)}

    def _input(self, net: NetRule) -> Code:
        if net.input is None:
            return Code("")
        scope = Scope({"X": Name("X", "value")})
        head = "def input_layer(X: Value) -> LayerParam:\n"
        body = indented(f"return {self._param(net.input, scope)}", 4)
        return Code(f'{head}    """The layer of a net\'s input X."""\n{body}')

    def _function(self, name: Code, op: HubOp, alternative: Alternative) -> dict[str, Any]:
        parameters, scope = self._parameters(op)
        taken = RESERVED | {p.partition(":")[0] for p in parameters}
        local = lets(alternative.let, scope, self.printer, taken)
        used: set[str] = set()
        inner = Scope(local.scope.names, used)
        body = conditions(alternative.require, inner, self.printer)
        if alternative.when is not None:
            body = refuse_unless(alternative.when, "", inner, self.printer) + body
        if alternative.rewrite is not None:
            body += self._rewrite(op, alternative, inner)
        else:
            body += self._layers(op, alternative.layers, inner)
        statements = [*local.code(used), *body]
        made = " + ".join(entry.type.text for entry in alternative.layers) or "other ops"
        return {
            "signature": call(f"def {name}", ["e: Emit", f"op: hub.{op.name}", *parameters], 0, " -> None:"),
            "comment": doc(f"{op.name} -> {made} ({place(alternative.position)})."),
            "body": Code("\n".join(indented(s, 4) for s in statements)),
        }

    def _parameters(self, op: HubOp) -> tuple[list[str], Scope]:
        parameters: list[str] = []
        names: dict[str, Name] = {}
        for attribute in op.attributes:
            optional = not attribute.required and attribute.default is None and not attribute.computed
            code = f"op.{attribute.python}"
            names[attribute.name] = Name(code, "static", f"{code} is not None" if optional else "")
        for key, formals in (("inputs", op.inputs), ("outputs", op.outputs)):
            held = []
            for formal in formals:
                if formal.static:
                    continue
                python = _parameter_name(formal.name, parameters)
                kind = "Value" if formal.option == "single" else "Value | None"
                if formal.option == "variadic":
                    kind = "tuple[Value, ...]"
                parameters.append(f"{python}: {kind}")
                optional = formal.option == "optional"
                presence = f"{python} is not None" if optional else ""
                names[formal.name] = Name(
                    python, "values" if formal.option == "variadic" else "value", presence
                )
                held.append(f"*{python}" if formal.option == "variadic" else python)
            names.setdefault(
                key,
                Name(str(tuple_of("", held, 0)) if held != [f"*{held[0][1:]}"] else held[0][1:], "values"),
            )
        return parameters, Scope(names)

    def _rewrite(self, op: HubOp, alternative: Alternative, scope: Scope) -> list[str]:
        assert alternative.rewrite is not None
        results = {f.name: ("*" if f.option == "variadic" else "") + python_name(f.name) for f in op.outputs}
        rewriter = Rewriter(self.printer, self.hub.ops, "e", results)
        return rewriter.print(alternative.rewrite, scope)

    def _layers(self, op: HubOp, entries: tuple[LayerEntry, ...], scope: Scope) -> list[str]:
        in_blobs = names_in(source.text for entry in entries for source in entry.blobs)
        operands = [f for f in op.inputs if not f.static and f.name not in in_blobs]
        names = [("*" if f.option == "variadic" else "") + scope.names[f.name].code for f in operands]
        current = str(tuple_of("", names, 0))
        results = [("*" if f.option == "variadic" else "") + scope.names[f.name].code for f in op.outputs]
        conditional = bool(entries) and entries[-1].when is not None
        lines: list[str] = []
        for index, entry in enumerate(entries):
            last = index == len(entries) - 1 and not conditional
            made = self._layer(entry, current, results if last else None, scope)
            made = made if last else f"top = {made}"
            if entry.when is None:
                lines.append(made)
            else:
                lines += [f"if {self.printer.print(entry.when, scope)}:", str(indented(made, 4))]
            current = "(top,)"
        if conditional:
            lines.append(f"e.finish(top, {results[0]})")
        return lines

    def _layer(self, entry: LayerEntry, current: str, results: list[str] | None, scope: Scope) -> str:
        bottoms = current
        if entry.bottoms is not None:
            bottoms = str(tuple_of("", [self.printer.print(b, scope) for b in entry.bottoms], 0))
        args = [self._param(entry, scope), bottoms]
        if entry.blobs:
            args.append(f"blobs={tuple_of('', [self.printer.print(b, scope) for b in entry.blobs], 0, 16)}")
        if results is not None:
            tops = (
                results[0][1:]
                if len(results) == 1 and results[0].startswith("*")
                else tuple_of("", results, 0)
            )
            args.append(f"tops={tops}")
        if entry.loose:
            args.append(f"loose={entry.loose}")
        if entry.kept:
            args.append(f"kept={entry.kept}")
        return call("e.layer", args, 0, margin=8)

    def _param(self, entry: LayerEntry, scope: Scope) -> str:
        layer = self.types.get(entry.type.text)
        if layer is None:
            known = self.types
            self.printer.diagnostics.unknown(
                "unknown-layer", entry.type.position, "layer type", entry.type.text, known
            )
            return "None"
        fields = self._fields(entry.fields, layer.fields, f"layer {layer.name}", scope)
        return call(f"layers.{layer_class(layer.name)}", fields, 0, margin=8)

    def _fields(
        self,
        entries: tuple[tuple[Scalar, Node], ...],
        known: tuple[ProtoField, ...],
        owner: str,
        scope: Scope,
    ) -> list[str]:
        printed = []
        for key, node in entries:
            field = next((f for f in known if f.name == key.text), None)
            if field is None:
                self.printer.diagnostics.unknown(
                    "unknown-field", key.position, f"field of {owner}", key.text, [f.name for f in known]
                )
                continue
            printed.append(f"{python_name(field.name)}={self._field_value(field, node, scope)}")
        return printed

    def _field_value(self, field: ProtoField, node: Node, scope: Scope) -> str:
        if field.label == "repeated" and not isinstance(node, Scalar):
            items = node.items if isinstance(node, Sequence) else (node,)
            return tuple_of("", [self._element(field, item, scope) for item in items], 0, 16)
        return self._element(field, node, scope)

    def _element(self, field: ProtoField, node: Node, scope: Scope) -> str:
        if isinstance(node, YamlMapping):
            if field.kind != "message":
                self.printer.diagnostics.error("field-value", node.position, f"{field.name} is no message")
                return "None"
            inner = self.schema.messages[field.type].fields
            return call(
                f"layers.{class_name(field.type)}",
                self._fields(node.entries, inner, field.type, scope),
                0,
                margin=16,
            )
        if isinstance(node, Sequence):
            self.printer.diagnostics.error(
                "field-value", node.position, f"{field.name} takes one value, no list"
            )
            return "None"
        if field.kind == "enum" and node.text.isidentifier() and node.text not in scope.names:
            values = [value for value, _ in self.schema.enums[field.type].values]
            if node.text not in values:
                self.printer.diagnostics.unknown(
                    "unknown-enum", node.position, f"value of {field.name}", node.text, values
                )
            return str(literal(node.text))
        return self.printer.print(source_of(node), scope)


def _parameter_name(name: str, parameters: list[str]) -> Code:
    """Return a formal's name as a parameter that no other parameter and no reserved name has."""
    taken = RESERVED | {p.partition(":")[0] for p in parameters}
    python = python_name(name)
    while python in taken:
        python = python_name(f"{python}_")
    return python
