"""Expressions of mappings: a checked subset of Python's grammar, printed as plain Python.

Nothing is evaluated here. An expression is parsed with ``ast``; each name must be known to the rule's
scope, each function to the library; what is printed holds checked names and quoted literals only.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from caffeforge.generator.diagnostics import Diagnostics, Position
from caffeforge.generator.library import BUILTINS, Function
from caffeforge.generator.names import CONSTANTS, TAKEN, field_name, free_name
from caffeforge.generator.python_text import Code, literal
from caffeforge.generator.source import Source, SourceError, shortened
from caffeforge.generator.type_check import TypeChecker
from caffeforge.generator.types import ANY, ANY_OR_NONE, Type

BINARY: dict[type[ast.operator], tuple[str, int]] = {
    ast.Add: ("+", 11),
    ast.Sub: ("-", 11),
    ast.Mult: ("*", 12),
    ast.Div: ("/", 12),
    ast.FloorDiv: ("//", 12),
    ast.Mod: ("%", 12),
    ast.Pow: ("**", 14),
}
COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
}
Element = Callable[[ast.expr, "Scope"], str]
OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ATOM, TERNARY, OR, AND, NOT, COMPARISON, UNARY = 20, 1, 2, 3, 4, 5, 13


@dataclass(frozen=True)
class Name:
    """What a name of a rule stands for.

    Attributes:
        code: the Python that reads it.
        presence: the Python that tells whether it is set, for ``has(name)``; empty if it always is.
        type: what it holds.
    """

    code: str
    presence: str = ""
    type: Type = ANY


@dataclass
class Scope:
    """The names a rule may use.

    Attributes:
        used: those that it did use.
        present: optional ones that a condition has shown to be there.
        taken: names of Python that the function uses beside those that any may use.
    """

    names: Mapping[str, Name]
    used: set[str] = field(default_factory=set)
    present: set[str] = field(default_factory=set)
    taken: frozenset[str] = frozenset()

    def extended(self, more: Mapping[str, Name]) -> Scope:
        """Return a scope with `more` names before these; uses are remembered by both."""
        return Scope({**self.names, **more}, self.used, self.present, self.taken)

    def free(self, names: Iterable[str]) -> list[Code]:
        """Return Python names for new names of a rule, none of which is that of anything else."""
        codes: list[Code] = []
        for name in names:
            known = {held.code for held in self.names.values()}
            codes.append(free_name(name, TAKEN | self.taken | known | {*codes}))
        return codes

    def typed(self, more: Mapping[str, Type]) -> Scope:
        """Return a scope with names of these types, for inference."""
        return self.extended({name: Name(name, type=kind) for name, kind in more.items()})


class Printer:
    """Prints checked expressions of one file as Python."""

    def __init__(self, functions: Mapping[str, Function], diagnostics: Diagnostics) -> None:
        self.functions = functions
        self.diagnostics = diagnostics

    def parse(self, source: Source) -> ast.expr | None:
        """Parse one expression; errors go to the diagnostics and give None."""
        try:
            return source.expression()
        except SourceError as error:
            sentence = f"not an expression: {shortened(source.text)!r}"
            self.diagnostics.error("expression-syntax", error.position, sentence, error.hint)
            return None

    def print(self, source: Source, scope: Scope, expected: Type = ANY_OR_NONE) -> str:
        """Return `source` as Python; ``None`` stands for what was refused."""
        node = self.parse(source)
        if node is None:
            return "None"
        self.check(node, expected, scope, source)
        return self.expression(node, scope, source)

    def check(self, node: ast.expr, expected: Type, scope: Scope, source: Source) -> None:
        """Report an expression that cannot be of the type that is due."""
        self._types(scope, source).check(node, expected)

    def infer(self, source: Source, scope: Scope) -> Type:
        """Return the type of an expression; what is wrong with it is reported elsewhere."""
        node = self.parse(source)
        return ANY if node is None else self._type(node, scope)

    def _types(self, scope: Scope, source: Source) -> TypeChecker:
        def report(id: str, node: ast.AST, sentence: str, hint: str) -> None:
            self.error(id, source, node, sentence, hint=hint)

        return TypeChecker(self.functions, scope, report)

    def denials(self, source: Source, scope: Scope) -> list[tuple[str, str]]:
        """Return, for each part of a condition that must hold, its text and the Python that it does not."""
        node = self.parse(source)
        if node is not None:
            self._types(scope, source).condition(node)
        parts = node.values if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) else [node]
        return [(ast.unparse(part), self._denied(part, scope, source)) for part in parts if part is not None]

    def _denied(self, node: ast.expr, scope: Scope, source: Source) -> str:
        """Return ``not node``, put as a person would write it."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self._wrap(node.operand, scope, source, NOT)
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OPPOSITE:
            opposite = ast.Compare(node.left, [OPPOSITE[type(node.ops[0])]()], node.comparators)
            return self.expression(ast.copy_location(opposite, node), scope, source)
        text, level = self._node(node, scope, source)
        for sign, other in ((" is not None", " is None"), (" != ()", " == ()")):
            if level == COMPARISON and text.endswith(sign) and isinstance(node, ast.Call):
                return text.removesuffix(sign) + other
        return f"not {text}" if level >= NOT else f"not ({text})"

    def expression(self, node: ast.expr, scope: Scope, source: Source) -> str:
        """Return one parsed expression as Python."""
        return self._node(node, scope, source)[0]

    def error(self, id: str, source: Source, node: ast.AST, sentence: str, hint: str = "") -> None:
        """Report an error at a node of the source."""
        self.diagnostics.error(id, self.at(source, node), sentence, hint)

    def at(self, source: Source, node: ast.AST) -> Position:
        """Return the position of `node` in the file."""
        return source.at(getattr(node, "lineno", 1), getattr(node, "col_offset", 0))

    def _node(self, node: ast.expr, scope: Scope, source: Source) -> tuple[str, int]:
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            self.error(
                "expression-form",
                source,
                node,
                f"{ast.unparse(node)!r} is not allowed in an expression",
                hint="see docs/rules.md for what an expression may hold",
            )
            return "None", ATOM
        text, level = method(node, scope, source)
        return text, level

    def _wrap(self, node: ast.expr, scope: Scope, source: Source, level: int) -> str:
        text, inner = self._node(node, scope, source)
        return f"({text})" if inner < level else text

    def _constant(self, node: ast.Constant, scope: Scope, source: Source) -> tuple[str, int]:
        value = node.value
        if value is None or isinstance(value, (bool, int, str)):
            return literal(value), ATOM
        if isinstance(value, float) and math.isfinite(value):
            return literal(value), ATOM
        self.error("expression-form", source, node, f"the literal {ast.unparse(node)} is not allowed")
        return "None", ATOM

    def _name(self, node: ast.Name, scope: Scope, source: Source) -> tuple[str, int]:
        if node.id in scope.names:
            scope.used.add(node.id)
            return scope.names[node.id].code, ATOM
        if node.id in CONSTANTS:
            return CONSTANTS[node.id], ATOM
        if any(node.id in (name.type.values or ()) for name in scope.names.values()):
            sentence, hint = f"unknown name {node.id!r}", f'a value of an enum is written "{node.id}" here'
            self.error("unknown-name", source, node, sentence, hint)
        else:
            self.diagnostics.unknown("unknown-name", self.at(source, node), "name", node.id, scope.names)
        return "None", ATOM

    def _list(self, node: ast.List | ast.Tuple, scope: Scope, source: Source) -> tuple[str, int]:
        items = [self._wrap(item, scope, source, TERNARY) for item in node.elts]
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})", ATOM

    _tuple = _list

    def _attribute(self, node: ast.Attribute, scope: Scope, source: Source) -> tuple[str, int]:
        base = node.value
        if node.attr.startswith("_"):
            self.error("expression-form", source, node, f"{node.attr!r} is not a field")
        text = f"{self._wrap(base, scope, source, ATOM)}.{field_name(node.attr)}"
        held = self._type(base, scope).fields or {}
        default = held[node.attr].default if node.attr in held else ""
        return f"or_default({text}, {default})" if default else text, ATOM

    def _type(self, node: ast.expr, scope: Scope) -> Type:
        return self._silent(scope).infer(node, frozenset(scope.present))

    def _silent(self, scope: Scope) -> TypeChecker:
        return TypeChecker(self.functions, scope, lambda id, node, sentence, hint: None)

    def _subscript(self, node: ast.Subscript, scope: Scope, source: Source) -> tuple[str, int]:
        base = self._wrap(node.value, scope, source, ATOM)
        index = node.slice
        if isinstance(index, ast.Slice):
            if index.step is not None:
                self.error("expression-form", source, node, "a slice has no step")
            bounds = [self.expression(b, scope, source) if b else "" for b in (index.lower, index.upper)]
            plain = all(re.fullmatch(r"-?\w*", bound) for bound in bounds)
            colon = ":" if plain else f"{' ' * bool(bounds[0])}:{' ' * bool(bounds[1])}"
            return f"{base}[{bounds[0]}{colon}{bounds[1]}]", ATOM
        return f"{base}[{self.expression(index, scope, source)}]", ATOM

    def _binop(self, node: ast.BinOp, scope: Scope, source: Source) -> tuple[str, int]:
        if type(node.op) not in BINARY:
            self.error(
                "expression-form", source, node, f"the operator in {ast.unparse(node)!r} is not allowed"
            )
            return "None", ATOM
        sign, level = BINARY[type(node.op)]
        left = self._wrap(node.left, scope, source, level + (sign == "**"))
        right = self._wrap(node.right, scope, source, level + (sign != "**"))
        return f"{left} {sign} {right}" if sign != "**" else f"{left}**{right}", level

    def _unaryop(self, node: ast.UnaryOp, scope: Scope, source: Source) -> tuple[str, int]:
        if isinstance(node.op, ast.Not):
            return self._denied(node.operand, scope, source), NOT
        if isinstance(node.op, ast.USub):
            return f"-{self._wrap(node.operand, scope, source, UNARY)}", UNARY
        self.error("expression-form", source, node, f"the operator in {ast.unparse(node)!r} is not allowed")
        return "None", ATOM

    def _boolop(self, node: ast.BoolOp, scope: Scope, source: Source) -> tuple[str, int]:
        level, word = (AND, " and ") if isinstance(node.op, ast.And) else (OR, " or ")
        return word.join(self._wrap(v, scope, source, AND + 1) for v in node.values), level

    def _compare(self, node: ast.Compare, scope: Scope, source: Source) -> tuple[str, int]:
        text = self._wrap(node.left, scope, source, COMPARISON + 1)
        for operator, right in zip(node.ops, node.comparators, strict=True):
            if type(operator) not in COMPARE:
                self.error("expression-form", source, node, "'is' is not allowed; use == or has()")
                return "None", ATOM
            text += f" {COMPARE[type(operator)]} {self._wrap(right, scope, source, COMPARISON + 1)}"
        return text, COMPARISON

    def _ifexp(self, node: ast.IfExp, scope: Scope, source: Source) -> tuple[str, int]:
        parts = [self._wrap(part, scope, source, OR) for part in (node.body, node.test)]
        return f"{parts[0]} if {parts[1]} else {self._wrap(node.orelse, scope, source, TERNARY)}", TERNARY

    def _listcomp(self, node: ast.ListComp, scope: Scope, source: Source) -> tuple[str, int]:
        return (
            f"tuple({self.comprehension(node, scope, source, lambda n, s: self._wrap(n, s, source, 1))})",
            ATOM,
        )

    def comprehension(self, node: ast.ListComp, scope: Scope, source: Source, element: Element) -> str:
        """Print ``x for names in list``; `element` prints its head in the inner scope."""
        loop = node.generators[0]
        targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
        names = [t.id for t in targets if isinstance(t, ast.Name)]
        if len(node.generators) > 1 or loop.ifs or len(names) != len(targets):
            self.error(
                "expression-form", source, node, "a comprehension has one 'for' over names and no 'if'"
            )
            return "()"
        listed = self.expression(loop.iter, scope, source)
        for name in names:
            if name in CONSTANTS:
                self.error("expression-form", source, loop.target, f"{name} stands for a constant")
        codes = scope.free(names)
        types = self._silent(scope).loop_names(loop, frozenset(scope.present))
        bound = {name: Name(code, type=types[name]) for name, code in zip(names, codes, strict=True)}
        inner = scope.extended(bound)
        return f"{element(node.elt, inner)} for {', '.join(codes)} in {listed}"

    def _call(self, node: ast.Call, scope: Scope, source: Source) -> tuple[str, int]:
        if not isinstance(node.func, ast.Name) or node.keywords:
            self.error(
                "expression-form",
                source,
                node,
                f"{ast.unparse(node)!r}: a call is a function's name and values",
            )
            return "None", ATOM
        name = node.func.id
        if name == "has":
            return self._has(node, scope, source)
        function = self.functions.get(name) or BUILTINS.get(name)
        if function is None:
            known = [*self.functions, *BUILTINS, "has"]
            self.diagnostics.unknown("unknown-function", self.at(source, node), "function", name, known)
            return "None", ATOM
        if not function.least <= len(node.args) <= function.most:
            self.error(
                "call-arity",
                source,
                node,
                f"{name}() takes {function.arity()} values, {len(node.args)} given",
            )
        args = ", ".join(self._wrap(arg, scope, source, TERNARY) for arg in node.args)
        args += ", strict=True" if name == "zip" else ""
        return f"{'lib.' if name in self.functions else ''}{name}({args})", ATOM

    def _has(self, node: ast.Call, scope: Scope, source: Source) -> tuple[str, int]:
        arg = node.args[0] if len(node.args) == 1 else None
        if isinstance(arg, ast.Attribute) and self._type(arg.value, scope).kind == "message":
            held = self._wrap(arg.value, scope, source, ATOM)
            sign = "!= ()" if self._type(arg, scope).kind == "list" else "is not None"
            return f"{held}.{field_name(arg.attr)} {sign}", COMPARISON
        if not isinstance(arg, ast.Name):
            self.error("call-arity", source, node, "has() takes one name, or a field of a message")
            return "False", ATOM
        if arg.id not in scope.names:
            self._name(arg, scope, source)
            return "False", ATOM
        scope.used.add(arg.id)
        presence = scope.names[arg.id].presence
        return (presence, COMPARISON) if presence else ("True", ATOM)
