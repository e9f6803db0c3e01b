"""Prints ``emit.py``: for each alternative of each op, a function that builds its layers or nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from keyword import iskeyword
from typing import Any

from caffeforge.generator import types
from caffeforge.generator.compatibility import Inheritance
from caffeforge.generator.diagnostics import Diagnostics
from caffeforge.generator.expression import Name, Printer, Scope
from caffeforge.generator.hooks import Hooks
from caffeforge.generator.hub_schema import Formal, HubOp, HubSchema
from caffeforge.generator.mapping import Alternative, LayerEntry, NetRule, Rule
from caffeforge.generator.message_classes import LayerType
from caffeforge.generator.names import CONSTANTS, function_name, place
from caffeforge.generator.older_schemas import Older, without_missing
from caffeforge.generator.parameters import ParameterPrinter
from caffeforge.generator.proto import ProtoSchema
from caffeforge.generator.python_text import Code, call, dict_of, doc, indented, is_name, literal, tuple_of
from caffeforge.generator.rewrite import Rewriter
from caffeforge.generator.rule_checks import names_of, sources_of
from caffeforge.generator.rule_code import Statements, lets
from caffeforge.generator.source import Source
from caffeforge.generator.types import ARRAY, BOOL, VALUE, VALUES, Type
from caffeforge.generator.yaml_source import Scalar

OWN = frozenset(("e", "top"))  # what emitters call their own values
HELD_AS = {"single": "Value", "optional": "Value | None", "variadic": "tuple[Value, ...]"}


@dataclass
class Emitters:
    """Prints the emitters of one backend."""

    schema: ProtoSchema
    layer_types: Mapping[str, LayerType]
    hub: HubSchema
    printer: Printer
    inheritance: Inheritance | None = None
    older: Older = field(default_factory=dict)
    prefix: str = "emit"
    hooks: Hooks = field(default_factory=Hooks)

    def __post_init__(self) -> None:
        self.parameters = ParameterPrinter(self.schema, self.layer_types, self.printer)

    def context(self, rules: list[Rule], net: NetRule) -> dict[str, Any]:
        """Return what the template of ``emit.py`` prints."""
        functions, table = [], []
        taken = {"input_layer"}
        for rule in rules:
            op = self.hub.ops.get(rule.name.text)
            if op is None:
                self.printer.diagnostics.unknown(
                    "unknown-op", rule.name.position, "op", rule.name.text, self.hub.ops
                )
                continue
            entries = []
            for index, alternative in enumerate(rule.alternatives):
                name = function_name(self.prefix, op.class_name, index, len(rule.alternatives), taken)
                taken.add(name)
                function = self._fitting(name, op, alternative)
                if function is not None:
                    functions.append(function)
                    entries.append(entry(name, alternative))
            if not entries:
                continue
            parts = [str(tuple_of("", entries, 0, 20))]
            if rule.otherwise:
                parts.append(str(literal(rule.otherwise)))
            table.append(f"{op.code}: {call('Rule', parts, 0, margin=20)}")
        printed = dict_of("RULES: Final[Mapping[type[Op], Rule]] = ", table, 0)
        hooks = [Code(line) for line in self.hooks.imports()]
        return {"functions": functions, "rules": printed, "input": self._input(net), "hooks": hooks}

    def _input(self, net: NetRule) -> Code:
        """Return the function that gives an input's layer; empty if the schema can hold none."""
        if net.input is None:
            return Code("")
        position = net.input.type.position
        inherited = self.inheritance is not None and self.inheritance.is_inherited(position)
        own = replace(self, printer=Printer(self.printer.functions, Diagnostics())) if inherited else self
        code = own.parameters.param(net.input, Scope({"X": Name("X", type=VALUE)}))
        found, uses = own.printer.diagnostics, own.parameters.uses
        if inherited and self.inheritance and self.inheritance.drops("net", position, found, uses):
            return Code("")
        head = "def input_layer(X: Value) -> LayerParam:\n"
        body = indented(f"return {code}", 4)
        return Code(f'{head}    """The layer of a net\'s input X."""\n{body}')

    def _fitting(self, name: Code, op: HubOp, alternative: Alternative) -> dict[str, Any] | None:
        """Return an alternative's function; None if it is inherited and the schema cannot hold it."""
        if self.inheritance is None or not self.inheritance.is_inherited(alternative.position):
            return self._function(name, op, alternative)
        own = replace(self, printer=Printer(self.printer.functions, Diagnostics()))
        function = own._function(name, op, alternative)
        found, uses = own.printer.diagnostics, own.parameters.uses
        return None if self.inheritance.drops(op.name, alternative.position, found, uses) else function

    def _function(self, name: Code, op: HubOp, alternative: Alternative) -> dict[str, Any]:
        made = {entry.type.text for entry in alternative.layers} & self.layer_types.keys()
        fields = {kind: [f.name for f in self.layer_types[kind].fields] for kind in made}
        alternative = without_missing(alternative, fields, self.older)
        parameters, scope = self._parameters(op)
        names = [p.partition(":")[0] for p in parameters]
        local = lets(alternative.let, scope, self.printer)
        used: set[str] = set()
        inner = Scope(local.scope.names, used, taken=scope.taken)
        statements = Statements(local, inner, self.printer)
        statements.require(alternative.require[: alternative.common])
        if alternative.when is not None:
            statements.refuse_unless(alternative.when)
        statements.require(alternative.require[alternative.common :])
        statements.add(self._missing_results(op, alternative, scope))
        if alternative.hook is not None:
            used.update(names)
            hook = self.hooks.code(alternative.hook, self.printer)
            statements.add([call(hook, ["e", "op", *names], 0, margin=4)])
        elif alternative.rewrite is not None:
            statements.add(self._rewrite(op, alternative, inner))
        else:
            statements.add(self._layers(op, alternative, inner))
        known = [a for a in op.attributes if a.name in _known_statics(op)]
        prologue = [f"{scope.names[a.name].code} = e.known(op.{a.python})" for a in known if a.name in used]
        result = " + ".join(entry.type.text for entry in alternative.layers) or "other ops"
        return {
            "signature": call(f"def {name}", ["e: Emit", f"op: {op.code}", *parameters], 0, " -> None:"),
            "comment": doc(f"{op.name} -> {result} ({place(alternative.position)})."),
            "body": Code("\n".join(indented(s, 4) for s in [*prologue, *statements.lines])),
        }

    def _unmentioned(self, op: HubOp, alternative: Alternative) -> list[str]:
        """Return the optional results that an alternative says nothing of, and so does not give."""
        if alternative.hook is not None:
            return []
        mentioned = names_of([*sources_of(alternative), *(source for _, source in alternative.let)])
        given = alternative.rewrite.assigned() if alternative.rewrite is not None else frozenset()
        optional = [f.name for f in op.outputs if f.option == "optional"]
        return [name for name in optional if name not in mentioned | given]

    def _missing_results(self, op: HubOp, alternative: Alternative, scope: Scope) -> list[str]:
        """Return statements that refuse a node of which such a result is read."""
        lines = []
        for name in self._unmentioned(op, alternative):
            args = [str(literal(f"{name} is not computed")), str(literal(place(alternative.position)))]
            lines += [f"if {scope.names[name].presence}:", indented(call("raise Refused", args, 0), 4)]
        return lines

    def _parameters(self, op: HubOp) -> tuple[list[str], Scope]:
        """Return the parameters of an emitter behind e and op, and what the names of a rule stand for."""
        formals = [formal for formal in (*op.inputs, *op.outputs) if not formal.static]
        known = _known_statics(op)
        free = Scope({}, taken=OWN).free([*(f.name for f in formals), *known])
        codes = dict(zip([*(f.name for f in formals), *known], free, strict=True))
        names: dict[str, Name] = {}
        for attribute in op.attributes:
            optional = not attribute.required and attribute.default is None and not attribute.computed
            code = f"op.{attribute.python}"
            if attribute.name in known:
                names[attribute.name] = Name(codes[attribute.name], type=attribute.type)
            else:
                due = types.optional(attribute.type) if optional else attribute.type
                names[attribute.name] = Name(code, f"{code} is not None" if optional else "", due)
        for formal in formals:
            names[formal.name] = _tensor(formal, codes[formal.name])
        for key, side in (("inputs", op.inputs), ("outputs", op.outputs)):
            stars = ("*" * (f.option == "variadic") + codes[f.name] for f in side if not f.static)
            held = list(stars)
            listed = held[0][1:] if len(held) == 1 and held[0].startswith("*") else tuple_of("", held, 0)
            names.setdefault(key, Name(str(listed), type=VALUES))
        parameters = [f"{codes[formal.name]}: {HELD_AS[formal.option]}" for formal in formals]
        return parameters, Scope(names, taken=OWN | {*codes.values()})

    def _rewrite(self, op: HubOp, alternative: Alternative, scope: Scope) -> list[str]:
        assert alternative.rewrite is not None
        results = {
            f.name: ("*" if f.option == "variadic" else "") + scope.names[f.name].code for f in op.outputs
        }
        required = [f.name for f in op.outputs if f.option != "optional"]
        rewriter = Rewriter(self.printer, self.hub.ops, "e", results, required=required)
        return rewriter.print(alternative.rewrite, scope)

    def _layers(self, op: HubOp, alternative: Alternative, scope: Scope) -> list[str]:
        entries = alternative.layers
        in_blobs = {name for entry in entries for source in entry.blobs for name in source.tensors()}
        operands = [f for f in op.inputs if not f.static and f.name not in in_blobs]
        if entries and entries[0].bottoms is None and not operands:
            at = entries[0].type.position
            hint = "write 'bottoms: []' if that is meant"
            self.printer.diagnostics.error("bottoms", at, "all inputs are blobs: nothing is left", hint)
        names = [("*" if f.option == "variadic" else "") + scope.names[f.name].code for f in operands]
        current = str(tuple_of("", names, 0))
        outputs = [f for f in op.outputs if f.name not in self._unmentioned(op, alternative)]
        results = [("*" if f.option == "variadic" else "") + scope.names[f.name].code for f in outputs]
        conditional = bool(entries) and entries[-1].when is not None
        lines: list[str] = []
        for index, entry in enumerate(entries):
            last = index == len(entries) - 1 and not conditional
            made = self._layer(entry, current, results if last else None, scope)
            top = "top" if entry.top is None else self._top_name(entry.top, scope)
            made = made if last else f"{top} = {made}"
            if entry.when is None:
                lines.append(made)
            else:
                lines += [f"if {self.printer.print(entry.when, scope, BOOL)}:", str(indented(made, 4))]
            if entry.top is not None:
                scope = scope.extended({entry.top.text: Name(top, type=VALUE)})
            current = f"({top},)"
        if conditional:
            lines.append(f"e.finish(top, {results[0]})")
        return lines

    def _top_name(self, top: Scalar, scope: Scope) -> str:
        known = {*scope.names, *CONSTANTS}
        if not is_name(top.text) or iskeyword(top.text) or top.text in known:
            sentence = f"{top.text!r} is no new name for a top"
            self.printer.diagnostics.error("top-name", top.position, sentence)
            return "top"
        return scope.free([top.text])[0]

    def _layer(self, entry: LayerEntry, current: str, results: list[str] | None, scope: Scope) -> str:
        bottoms = current
        if entry.bottoms is not None:
            bottoms = str(tuple_of("", self._printed(entry.bottoms, VALUE, scope), 0))
        args = [self.parameters.param(entry, scope), bottoms]
        if entry.blobs:
            args.append(f"blobs={tuple_of('', self._printed(entry.blobs, ARRAY, scope), 0, 16)}")
        if results is not None:
            several = len(results) == 1 and results[0].startswith("*")
            args.append(f"tops={results[0][1:] if several else tuple_of('', results, 0)}")
        if entry.loose:
            args.append(f"loose={entry.loose}")
        if entry.kept:
            args.append(f"kept={entry.kept}")
        return call("e.layer", args, 0, margin=8)

    def _printed(self, sources: Iterable[Source], due: Type, scope: Scope) -> list[str]:
        return [self.printer.print(source, scope, types.optional(due)) for source in sources]


def entry(name: str, alternative: Alternative, computed: bool = False) -> str:
    """Return the entry of an alternative in a table of rules."""
    parts = [name, str(literal(place(alternative.position)))]
    if alternative.note:
        parts.append(str(literal(alternative.note)))
    if alternative.approximate:
        parts.append("approximate=True")
    if computed:
        parts.append("computed=True")
    return call("Alternative", parts, 0, margin=24)


def _known_statics(op: HubOp) -> list[str]:
    """Return the static inputs that an op cannot be without: a rule is asked only where they are known."""
    return [formal.name for formal in op.inputs if formal.static and formal.option == "single"]


def _tensor(formal: Formal, code: str) -> Name:
    """Return what the name of an input or output stands for."""
    presence = f"{code} is not None" if formal.option == "optional" else ""
    kind = {"variadic": VALUES, "optional": types.optional(VALUE)}.get(formal.option, VALUE)
    return Name(code, presence, kind)
