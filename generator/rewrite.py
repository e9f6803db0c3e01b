"""Rewrites of mappings: lines ``result = Op(values, field=expression)`` printed as calls of a Builder.

Positional arguments are tensors, keyword arguments static expressions. An argument may itself be an op,
a constant array, a number, ``a if condition else b`` or ``*[op for names in list]``.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from caffeforge.generator import types
from caffeforge.generator.expression import Name, Printer, Scope
from caffeforge.generator.hub_schema import HubOp
from caffeforge.generator.python_text import WIDTH, Code, call, indented, list_of, tuple_of
from caffeforge.generator.rewrite_checks import RewriteChecks
from caffeforge.generator.source import Source, SourceError, shortened
from caffeforge.generator.types import ANY, BOOL, INT, VALUE

OPERAND = types.optional(ANY)  # a tensor, weights or a number
NESTED = 20  # columns that a nested call may stand to the right of where it is laid out


@dataclass
class Rewriter:
    """Prints the rewrites of one rule.

    Attributes:
        builder: the Python name of the Builder.
        results: the rule's results by name, as the Python that holds them; ``*name`` holds a list.
        tops: results are the ``tops`` of a layer, bound by index.
        required: the results that a rewrite must give; None for all.
    """

    printer: Printer
    ops: Mapping[str, HubOp]
    builder: str
    results: Mapping[str, str]
    tops: bool = False
    required: Collection[str] | None = None
    pieces: set[str] = field(default_factory=set)  # lists that are given piece by piece

    def print(self, source: Source, scope: Scope) -> list[str]:
        """Return the statements of a rewrite, each laid out for column 0."""
        try:
            statements = source.statements()
        except SourceError as error:
            sentence = f"not a rewrite: {shortened(source.text)!r}"
            self.printer.diagnostics.error("rewrite-syntax", error.position, sentence, error.hint)
            return []
        checks = RewriteChecks(self.printer, source, scope.names, self.results, self._required(), self.tops)
        checks.run(statements)
        lines = []
        for statement in statements:
            if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
                self.printer.error(
                    "rewrite-form", source, statement, "a line is 'results = Op(values, field=...)'"
                )
                continue
            line, scope = self._assign(statement.targets[0], statement.value, scope, source)
            lines.append(line)
        if self.pieces and not self.tops:  # how many there are is known for each node only
            held = [self.results[name][1:] for name in self.results if name in self.pieces]
            lines += [str(call(f"{self.builder}.all_given", [name], 0)) for name in held]
        return lines

    def _required(self) -> Collection[str]:
        return self.results if self.required is None else self.required

    def _assign(self, target: ast.expr, value: ast.expr, scope: Scope, source: Source) -> tuple[str, Scope]:
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        if all(self._is_given(part) for part in parts):
            if any(isinstance(part, ast.Subscript) for part in parts):
                self.pieces.update(_held(part) for part in parts if isinstance(part, ast.Subscript))
            if self.tops:
                return self._tops(parts, value, scope, source), scope
            return self._result(parts, value, scope, source), scope
        names = [t.id for t in parts if isinstance(t, ast.Name) and not self._is_given(t)]
        if not names or len(names) < len(parts):
            self._wrong_target(target, parts, source)
            return "", scope.extended({name: Name("None") for name in names})
        codes = scope.free(names)
        new = {name: Name(code, type=VALUE) for name, code in zip(names, codes, strict=True)}
        inner = scope.extended(new)
        if len(names) == 1:
            return f"{codes[0]} = {self._operand(value, scope, source)}", inner
        self._check_results(value, len(names), source)
        return f"{', '.join(codes)} = {self._many(value, str(len(names)), scope, source)}", inner

    def _is_given(self, target: ast.expr) -> bool:
        """Tell whether a target is a result of what is rewritten, or a piece of one that is a list."""
        if isinstance(target, ast.Subscript):
            return isinstance(target.value, ast.Name) and self._is_list(target.value.id)
        return isinstance(target, ast.Name) and (target.id in self.results or self._is_list(target.id))

    def _is_list(self, name: str) -> bool:
        return name == "tops" if self.tops else self.results.get(name, "").startswith("*")

    def _wrong_target(self, target: ast.expr, parts: Sequence[ast.expr], source: Source) -> None:
        sentence = f"{ast.unparse(target)}: either new names are due here, or results of what is rewritten"
        known = ", ".join(self.results) or "tops"
        hint = f"its results are {known}" if any(isinstance(p, ast.Subscript) for p in parts) else ""
        self.printer.error("rewrite-form", source, target, sentence, hint)

    def _tops(self, parts: Sequence[ast.expr], value: ast.expr, scope: Scope, source: Source) -> str:
        """Return the statement that gives tops of a layer: one, several, or all of them."""
        indices = [self._index(part, scope, source) for part in parts if isinstance(part, ast.Subscript)]
        if not indices:
            scope.used.add("tops")
            return call(f"{self.builder}.all_tops", [self._all(value, scope, source)], 0)
        if len(indices) < len(parts):
            self._wrong_target(ast.Tuple(list(parts)), parts, source)
            return ""
        if len(indices) == 1:
            return call(f"{self.builder}.top", [indices[0], self._operand(value, scope, source)], 0)
        self._check_results(value, len(indices), source)
        values = self._many(value, str(len(indices)), scope, source)
        return call(f"{self.builder}.some_tops", [str(tuple_of("", indices, 0)), values], 0)

    def _index(self, target: ast.Subscript, scope: Scope, source: Source) -> str:
        if isinstance(target.slice, ast.Slice):
            sentence = f"{ast.unparse(target)}: one piece at a time is given"
            name = _held(target)
            self.printer.error("rewrite-form", source, target, sentence, f"write {name}[0], {name}[1] = ...")
            return "0"
        self.printer.check(target.slice, INT, scope, source)
        return self.printer.expression(target.slice, scope, source)

    def _result(self, parts: Sequence[ast.expr], value: ast.expr, scope: Scope, source: Source) -> str:
        """Return the statement that gives results of an op."""
        results = []
        for part in parts:
            held = self.results[_held(part)]
            if isinstance(part, ast.Subscript):
                index = self._index(part, scope, source)
                held = str(call(f"{self.builder}.result", [held[1:], index], 0))
            results.append(held)
        whole = results[0][1:] if len(results) == 1 and results[0].startswith("*") else ""
        if whole and isinstance(value, (ast.ListComp, ast.List)):
            applied = self._applications(value, scope, source)
            return call(f"{self.builder}.apply_each", [applied, whole], 0)
        application = self._application(value, scope, source)
        self._check_results(value, len(parts), source)
        return call(f"{self.builder}.apply", [*application, whole or str(tuple_of("", results, 0))], 0)

    def _applications(self, node: ast.List | ast.ListComp, scope: Scope, source: Source) -> str:
        """Return a list of pairs, an op and its operands each, that gives one result after the other."""
        if isinstance(node, ast.ListComp):
            text = self.printer.comprehension(node, scope, source, lambda n, s: self._applied(n, s, source))
            return f"[{text}]" if "\n" not in text else f"[\n{indented(text, 4)}\n]"
        items = []
        for item in node.elts:
            inner = item.value if isinstance(item, ast.Starred) else item
            if isinstance(item, ast.Starred) and isinstance(inner, (ast.List, ast.ListComp)):
                items.append(f"*{self._applications(inner, scope, source)}")
            else:
                items.append(self._applied(item, scope, source))
        return str(list_of("", items, 0))

    def _applied(self, node: ast.expr, scope: Scope, source: Source) -> str:
        return str(tuple_of("", self._application(node, scope, source), 0, NESTED))

    def _all(self, value: ast.expr, scope: Scope, source: Source) -> str:
        if isinstance(value, ast.ListComp):
            return self._starred(value, scope, source)
        if isinstance(value, ast.List):
            return str(list_of("", [self._operand(item, scope, source) for item in value.elts], 0))
        return self._many(value, "len(tops)", scope, source)

    def _many(self, value: ast.expr, count: str, scope: Scope, source: Source) -> str:
        return call(f"{self.builder}.values", [*self._application(value, scope, source), count], 0)

    def _operand(self, node: ast.expr, scope: Scope, source: Source) -> str:
        if isinstance(node, ast.IfExp):
            parts = [self._operand(part, scope, source) for part in (node.body, node.orelse)]
            self.printer.check(node.test, BOOL, scope, source)
            test = self.printer.expression(node.test, scope, source)
            one = f"{parts[0]} if {test} else {parts[1]}"
            if "\n" not in one and len(one) + NESTED <= WIDTH:
                return one
            return f"(\n{indented(f'{parts[0]}{chr(10)}if {test}{chr(10)}else {parts[1]}', 4)}\n)"
        if isinstance(node, ast.Starred):
            return f"*{self._starred(node.value, scope, source)}"
        if self._is_op(node):
            return call(f"{self.builder}.value", self._application(node, scope, source), 0, margin=NESTED)
        if not isinstance(node, ast.Constant):
            self.printer.check(node, OPERAND, scope, source)
        return self.printer.expression(node, scope, source)

    def _starred(self, node: ast.expr, scope: Scope, source: Source) -> str:
        if not isinstance(node, ast.ListComp):
            return self.printer.expression(node, scope, source)
        text = self.printer.comprehension(node, scope, source, lambda n, s: self._operand(n, s, source))
        return f"[{text}]"

    def _application(self, node: ast.expr, scope: Scope, source: Source) -> list[str]:
        """Return the op and its operands as two arguments."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Name, ast.Attribute)):
            hint = f"write Identity({node.id})" if isinstance(node, ast.Name) else ""
            sentence = f"{ast.unparse(node)!r} is no application of an op"
            self.printer.error("rewrite-form", source, node, sentence, hint)
            return ["None", "()"]
        name = ast.unparse(node.func)
        op = self.ops.get(name)
        if op is None:
            at = self.printer.at(source, node)
            self.printer.diagnostics.unknown("unknown-op", at, "op", name, self.ops)
            for arg in node.args:
                self._operand(arg, scope, source)
            return ["None", "()"]
        fields = self._fields(op, node, scope, source)
        operands = [self._operand(arg, scope, source) for arg in node.args]
        self._check_operands(op, node, source)
        listed = tuple_of("", operands, 0, NESTED)
        if len(operands) == 1 and operands[0].startswith("*"):
            listed = Code(operands[0][1:])
        return [call(op.code, fields, 0, margin=NESTED), listed]

    def _fields(self, op: HubOp, node: ast.Call, scope: Scope, source: Source) -> list[str]:
        fields, given = [], set()
        for keyword in node.keywords:
            attribute = op.attribute(keyword.arg or "")
            if attribute is None:
                at = self.printer.at(source, keyword)
                known = [a.name for a in op.attributes]
                self.printer.diagnostics.unknown(
                    "unknown-attribute", at, f"attribute of {op.name}", keyword.arg or "**", known
                )
                continue
            given.add(attribute.name)
            optional = attribute.default is None and not attribute.required
            due = types.optional(attribute.type) if optional else attribute.type
            self.printer.check(keyword.value, due, scope, source)
            fields.append(f"{attribute.python}={self.printer.expression(keyword.value, scope, source)}")
        positional = {f.name for f in op.inputs[: len(node.args)]}
        needed = {f.name for f in op.inputs if f.static and f.option == "single"} - positional
        for attribute in op.attributes:
            if (attribute.required or attribute.name in needed) and attribute.name not in given:
                self.printer.error("missing-attribute", source, node, f"{op.name} needs {attribute.name}=")
        return fields

    def _check_operands(self, op: HubOp, node: ast.Call, source: Source) -> None:
        variadic = any(f.option == "variadic" for f in op.inputs)
        needed = sum(f.option == "single" and not f.static for f in op.inputs)
        starred = any(isinstance(arg, ast.Starred) for arg in node.args)
        if (len(node.args) > len(op.inputs) and not variadic) or (len(node.args) < needed and not starred):
            count = f"{needed} to {len(op.inputs)}" if needed != len(op.inputs) else str(needed)
            self.printer.error(
                "operand-count", source, node, f"{op.name} takes {count} values, {len(node.args)} given"
            )

        for formal, arg in zip(op.inputs, node.args, strict=False):
            given = not (isinstance(arg, ast.Constant) and arg.value is None)
            if formal.static and given and formal.name in [keyword.arg for keyword in node.keywords]:
                sentence = f"{formal.name} of {op.name} is given twice: as a value and as a field"
                self.printer.error("twice", source, arg, sentence)

    def _check_results(self, node: ast.expr, count: int, source: Source) -> None:
        op = self.ops.get(ast.unparse(node.func)) if isinstance(node, ast.Call) else None
        if op is not None and count > len(op.outputs) and op.outputs[-1].option != "variadic":
            sentence = (
                f"{op.name} yields {len(op.outputs)} value{'s' * (len(op.outputs) > 1)}, {count} are named"
            )
            self.printer.error("result-count", source, node, sentence)

    def _is_op(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and (
            isinstance(node.func, ast.Attribute)
            or (isinstance(node.func, ast.Name) and node.func.id[:1].isupper())
        )


def _held(target: ast.expr) -> str:
    """Return the name of a result: that of a list for one of its pieces."""
    return ast.unparse(target.value if isinstance(target, ast.Subscript) else target)
