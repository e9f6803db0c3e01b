"""Prints patterns (``fusions:`` of the hub, ``patterns:`` of a mapping) as data and replacing functions.

``match:`` is in the notation of graphs. An operand is a name, a number, None, a nested op, ``*name`` for
all that are left; a field is a literal or a name that captures it. Fields that are not given must have the
op's default, unless ``...`` stands as the last operand.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from caffeforge.generator import types
from caffeforge.generator.expression import Name, Printer, Scope
from caffeforge.generator.hub_schema import HELD, HubOp, HubSchema
from caffeforge.generator.mapping import PatternRule
from caffeforge.generator.names import CONSTANTS, TAKEN, free_name, place
from caffeforge.generator.pattern_checks import PatternChecks
from caffeforge.generator.python_text import Code, call, dict_of, doc, indented, literal, tuple_of
from caffeforge.generator.python_text import name as python_name
from caffeforge.generator.rewrite import Rewriter
from caffeforge.generator.rule_code import Statements, lets
from caffeforge.generator.source import Source, SourceError, shortened
from caffeforge.generator.types import ANY, OF_ATTRIBUTE, VALUE, VALUES, Type

OWN = frozenset(("b",))  # what replacing functions call their own values
INNER = "inner "  # begins what nested applications yield; with a blank, no name of a rule is so


@dataclass
class _Names:
    """What the names of one pattern stand for, in order of first use."""

    values: dict[str, str] = field(default_factory=dict)  # name -> Python type
    captures: dict[str, str] = field(default_factory=dict)
    results: dict[str, int] = field(default_factory=dict)  # name -> index of its node
    inner: int = 0  # nested applications so far
    codes: dict[str, Code] = field(default_factory=dict)  # name -> that of the function's parameter

    def code(self, name: str) -> Code:
        """Return the parameter that a name stands for, which is also what it is called in a match."""
        if name not in self.codes:
            taken = TAKEN | OWN | {*self.codes.values()}
            self.codes[name] = free_name(name.replace(" ", "_"), taken)
        return self.codes[name]


@dataclass
class Patterns:
    """Prints the patterns of one package."""

    hub: HubSchema
    printer: Printer

    def context(self, rules: list[PatternRule]) -> dict[str, Any]:
        """Return what the template of ``fusions.py`` prints."""
        functions, entries = [], []
        named: dict[str, str] = {}
        for rule in rules:
            function = rule.name.text.replace("-", "_")
            if function in named:
                sentence = f"the patterns {named[function]} and {rule.name.text} would be one function"
                self.printer.diagnostics.error("name-clash", rule.name.position, sentence)
            named[function] = rule.name.text
            printed = self._pattern(rule)
            if printed is not None:
                functions.append(printed[0])
                entries.append(printed[1])
        table = tuple_of("PATTERNS: Final[tuple[Pattern, ...]] = ", entries, 0)
        return {"functions": functions, "patterns": table}

    def _pattern(self, rule: PatternRule) -> tuple[dict[str, Any], str] | None:
        statements = self._statements(rule.match)
        if not statements:
            if not rule.match.text.strip():
                self.printer.diagnostics.error("pattern-form", rule.match.position, "match: names no node")
            return None
        if not PatternChecks(self.printer, self.hub.ops, rule).run(statements):
            return None
        names = _Names()
        nodes: list[str] = []
        for statement in statements:
            self._statement(statement, rule, names, nodes)
        results = [n for n, index in names.results.items() if index == len(nodes) - 1]
        function = python_name(f"fuse_{rule.name.text.replace('-', '_')}")
        parts = [
            str(literal(rule.name.text)),
            str(literal(place(rule.name.position))),
            str(tuple_of("", nodes, 0, 16)),
            function,
        ]
        return self._function(function, rule, names, results), call("Pattern", parts, 0, margin=8)

    def _statements(self, source: Source) -> list[ast.stmt]:
        try:
            return source.statements()
        except SourceError as error:
            sentence = f"not a pattern: {shortened(source.text)!r}"
            self.printer.diagnostics.error("pattern-syntax", error.position, sentence, error.hint)
            return []

    def _statement(self, statement: ast.stmt, rule: PatternRule, names: _Names, nodes: list[str]) -> None:
        assert isinstance(statement, ast.Assign)
        target = statement.targets[0]
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        self._node(statement.value, rule, names, nodes, [t.id for t in targets if isinstance(t, ast.Name)])

    def _node(
        self, node: ast.expr, rule: PatternRule, names: _Names, nodes: list[str], results: list[str]
    ) -> None:
        assert isinstance(node, ast.Call)
        op = self.hub.ops[ast.unparse(node.func)]
        args = list(node.args)
        free = bool(args) and isinstance(args[-1], ast.Constant) and args[-1].value is ...
        operands = [self._operand(arg, rule, names, nodes) for arg in (args[:-1] if free else args)]
        fields = self._fields(op, node, rule, names, free)
        for result in results:
            names.results[result] = len(nodes)
            names.values.setdefault(result, "Value")
        parts = [
            op.code,
            str(tuple_of("", operands, 0, 24)),
            str(dict_of("", fields, 0)),
            str(literal(tuple(str(names.code(result)) for result in results))),
        ]
        nodes.append(call("PatternNode", parts, 0, margin=12))

    def _operand(self, arg: ast.expr, rule: PatternRule, names: _Names, nodes: list[str]) -> str:
        if isinstance(arg, ast.Starred) and isinstance(arg.value, ast.Name):
            names.values[arg.value.id] = "tuple[Value, ...]"
            return f"Operand({literal(str(names.code(arg.value.id)))}, variadic=True)"
        if isinstance(arg, ast.Call):
            names.inner += 1
            inner = f"{INNER}{names.inner}"
            self._node(arg, rule, names, nodes, [inner])
            return f"Operand({literal(str(names.code(inner)))})"
        if isinstance(arg, ast.Name) and CONSTANTS.get(arg.id) == "None":
            return "Operand()"
        if isinstance(arg, ast.Name):
            optional, constant = (arg.id in [w.text for w in ws] for ws in (rule.optional, rule.constant))
            names.values.setdefault(arg.id, "Value | None" if optional else "Value")
            marks = (", optional=True" if optional else "") + (", constant=True" if constant else "")
            return f"Operand({literal(str(names.code(arg.id)))}{marks})"
        if isinstance(arg, ast.Constant) and arg.value is None:
            return "Operand()"
        number = self._number(arg)
        if number is None:
            self._error(rule, arg, f"{ast.unparse(arg)!r} is no operand of a pattern")
            return "Operand()"
        return f"Operand(number={literal(number)})"

    def _number(self, node: ast.expr) -> float | None:
        """Return the value of a number, also of a product, quotient or power; None if it is none."""
        try:
            return self._worked_out(node)
        except OverflowError:
            return None

    def _worked_out(self, node: ast.expr) -> float | None:
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return None if isinstance(node.value, bool) else float(node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self._worked_out(node.operand)
            return None if inner is None else -inner
        if isinstance(node, ast.BinOp):
            left, right = self._worked_out(node.left), self._worked_out(node.right)
            if left is None or right is None:
                return None
            if isinstance(node.op, ast.Div):
                return left / right if right else None
            if isinstance(node.op, ast.Mult):
                return left * right
            if isinstance(node.op, ast.Pow) and left > 0:
                return float(left**right)
        return None

    def _fields(self, op: HubOp, node: ast.Call, rule: PatternRule, names: _Names, free: bool) -> list[str]:
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        fields = []
        for attribute in op.attributes:
            value = given.get(attribute.name)
            if isinstance(value, ast.Name) and value.id not in CONSTANTS:
                optional = attribute.default is None and not attribute.required and not attribute.computed
                names.captures.setdefault(value.id, HELD[attribute.kind] + (" | None" if optional else ""))
                held = literal(str(names.code(value.id)))
                fields.append(f"{literal(attribute.name)}: Capture({held})")
            elif value is not None:
                number = self._number(value) if attribute.kind == "float" else None
                if number is None:
                    self.printer.check(value, attribute.type, Scope({}), rule.match)
                code = (
                    self.printer.expression(value, Scope({}), rule.match)
                    if number is None
                    else literal(number)
                )
                fields.append(f"{literal(attribute.name)}: {code}")
            elif free:
                fields.append(f"{literal(attribute.name)}: ...")
            elif attribute.default is not None:
                fields.append(f"{literal(attribute.name)}: {literal(attribute.default)}")
            elif attribute.required or attribute.computed:
                self._error(rule, node, f"{op.name} needs {attribute.name}= in a pattern, or ... for any")
        return fields

    def _function(self, name: Code, rule: PatternRule, names: _Names, results: list[str]) -> dict[str, Any]:
        typed = {**names.values, **names.captures}
        codes = {n: names.code(n) for n in typed}
        taken = OWN | {*codes.values()}
        scope = Scope({n: _name(codes[n], kind) for n, kind in typed.items()}, taken=taken)
        local = lets(rule.let, scope, self.printer)
        inner = Scope(local.scope.names, taken=taken)
        statements = Statements(local, inner, self.printer)
        if rule.when is not None:
            statements.refuse_unless(rule.when)
        statements.require(rule.require)
        rewriter = Rewriter(self.printer, self.hub.ops, "b", {r: str(codes[r]) for r in results})
        statements.add(rewriter.print(rule.rewrite, inner))
        parameters = [f"{codes[n]}: {kind}" for n, kind in typed.items()]
        return {
            "signature": call(f"def {name}", ["b: Builder", "*", *parameters], 0, " -> None:"),
            "comment": doc(f"Replace what {rule.name.text} matches ({place(rule.name.position)})."),
            "body": Code("\n".join(indented(s, 4) for s in statements.lines)),
        }

    def _error(self, rule: PatternRule, node: ast.AST, sentence: str) -> None:
        self.printer.error("pattern-form", rule.match, node, sentence)


def _name(code: str, kind: str) -> Name:
    """Return what a name of Python type `kind` stands for."""
    presence = f"{code} is not None" if kind.endswith("| None") else ""
    return Name(code, presence, types.optional(of_kind(kind)) if presence else of_kind(kind))


def of_kind(kind: str) -> Type:
    """Return the type of what Python calls `kind`."""
    plain = kind.removesuffix(" | None")
    if plain == "Value":
        return VALUE
    return (
        VALUES
        if plain == "tuple[Value, ...]"
        else next((t for k, t in OF_ATTRIBUTE.items() if HELD[k] == plain), ANY)
    )
