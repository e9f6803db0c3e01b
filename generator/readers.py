"""Prints ``read.py``: for each layer type with a rule, a function that builds the hub nodes it computes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from caffeforge.generator import older_schemas
from caffeforge.generator.compatibility import Inheritance, Uses
from caffeforge.generator.diagnostics import Diagnostics
from caffeforge.generator.expression import Name, Printer, Scope
from caffeforge.generator.field_paths import PARAM, field_at, fields_of_param, is_covered, paths_read
from caffeforge.generator.hooks import Hooks
from caffeforge.generator.hub_schema import HubSchema
from caffeforge.generator.mapping import Alternative, ConstraintRule, Rule
from caffeforge.generator.message_classes import LayerType, MessageFields, default_code, field_type
from caffeforge.generator.names import field_name, function_name, place
from caffeforge.generator.proto import ProtoField, ProtoSchema
from caffeforge.generator.python_text import Code, call, dict_of, doc, indented, laid_out, literal
from caffeforge.generator.rewrite import Rewriter
from caffeforge.generator.rule_checks import sources_of
from caffeforge.generator.rule_code import RAISE, REFUSE, Statements, lets
from caffeforge.generator.types import BOOL, INTS, STRING, VALUE, VALUES, Type
from caffeforge.generator.yaml_source import Scalar

BOUND = {
    "bottom": Name("bottom", type=VALUE),
    "bottoms": Name("bottoms", type=VALUES),
    "blobs": Name("blobs", type=VALUES),
    "tops": Name("tops", type=Type("list", STRING)),
}
OWN = frozenset(("r", *BOUND))  # what readers call their own values


@dataclass
class Readers:
    """Prints the readers of one backend."""

    schema: ProtoSchema
    types: Mapping[str, LayerType]
    hub: HubSchema
    printer: Printer
    inheritance: Inheritance
    hooks: Hooks = field(default_factory=Hooks)
    taken: set[str] = field(default_factory=set)  # names of functions
    known: dict[str, tuple[str, ...]] = field(default_factory=dict)  # type -> what is read or ignored
    refusal: str = RAISE

    def context(self, rules: list[Rule]) -> dict[str, Any]:
        """Return what the template of ``read.py`` prints."""
        functions, table = [], []
        for rule in rules:
            inherited = self.inheritance.is_inherited(rule.name.position)
            layer = self.types.get(rule.name.text)
            if layer is not None:
                read = self._reader(rule, layer, inherited)
                if read is not None:
                    functions.append(read[0])
                    table.append(read[1])
            elif not inherited:
                at, name = rule.name.position, rule.name.text
                self.printer.diagnostics.unknown("unknown-layer", at, "layer type", name, self.types)
        readers_table = dict_of("READERS: Final[Mapping[str, Reader]] = ", table, 0)
        hooks = [Code(line) for line in self.hooks.imports()]
        return {"functions": functions, "readers": readers_table, "hooks": hooks}

    def constraints(self, constraints: list[ConstraintRule], rules: list[Rule]) -> dict[str, Any]:
        """Return the functions that check what a chip refuses; they see the names of the layer's rule."""
        functions, table = [], []
        by_type = {rule.name.text: rule for rule in rules}
        for constraint in constraints:
            inherited = self.inheritance.is_inherited(constraint.type.position)
            printer = Printer(self.printer.functions, Diagnostics()) if inherited else self.printer
            own = replace(self, printer=printer, refusal=REFUSE)
            function, uses = own._constraint(constraint, by_type.get(constraint.type.text))
            found, at = own.printer.diagnostics, constraint.type.position
            if inherited and self.inheritance.drops(constraint.type.text, at, found, uses):
                continue
            if function is not None:
                functions.append(function)
                table.append(f"{literal(constraint.type.text)}: {function['name']}")
        kind = "Final[Mapping[str, Callable[[Read, Any], None]]]"
        return {"checks": functions, "constraints": dict_of(f"CONSTRAINTS: {kind} = ", table, 0)}

    def _constraint(
        self, constraint: ConstraintRule, rule: Rule | None
    ) -> tuple[dict[str, Any] | None, Uses]:
        """Return a constraint's function, None if there is no such layer type, and the fields it reads."""
        at, kind = constraint.type.position, constraint.type.text
        layer = self.types.get(kind)
        if layer is None:
            self.printer.diagnostics.unknown("unknown-layer", at, "layer type", kind, self.types)
            return None, Uses()
        name = function_name("constrain", layer.name, 0, 1, self.taken)
        self.taken.add(name)
        shared = rule.alternatives[0].let if rule is not None else ()
        older = rule.older if rule is not None else ()
        check = Rule(constraint.type, (Alternative(at, shared, constraint.require),), older=older)
        used: set[str] = set()
        function = self._function(name, layer, check, used) | {"name": name}
        return function, Uses(
            read=[(layer.message, name) for name in layer.names if name in used - BOUND.keys()]
        )

    def _reader(self, rule: Rule, layer: LayerType, inherited: bool) -> tuple[dict[str, Any], str] | None:
        """Return a type's function and table entry; None if it is inherited and the schema cannot hold it."""
        own = replace(self, printer=Printer(self.printer.functions, Diagnostics())) if inherited else self
        name = function_name("read", layer.name, 0, 1, self.taken)
        self.taken.add(name)
        used: set[str] = set()
        function = own._function(name, layer, rule, used)
        own._check_fields((scalar for a in rule.alternatives for scalar in a.reads), layer)
        sources = [s for a in rule.alternatives for s in (*sources_of(a), *(source for _, source in a.let))]
        used = (used - BOUND.keys()) | fields_of_param(sources)
        names = [f.name for f in layer.fields if f.name in used]
        at = rule.name.position
        uses = Uses(read=[(layer.message, field) for field in names])
        guards = [_guard(field, why, place(at)) for field, why in self.inheritance.guarded(at, uses)]
        reads = paths_read(names, sources, layer.fields, self.schema, BOUND)
        uses = Uses(self.inheritance.within(at, reads, layer.fields), uses.read)
        if inherited and self.inheritance.drops(layer.name, at, own.printer.diagnostics, uses):
            return None
        function["body"] = Code("\n".join([*guards, function["body"]]))
        for scalar in rule.ignore if not inherited else ():
            if is_covered(scalar.text, reads):
                sentence = f"the rule reads {scalar.text}, so that ignoring it has no effect"
                self.printer.diagnostics.error("no-effect", scalar.position, sentence)
        ignored = self._ignored(rule, layer, inherited)
        self.known[layer.name] = (*reads, *ignored)
        entry = [name, literal(place(at)), *(laid_out(tuple(paths), 24) for paths in (reads, ignored))]
        return function, f"{literal(layer.name)}: {call('Reader', entry, 0, margin=20)}"

    def _ignored(self, rule: Rule, layer: LayerType, inherited: bool) -> list[str]:
        """Return the fields without meaning; an inherited one that the schema does not have is left out."""
        if not inherited:
            self._check_fields(rule.ignore, layer)
        fields = self._ignorable(layer)
        return [s.text for s in rule.ignore if s.text == "blobs" or field_at(s.text, fields, self.schema)]

    def _ignorable(self, layer: LayerType) -> list[ProtoField]:
        """Return a type's own fields, and those that any layer may have beside them."""
        own = list(layer.fields)
        return own + [f for f in self.schema.messages["LayerParameter"].fields if f.name not in layer.names]

    def _check_fields(self, scalars: Iterable[Scalar], layer: LayerType) -> None:
        known = [*layer.names, "blobs"]
        for scalar in scalars:
            if scalar.text != "blobs" and field_at(scalar.text, self._ignorable(layer), self.schema) is None:
                self.printer.diagnostics.unknown(
                    "unknown-field", scalar.position, f"field of layer {layer.name}", scalar.text, known
                )

    def _function(self, name: Code, layer: LayerType, rule: Rule, used: set[str]) -> dict[str, Any]:
        codes = Scope({}, taken=OWN).free(layer.names)
        fields = {f.name: self._field_name(f, code) for f, code in zip(layer.fields, codes, strict=True)}
        param = Name(PARAM, type=Type("message", fields=MessageFields(layer.fields, self.schema)))
        missing = older_schemas.missing(rule, layer.fields, self.printer)
        names = {PARAM: param} | fields | {key: held.name for key, held in missing.items()} | BOUND
        several = len(rule.alternatives) > 1 or rule.alternatives[0].when is not None
        defined: set[str] = set()
        shared = [c for c in rule.alternatives[0].require if all(c in a.require for a in rule.alternatives)]
        common = Alternative(rule.name.position, rule.alternatives[0].let, tuple(shared))
        lines = self._alternative(common, names, used, defined)
        for alternative in rule.alternatives:
            own = tuple(c for c in alternative.require if c not in shared)
            body = self._alternative(replace(alternative, require=own), names, used, defined)
            lines += [*body, "return"] if several and alternative.when is None else body
        prologue = ["bottom = r.one_bottom()"] if "bottom" in used else []
        # What a hook reads, it reads itself; a sentence may hold the name of a field that a let hides.
        text = re.sub(r'"[^"\n]*"', '""', "\n".join(lines))
        local = {f.name: rf"(?<![.\w]){fields[f.name].code}\b(?!=)" for f in layer.fields}  # no keyword
        read = [f for f in layer.fields if f.name in used and re.search(local[f.name], text)]
        prologue += [self._read_field(f, fields[f.name].code, layer.message) for f in read]
        older = [held for key, held in missing.items() if key in used]
        prologue += [f"{h.name.code} = {h.value}" for h in older if re.search(rf"\b{h.name.code}\b", text)]
        statements = prologue + lines
        if several:
            sentence = rule.otherwise or "no alternative holds"
            args = [str(literal(sentence)), str(literal(place(rule.name.position)))]
            statements.append(str(call("raise Refused", args, 0, margin=4)))
        parameters = ["r: Read", f"param: layers.{layer.python}"]
        return {
            "signature": call(f"def {name}", parameters, 0, " -> None:"),
            "comment": doc(f"What layer {layer.name} computes ({place(rule.name.position)})."),
            "body": Code("\n".join(indented(s, 4) for s in statements)),
            "lists": [Code(word) for word in ("bottoms", "blobs", "tops") if word in used],
        }

    def _field_name(self, field: ProtoField, code: str) -> Name:
        python = field_name(field.name)
        presence = f"param.{python} != ()" if field.label == "repeated" else f"param.{python} is not None"
        return Name(code, presence, field_type(field, self.schema))

    def _read_field(self, field: ProtoField, local: str, message: str) -> str:
        python = field_name(field.name)
        if field.label == "repeated":
            return f"{local} = param.{python}"
        is_side = (message, field.name) in self.inheritance.sides
        default = "0" if is_side else default_code(field, self.schema)
        return f"{local} = param.{python} if param.{python} is not None else {default}"

    def _alternative(
        self, alternative: Alternative, names: Mapping[str, Name], used: set[str], defined: set[str]
    ) -> list[str]:
        """Return the statements of one alternative; under its ``when:`` they end the function.

        `defined` holds the lets that stand above already.
        """
        taken = OWN | {name.code for name in names.values()}
        local = lets(alternative.let, Scope(names, taken=taken), self.printer)
        own: set[str] = set()
        scope = Scope(local.scope.names, own, taken=taken)
        before = Statements(local, scope, self.printer, defined, refusal=self.refusal)
        guard = "" if alternative.when is None else self.printer.print(alternative.when, scope, BOOL)
        before.add([])
        # What only this alternative needs is worked out where it is taken.
        body = Statements(local, scope, self.printer, set(defined)) if guard else before
        body.require(alternative.require)
        if alternative.rewrite is not None:
            rewriter = Rewriter(self.printer, self.hub.ops, "r", {}, tops=True)
            body.add(rewriter.print(alternative.rewrite, scope))
        elif alternative.hook is not None:
            body.add([f"{self.hooks.code(alternative.hook, self.printer)}(r, param)"])
            used.update(scalar.text for scalar in alternative.reads)
        elif alternative.inputs is not None:
            shapes = self.printer.print(alternative.inputs, scope, Type("list", INTS))
            body.add([f"r.inputs({shapes})"])
        used.update(own)
        if not guard:
            return before.lines
        inner = [str(indented(line, 4)) for line in [*body.lines, "return"]]
        return [*before.lines, f"if {guard}:", *inner]


def _guard(field: str, why: str, rule: str) -> str:
    """Return the statements that refuse a layer without a field whose default the rule does not know."""
    sentence = f"{field} is not set: {why}; set it"
    refusal = call("raise Refused", [str(literal(sentence)), str(literal(rule))], 0, margin=8)
    return str(indented("\n".join([f"if param.{field_name(field)} is None:", indented(refusal, 4)]), 4))
