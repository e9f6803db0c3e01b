"""Examples of rules, as graphs in the notation of dumps: what tests run to see that a rule is right.

An op's example is its application to types: ``HardSwish(float32[2, 3, 5, 7])``, with ``const(...)`` for a
constant, a number or a list for itself; several results are named: ``a, b = Split(...)``. A pattern's
example gives a type, or a field's value, for each of its free names. ``refused:`` has the same form.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Sequence as Listed
from copy import deepcopy
from dataclasses import dataclass, field

from caffeforge.generator.application import Application, applications, elements, weights_type
from caffeforge.generator.diagnostics import Position
from caffeforge.generator.expression import Printer, Scope
from caffeforge.generator.hub_schema import HubOp
from caffeforge.generator.mapping import PatternRule, Rule
from caffeforge.generator.names import CONSTANTS, place
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

    def __init__(self, ops: Mapping[str, HubOp], printer: Printer) -> None:
        self.ops = ops
        self.printer = printer
        self.diagnostics = printer.diagnostics

    def of_ops(self, rules: Iterable[Rule]) -> list[str]:
        """Return table entries (subject, rule, graph) for rules of ops."""
        found = [(rule, text) for rule in rules for text in self._graphs(rule, rule.example)]
        return [_entry(rule.name.text, rule.name.position, text) for rule, text in found]

    def refused_ops(self, rules: Iterable[Rule]) -> list[str]:
        """Return table entries (subject, rule, graph, condition) for what rules of ops say they refuse."""
        return [
            _entry(rule.name.text, rule.name.position, text, at)
            for rule in rules
            for at, node in refused_nodes(rule)
            for text in self._graphs(rule, node)
        ]

    def of_patterns(self, rules: Iterable[PatternRule]) -> list[str]:
        """Return table entries (subject, rule, graph) for patterns."""
        found = [(rule, text) for rule in rules for text in self._matches(rule, rule.example)]
        return [_entry(rule.name.text, rule.name.position, text) for rule, text in found]

    def refused_patterns(self, rules: Iterable[PatternRule]) -> list[str]:
        """Return table entries (subject, rule, graph, "") for what patterns say they do not join."""
        found = [(rule, text) for rule in rules for text in self._matches(rule, rule.refused)]
        return [_entry(rule.name.text, rule.name.position, text, "") for rule, text in found]

    def _graphs(self, rule: Rule, node: Node | None) -> Iterator[str]:
        for found in applications(node, rule.name.text, self.diagnostics):
            op = self.ops.get(rule.name.text)
            if op is None or not self._fits(found, op):
                continue  # an unknown op is reported elsewhere
            text = _Text()
            operands = [self._operand(arg, text, found) for arg in found.operands]
            fields = [f"{key}={ast.unparse(value)}" for key, value in found.fields]
            operands = _placed(operands, op)
            line = f"{', '.join(found.results)} = {found.name}({', '.join([*operands, *fields])})"
            yield text.graph([line], list(found.results))

    def _fits(self, found: Application, op: HubOp) -> bool:
        """Report fields that the op does not have or that are of another type, and operands too many."""
        before = len(self.diagnostics.found)
        variadic = any(formal.option == "variadic" for formal in op.inputs)
        if len(found.operands) > len(op.inputs) and not variadic:
            names = ", ".join(formal.name for formal in op.inputs)
            at = place_of(found.source, found.operands[len(op.inputs)])
            self.diagnostics.error("example", at, f"{op.name} takes no more values than {names}")
        for key, value in found.fields:
            attribute, at = op.attribute(key), place_of(found.source, value)
            if attribute is None:
                known = [a.name for a in op.attributes]
                self.diagnostics.unknown("example", at, f"field of {op.name}", key, known)
            else:
                self.printer.print(Source(ast.unparse(value), at), Scope({}), attribute.type)
        return len(self.diagnostics.found) == before

    def _operand(self, arg: ast.expr, text: _Text, found: Application) -> str:
        if isinstance(arg, ast.Constant) and arg.value is None:
            return "None"
        if isinstance(arg, ast.Subscript):
            name = f"x{len(text.inputs)}"
            text.inputs.append(f"{name}: {ast.unparse(arg)}")
            return name
        name, kind = f"c{len(text.constants)}", weights_type(arg)
        if kind:
            text.constants.append(f"{name}: {kind}")
            return name
        kind, value = elements(arg)
        if kind:
            text.constants.append(f"{name}: {kind} = {value}")
            return name
        sentence = f"{ast.unparse(arg)!r} is no type, const(type), number or list of numbers"
        self.diagnostics.error("example", place_of(found.source, arg), sentence)
        return "None"

    def _matches(self, rule: PatternRule, given: Node | None) -> Iterator[str]:
        for node in given.items if isinstance(given, Sequence) else () if given is None else (given,):
            if isinstance(node, YamlMapping):
                text = self._matched(rule, node)
                if text:
                    yield text
            else:
                self._error(node, "an example of a pattern gives a type or value for each free name")

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


def example_tables(found: Examples, rules: Listed[Rule], patterns: Listed[PatternRule]) -> dict[str, Code]:
    """Return the tables of a package's examples, of what its rules take and of what they refuse."""
    taken = [*found.of_patterns(patterns), *found.of_ops(rules)]
    refused = [*found.refused_patterns(patterns), *found.refused_ops(rules)]
    return {
        "examples": tuple_of("EXAMPLES: Final[tuple[tuple[str, str, str], ...]] = ", taken, 0),
        "refused": tuple_of("REFUSED: Final[tuple[tuple[str, str, str, str], ...]] = ", refused, 0),
    }


def refused_nodes(rule: Rule) -> Iterator[tuple[str, Node]]:
    """Yield what a rule refuses as YAML, each with the place of its condition, empty for the whole rule."""
    conditions = [c for alternative in rule.alternatives for c in alternative.require]
    for condition in {c.source.position: c for c in conditions}.values():
        if condition.refused is not None:
            yield place(condition.source.position), condition.refused
    if rule.refused is not None:
        yield "", rule.refused


def _placed(operands: list[str], op: HubOp) -> list[str]:
    """Return operands as graphs take them, where inputs that are fields have a place of their own.

    More than there are operands besides these stand for all inputs: one that should be a field is computed.
    """
    given = [formal for formal in op.inputs if not formal.static]
    if len(operands) > len(given) or any(formal.option == "variadic" for formal in given):
        return operands
    left = iter(operands)
    placed = ["None" if formal.static else next(left, "") for formal in op.inputs]
    while placed and placed[-1] in ("", "None") and len(placed) > len(operands):
        placed.pop()
    return [operand or "None" for operand in placed]


def place_of(source: Source, node: ast.expr) -> Position:
    """Return where a part of an example stands."""
    return source.at(node.lineno, node.col_offset)


def _entry(subject: str, position: Position, *texts: str) -> str:
    return f"({', '.join(literal(text) for text in (subject, place(position), *texts))})"
