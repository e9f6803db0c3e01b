"""Examples of rules, as graphs in the notation of dumps: what tests run to see that a rule is right.

An op's example is its application to types: ``HardSwish(float32[2, 3, 5, 7])``, with ``const(...)`` for a
constant and a number for itself; several results are named: ``a, b = Split(...)``. A pattern's example
gives a type, or a field's value, for each of its free names.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field

from caffeforge.generator.diagnostics import Diagnostics, Position
from caffeforge.generator.expression import CONSTANTS
from caffeforge.generator.hub_schema import HubOp
from caffeforge.generator.mapping import PatternRule, Rule
from caffeforge.generator.names import place
from caffeforge.generator.python_text import Code, literal, tuple_of
from caffeforge.generator.source import Source, SourceError, shortened
from caffeforge.generator.yaml_reader import source_of
from caffeforge.generator.yaml_source import Mapping as YamlMapping
from caffeforge.generator.yaml_source import Node, Scalar, Sequence


@dataclass
class _Text:
    """The parameters of the graph that is being written."""

    inputs: list[str] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)

    def graph(self, body: list[str], results: list[str]) -> str:
        parameters = [*self.inputs, "*", *self.constants] if self.constants else self.inputs
        lines = [f"def example({', '.join(parameters)}):", *(f"    {line}" for line in body)]
        return "\n".join([*lines, f"    return {', '.join(results)}"])


class Examples:
    """Turns examples into graphs; what is wrong with them goes to the diagnostics."""

    def __init__(self, ops: Mapping[str, HubOp], diagnostics: Diagnostics) -> None:
        self.ops = ops
        self.diagnostics = diagnostics

    def of_ops(self, rules: list[Rule]) -> list[str]:
        """Return table entries (subject, rule, graph) for rules of ops."""
        entries = []
        for rule in rules:
            for scalar in self._scalars(rule):
                text = self._application(rule, scalar)
                if text:
                    entries.append(_entry(rule.name.text, rule.name.position, text))
        return entries

    def of_patterns(self, rules: list[PatternRule]) -> list[str]:
        """Return table entries (subject, rule, graph) for patterns."""
        entries = []
        for rule in rules:
            if rule.example is not None and not isinstance(rule.example, YamlMapping):
                self._error(rule.example, "an example of a pattern gives a type or value for each free name")
            elif rule.example is not None:
                text = self._matched(rule, rule.example)
                if text:
                    entries.append(_entry(rule.name.text, rule.name.position, text))
        return entries

    def _scalars(self, rule: Rule) -> list[Scalar]:
        given = rule.example
        items = given.items if isinstance(given, Sequence) else () if given is None else (given,)
        scalars = [item for item in items if isinstance(item, Scalar)]
        if given is not None and (not scalars or len(scalars) < len(items)):
            self._error(given, f"an example is one application of {rule.name.text}, or a list of them")
        return scalars

    def _application(self, rule: Rule, scalar: Scalar) -> str:
        statements = self._parsed(scalar)
        statement = statements[0] if statements is not None and len(statements) == 1 else None
        results = ["result"]
        call: ast.AST | None = None
        if isinstance(statement, ast.Assign):
            target = statement.targets[0]
            results = [ast.unparse(t) for t in (target.elts if isinstance(target, ast.Tuple) else [target])]
            call = statement.value
        elif isinstance(statement, ast.Expr):
            call = statement.value
        if statements is None:
            return ""
        if not isinstance(call, ast.Call) or ast.unparse(call.func) != rule.name.text:
            self._error(
                scalar, f"an example of {rule.name.text} is written {rule.name.text}(float32[2, 3], ...)"
            )
            return ""
        text = _Text()
        operands = [self._operand(arg, text, scalar) for arg in call.args]
        fields = [f"{k.arg}={ast.unparse(k.value)}" for k in call.keywords]
        line = f"{', '.join(results)} = {rule.name.text}({', '.join([*operands, *fields])})"
        return text.graph([line], results)

    def _operand(self, arg: ast.expr, text: _Text, scalar: Scalar) -> str:
        if isinstance(arg, ast.Constant) and arg.value is None:
            return "None"
        constant = isinstance(arg, ast.Call) and ast.unparse(arg.func) == "const" and len(arg.args) == 1
        if constant and isinstance(arg, ast.Call):
            name = f"c{len(text.constants)}"
            text.constants.append(f"{name}: {ast.unparse(arg.args[0])}")
            return name
        if isinstance(arg, ast.Subscript):
            name = f"x{len(text.inputs)}"
            text.inputs.append(f"{name}: {ast.unparse(arg)}")
            return name
        if isinstance(arg, (ast.Constant, ast.UnaryOp)):
            name = f"c{len(text.constants)}"
            text.constants.append(f"{name}: float32[] = {ast.unparse(arg)}")
            return name
        self._error(scalar, f"{ast.unparse(arg)!r} is no type, const(type) or number")
        return "None"

    def _matched(self, rule: PatternRule, example: YamlMapping) -> str:
        statements = _lines(rule.match)
        if not statements or not self._names(statements, example):
            return ""
        text, given = _Text(), {key.text: value for key, value in example.entries}
        substitute = _Substitute({})
        for name, value in given.items():
            parsed = self._parsed(value) if isinstance(value, Scalar) else None
            first = parsed[0] if parsed is not None and len(parsed) == 1 else None
            node = first.value if isinstance(first, ast.Expr) else None
            if node is None or (isinstance(node, ast.Call) and len(node.args) != 1):
                self._error(value, f"no type or value for {name}: as float32[2, 3], const(float32[3]) or 0.5")
                return ""
            if isinstance(node, ast.Subscript):
                text.inputs.append(f"{name}: {ast.unparse(node)}")
            elif isinstance(node, ast.Call):
                text.constants.append(f"{name}: {ast.unparse(node.args[0])}")
            else:
                substitute.values[name] = node
        lowered = _Flatten(text)
        try:
            body = [line for statement in statements for line in lowered.lines(substitute.visit(statement))]
        except (ValueError, ArithmeticError):
            self._error(example, "a number of the pattern cannot be worked out with these values")
            return ""
        target = statements[-1].targets[0]
        results = [ast.unparse(t) for t in (target.elts if isinstance(target, ast.Tuple) else [target])]
        return text.graph(body, results)

    def _names(self, statements: list[ast.Assign], example: YamlMapping) -> bool:
        """Report names of an example that the pattern does not have, and those that it lacks."""
        nodes = [n for statement in statements for n in ast.walk(statement)]
        called = {id(n.func) for n in nodes if isinstance(n, ast.Call)}
        names = [n for n in nodes if isinstance(n, ast.Name) and id(n) not in called]
        results = {n.id for n in names if isinstance(n.ctx, ast.Store)}
        free = dict.fromkeys(n.id for n in names if n.id not in results and n.id not in CONSTANTS)
        given = [key.text for key, _ in example.entries]
        for key, _ in example.entries:
            if key.text not in free:
                self.diagnostics.unknown("example", key.position, "free name of the pattern", key.text, free)
        missing = [name for name in free if name not in given]
        if missing:
            self._error(example, f"the example gives nothing for {', '.join(missing)}")
        return not missing and all(name in free for name in given)

    def _parsed(self, scalar: Scalar) -> list[ast.stmt] | None:
        try:
            return source_of(scalar).statements()
        except SourceError as error:
            sentence = f"not an example: {shortened(scalar.text)!r}"
            self.diagnostics.error("example", error.position, sentence, error.hint)
            return None

    def _error(self, at: Node, sentence: str) -> None:
        self.diagnostics.error("example", at.position, sentence)


class _Substitute(ast.NodeTransformer):
    """Puts values in the places of captured fields; ``...`` (any other fields) is left out."""

    def __init__(self, values: dict[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.values.get(node.id, node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        node.args = [a for a in node.args if not (isinstance(a, ast.Constant) and a.value is ...)]
        return node


class _Flatten:
    """Writes nested applications and numbers as lines and constants of their own."""

    def __init__(self, text: _Text) -> None:
        self.text = text
        self.count = 0

    def lines(self, statement: ast.stmt) -> list[str]:
        assert isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)
        before: list[str] = []
        call = self._call(statement.value, before)
        return [*before, f"{ast.unparse(statement.targets[0])} = {call}"]

    def _call(self, call: ast.Call, before: list[str]) -> str:
        operands = [self._operand(arg, before) for arg in call.args]
        fields = [f"{k.arg}={_value(k.value)}" for k in call.keywords]
        return f"{ast.unparse(call.func)}({', '.join([*operands, *fields])})"

    def _operand(self, arg: ast.expr, before: list[str]) -> str:
        if isinstance(arg, ast.Call):
            self.count += 1
            name = f"inner_{self.count}"
            before.append(f"{name} = {self._call(arg, before)}")
            return name
        if isinstance(arg, ast.Name) or (isinstance(arg, ast.Constant) and arg.value is None):
            return ast.unparse(arg)
        name = f"number_{len(self.text.constants)}"
        self.text.constants.append(f"{name}: float32[] = {_value(arg)}")
        return name


def _value(node: ast.expr) -> str:
    """Return a number, a sum or quotient of numbers worked out, or any other literal as it is."""
    if isinstance(node, ast.BinOp):
        left, right = float(_value(node.left)), float(_value(node.right))
        if isinstance(node.op, ast.Div):
            return repr(left / right)
        return repr(left * right if isinstance(node.op, ast.Mult) else left**right)
    return ast.unparse(node)


def _lines(match: Source) -> list[ast.Assign]:
    """Return the lines of a pattern; none if it is not well formed, which is reported elsewhere."""
    try:
        body = deepcopy(match.statements())  # values are put into it
    except SourceError:
        return []
    lines = [s for s in body if isinstance(s, ast.Assign) and isinstance(s.value, ast.Call)]
    return lines if len(lines) == len(body) else []


def example_table(entries: list[str]) -> Code:
    """Return the table of a package's examples."""
    return tuple_of("EXAMPLES: Final[tuple[tuple[str, str, str], ...]] = ", entries, 0)


def _entry(subject: str, position: Position, text: str) -> str:
    return f"({literal(subject)}, {literal(place(position))}, {literal(text)})"
