"""Checks the types of expressions against hub attributes, proto fields and the functions of the library."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from caffeforge.generator.library import BUILTINS, Function
from caffeforge.generator.types import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    INTS,
    NONE,
    STRING,
    Type,
    a,
    comparable,
    elements,
    fits,
    joined,
    present,
)

if TYPE_CHECKING:
    from caffeforge.generator.expression import Scope

Report = Callable[[str, ast.AST, str, str], None]  # id, node, sentence, hint
OF_VALUE = {"shape": INTS, "rank": INT, "dtype": STRING, "name": STRING}
OF_TENSORS: dict[type[ast.operator], str] = {
    ast.Add: "Add",
    ast.Sub: "Sub",
    ast.Mult: "Mul",
    ast.Div: "Div",
    ast.Pow: "Pow",
}
CONSTANTS = {"true": BOOL, "false": BOOL, "True": BOOL, "False": BOOL, "none": NONE, "None": NONE}


class TypeChecker:
    """Infers types of one expression at a time; what is wrong is reported once, its type is then any."""

    def __init__(self, functions: Mapping[str, Function], scope: Scope, report: Report) -> None:
        self.functions = functions
        self.scope = scope
        self.wrong = False

        def noted(id: str, node: ast.AST, sentence: str, hint: str) -> None:
            self.wrong = True
            report(id, node, sentence, hint)

        self.report: Report = noted

    def check(self, node: ast.expr, expected: Type) -> None:
        """Report unless an expression may stand where `expected` is due."""
        given = self.infer(node, frozenset(self.scope.present))
        self._expect(given, (expected,), node, "")

    def condition(self, node: ast.expr) -> None:
        """Report unless an expression is a condition; names that it shows to be there count as such."""
        known = frozenset(self.scope.present)
        self._expect(self.infer(node, known), (BOOL,), node, "a condition is due: ")
        self.scope.present.update(_shown(node, True))

    def infer(self, node: ast.expr, known: frozenset[str]) -> Type:
        """Return the type of an expression; names in `known` are there though they are optional."""
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        return ANY if method is None else method(node, known)

    def _expect(self, given: Type, allowed: tuple[Type, ...], node: ast.AST, prefix: str) -> Type:
        if given.optional and not any(t.kind == "none" or t.optional for t in allowed):
            text = ast.unparse(node)
            self.report("type-optional", node, f"{text} may be absent", f"ask has({text}) first")
        elif isinstance(node, ast.List) and self._items(node, allowed):
            pass
        elif not any(fits(present(given), t) for t in allowed) or (
            given.kind == "none" and not any(t.optional or t.kind == "none" for t in allowed)
        ):
            due = " or ".join(dict.fromkeys(str(t) for t in allowed if t.kind != "none"))
            sentence = f"{prefix}{ast.unparse(node)} is {a(given)}, {a(due)} is due"
            self.report("type", node, sentence, self._hidden(node))
        else:
            return present(given)
        return ANY

    def _items(self, node: ast.List, allowed: tuple[Type, ...]) -> bool:
        """Report the items of a list that its elements cannot be; tell whether there are any."""
        element = allowed[0].element if len(allowed) == 1 and allowed[0].kind == "list" else None
        before = self.wrong
        self.wrong = False
        for item in node.elts if element is not None else ():
            silent = TypeChecker(self.functions, self.scope, lambda id, node, sentence, hint: None)
            given = silent.infer(item, frozenset(self.scope.present))
            if element is not None and not fits(present(given), element):
                sentence = f"{ast.unparse(item)} is {a(given)}, {a(element)} is due"
                self.report("type", item, sentence, self._hidden(item))
        found, self.wrong = self.wrong, self.wrong or before
        return found

    def _hidden(self, node: ast.AST) -> str:
        """Return how to read the field of a layer whose name stands for something else."""
        param = self.scope.names.get("param")
        fields = (param.type.fields if param is not None else None) or {}
        name = node.id if isinstance(node, ast.Name) else ""
        return f"the field is param.{name}" if name in fields and name in self.scope.names else ""

    def _used(self, node: ast.expr, known: frozenset[str], *allowed: Type) -> Type:
        """Return the type of a part that must be there, and of one of the types allowed, if any are named."""
        given = self.infer(node, known)
        if allowed:
            return self._expect(given, allowed, node, "")
        if given.optional or given.kind == "none":
            text = ast.unparse(node)
            self.report("type-optional", node, f"{text} may be absent", f"ask has({text}) first")
            return ANY
        return given

    def _constant(self, node: ast.Constant, known: frozenset[str]) -> Type:
        value = node.value
        if value is None:
            return NONE
        for kind, found in ((bool, BOOL), (int, INT), (float, FLOAT)):
            if isinstance(value, kind):
                return found
        return Type("string", values=(value,)) if isinstance(value, str) else ANY

    def _name(self, node: ast.Name, known: frozenset[str]) -> Type:
        name = self.scope.names.get(node.id)
        if name is None:
            return CONSTANTS.get(node.id, FLOAT if node.id in ("inf", "nan") else ANY)
        return present(name.type) if node.id in known else name.type

    def _list(self, node: ast.List | ast.Tuple, known: frozenset[str]) -> Type:
        return Type("list", items=tuple(self.infer(item, known) for item in node.elts))

    _tuple = _list

    def _attribute(self, node: ast.Attribute, known: frozenset[str]) -> Type:
        base = self._used(node.value, known)
        fields = OF_VALUE if base.kind == "value" else base.fields
        if base.kind == "any":
            self._of_no_type(node)
            return ANY
        if fields is None or node.attr not in fields:
            hint = f"it has {', '.join(fields)}" if fields else ""
            self.report("type-field", node, f"{a(base)} has no {node.attr}", hint)
            return ANY
        return fields[node.attr]

    def _of_no_type(self, node: ast.Attribute) -> None:
        """Report a field of what may be anything: its default, where it is absent, could not be told."""
        names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        known = all(name in {**self.scope.names, **self.functions, **BUILTINS} for name in names)
        if node.attr not in OF_VALUE and known and not self.wrong:
            text = ast.unparse(node.value)
            hint = "fields can be read of messages that the proto gives a type"
            self.report("type-field", node, f"{text} is of no known type and has no {node.attr}", hint)

    def _subscript(self, node: ast.Subscript, known: frozenset[str]) -> Type:
        base = self._used(node.value, known)
        index = node.slice
        if base.kind not in ("list", "any"):
            self.report("type-index", node, f"{ast.unparse(node.value)} is {a(base)} and has no elements", "")
            return ANY
        if isinstance(index, ast.Slice):
            for bound in (index.lower, index.upper):
                if bound is not None:
                    self._used(bound, known, INT)
            return Type("list", joined_all(elements(base))) if base.kind == "list" else ANY
        self._used(index, known, INT)
        if base.kind == "any":
            return ANY
        if base.items is not None and isinstance(index, ast.Constant) and isinstance(index.value, int):
            if not -len(base.items) <= index.value < len(base.items):
                self.report("type-index", node, f"there is no element {index.value}", "")
                return ANY
            return base.items[index.value]
        return joined_all(elements(base))

    def _binop(self, node: ast.BinOp, known: frozenset[str]) -> Type:
        left, right = self._used(node.left, known), self._used(node.right, known)
        if "any" in (left.kind, right.kind):
            return ANY
        if isinstance(node.op, ast.Add) and left.kind == right.kind == "list":
            if left.items is not None and right.items is not None:
                return Type("list", items=left.items + right.items)
            return joined(left, right)
        if isinstance(node.op, ast.Mult) and {left.kind, right.kind} == {"list", "int"}:
            return Type("list", joined_all(elements(left if left.kind == "list" else right)))
        if left.kind in ("int", "float") and right.kind in ("int", "float"):
            exact = left.kind == right.kind == "int" and not isinstance(node.op, ast.Div)
            if isinstance(node.op, ast.Pow) and not isinstance(node.right, ast.Constant):
                negative = isinstance(node.right, ast.UnaryOp)
                return FLOAT if negative or not exact else ANY  # a negative power of an int is none
            return INT if exact else FLOAT
        sentence = f"{ast.unparse(node)}: {a(left)} and {a(right)} do not combine"
        tensors = {"value", "array"} & {left.kind, right.kind}
        op = OF_TENSORS.get(type(node.op), "") if tensors else ""
        hint = f"tensors are computed in a rewrite: {op}({ast.unparse(node.left)}, {ast.unparse(node.right)})"
        self.report("type-operator", node, sentence, hint if op else "")
        return ANY

    def _unaryop(self, node: ast.UnaryOp, known: frozenset[str]) -> Type:
        if isinstance(node.op, ast.Not):
            self._used(node.operand, known, BOOL)
            return BOOL
        return self._used(node.operand, known, INT, FLOAT)

    def _boolop(self, node: ast.BoolOp, known: frozenset[str]) -> Type:
        for part in node.values:
            self._used(part, known, BOOL)
            known = known | _shown(part, isinstance(node.op, ast.And))
        return BOOL

    def _compare(self, node: ast.Compare, known: frozenset[str]) -> Type:
        sides = [self._used(side, known) for side in (node.left, *node.comparators)]
        for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
            if isinstance(operator, (ast.In, ast.NotIn)):
                for item in elements(right) if right.kind == "list" else ():
                    self._equal(node, left, item)
            elif isinstance(operator, (ast.Is, ast.IsNot)):
                continue  # which is reported where it is printed
            elif isinstance(operator, (ast.Eq, ast.NotEq)):
                self._equal(node, left, right)
            elif not {left.kind, right.kind} <= {"int", "float", "any"}:
                self.report("type-operator", node, f"{ast.unparse(node)}: only numbers have an order", "")
        return BOOL

    def _equal(self, node: ast.Compare, left: Type, right: Type) -> None:
        if not comparable(left, right):
            self.report("type-compare", node, f"{ast.unparse(node)}: {a(left)} is never {a(right)}", "")
        elif (
            left.values is not None and right.values is not None and not set(left.values) & set(right.values)
        ):
            word, known = (
                (left.values, right.values) if len(left.values) == 1 else (right.values, left.values)
            )
            near = difflib.get_close_matches(word[0], known, 1)
            hint = f"did you mean {near[0]}?" if near else f"it is one of {', '.join(known)}"
            self.report("type-enum", node, f"{ast.unparse(node)} never holds", hint)

    def _ifexp(self, node: ast.IfExp, known: frozenset[str]) -> Type:
        self._used(node.test, known, BOOL)
        body = self.infer(node.body, known | _shown(node.test, True))
        return joined(body, self.infer(node.orelse, known | _shown(node.test, False)))

    def _listcomp(self, node: ast.ListComp, known: frozenset[str]) -> Type:
        bound = self.loop_names(node.generators[0], known)
        inner = TypeChecker(self.functions, self.scope.typed(bound), self.report)
        return Type("list", inner.infer(node.elt, known))

    def loop_names(self, loop: ast.comprehension, known: frozenset[str]) -> dict[str, Type]:
        """Return the types of the names over which a comprehension runs."""
        listed = self._used(loop.iter, known)
        if listed.kind not in ("list", "any"):
            sentence = f"{ast.unparse(loop.iter)} is {a(listed)} and has no elements"
            self.report("type-index", loop.iter, sentence, "")
        element = joined_all(elements(listed)) if listed.kind == "list" else ANY
        if not isinstance(loop.target, ast.Tuple):
            return {ast.unparse(loop.target): element}
        targets = loop.target.elts
        parts = element.items if element.items is not None and len(element.items) == len(targets) else None
        types = parts or tuple(ANY if element.items else (element.element or ANY) for _ in targets)
        return {ast.unparse(t): kind for t, kind in zip(targets, types, strict=True)}

    def _call(self, node: ast.Call, known: frozenset[str]) -> Type:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "has":
            return BOOL
        function = self.functions.get(name)
        if function is None:
            return self._builtin(node, name, [self._used(arg, known) for arg in node.args])
        given = []
        for index, arg in enumerate(node.args):
            allowed = function.parameters[index] if index < len(function.parameters) else (ANY,)
            given.append(self._used(arg, known, *allowed))
        alike = [given[index] for index in function.alike if index < len(given)]
        if alike and all(one.kind == "list" for one in alike):
            return Type("list", joined_all(tuple(e for one in alike for e in elements(one))))
        return function.returns

    def _builtin(self, node: ast.Call, name: str, args: list[Type]) -> Type:
        if name not in BUILTINS or not args:
            return ANY
        first = args[0]
        if name == "zip":
            return Type("list", Type("list", items=tuple(joined_all(elements(a)) for a in args)))
        if name == "len" and first.kind not in ("list", "any"):
            self.report("type-index", node, f"{a(first)} has no length", "")
        if name in ("min", "max", "sum"):
            flat = joined_all(elements(first)) if first.kind == "list" else joined_all(tuple(args))
            return flat if flat.kind in ("int", "float") else ANY
        if name == "abs":
            return first if first.kind in ("int", "float") else ANY
        fixed = {
            "len": INT,
            "int": INT,
            "round": INT,
            "float": FLOAT,
            "all": BOOL,
            "any": BOOL,
            "range": INTS,
        }
        return fixed.get(name, ANY)


def joined_all(types: tuple[Type, ...]) -> Type:
    """Return the type of a value that is of one of `types`."""
    result = types[0] if types else ANY
    for other in types[1:]:
        result = joined(result, other)
    return result


def _shown(node: ast.expr, holds: bool) -> frozenset[str]:
    """Return the names that are there if a condition holds (or, with `holds` false, if it does not)."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _shown(node.operand, not holds)
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) == holds:
        return frozenset(name for part in node.values for name in _shown(part, holds))
    if holds and isinstance(node, ast.Call) and ast.unparse(node.func) == "has" and len(node.args) == 1:
        return frozenset({ast.unparse(node.args[0])})
    return frozenset()
