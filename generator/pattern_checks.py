"""Whether a pattern can match, and says what it seems to say: names, operands and fields of its nodes."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from caffeforge.generator.expression import Printer
from caffeforge.generator.hub_schema import HubOp
from caffeforge.generator.mapping import PatternRule
from caffeforge.generator.names import CONSTANTS
from caffeforge.generator.rule_checks import names_of
from caffeforge.generator.source import SourceError


@dataclass
class PatternChecks:
    """Follows the names of one pattern."""

    printer: Printer
    ops: Mapping[str, HubOp]
    rule: PatternRule
    values: dict[str, ast.AST] = field(default_factory=dict)  # operands, by where they first stand
    lists: set[str] = field(default_factory=set)
    captures: dict[str, list[ast.AST]] = field(default_factory=dict)
    results: dict[str, ast.AST] = field(default_factory=dict)

    def run(self, statements: Sequence[ast.stmt]) -> bool:
        """Report what is wrong; return whether nothing is."""
        before = len(self.printer.diagnostics.found)
        groups = [self._statement(statement) for statement in statements]
        self._unread(groups)
        self._unused_captures()
        self._kinds()
        self._inner(groups)
        return len(self.printer.diagnostics.found) == before

    def _statement(self, statement: ast.stmt) -> list[str]:
        """Check one line; return the names it gives."""
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            self._error(statement, "a line of a pattern is 'results = Op(values, field=...)'")
            return []
        target = statement.targets[0]
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        names = [part.id for part in parts if isinstance(part, ast.Name)]
        if len(names) != len(parts):
            self._error(target, "results of a pattern are names")
            return []
        self._node(statement.value, len(names))
        for name in names:
            if name in self.results:
                self._error(target, f"{name} is given twice")
            elif name in self.values or name in self.captures:
                self._error(target, f"{name} is read above and given here: lines stand in order")
            self._name(name, target)
            self.results.setdefault(name, target)
        return names

    def _node(self, node: ast.expr, count: int) -> None:
        name = ast.unparse(node.func) if isinstance(node, ast.Call) else ast.unparse(node)
        op = self.ops.get(name)
        if op is None or not isinstance(node, ast.Call):
            at = self.printer.at(self.rule.match, node)
            self.printer.diagnostics.unknown("unknown-op", at, "op", name, self.ops)
            return
        most = len(op.outputs)
        if count > most and not any(f.option == "variadic" for f in op.outputs):
            self._error(node, f"{op.name} yields {most} value{'s' * (most > 1)}, {count} are named")
        args = list(node.args)
        if args and isinstance(args[-1], ast.Constant) and args[-1].value is ...:
            args.pop()
        self._count(op, node, args)
        for index, arg in enumerate(args):
            self._operand(arg, last=index == len(args) - 1)
        for keyword in node.keywords:
            self._field(op, keyword)

    def _count(self, op: HubOp, node: ast.Call, args: Sequence[ast.expr]) -> None:
        needed = sum(f.option == "single" and not f.static for f in op.inputs)
        variadic = any(f.option == "variadic" for f in op.inputs)
        starred = any(isinstance(arg, ast.Starred) for arg in args)
        if (len(args) > len(op.inputs) and not variadic) or (len(args) < needed and not starred):
            count = f"{needed} to {len(op.inputs)}" if needed != len(op.inputs) else str(needed)
            sentence = f"{op.name} takes {count} values, {len(args)} given: this never matches"
            self.printer.error("operand-count", self.rule.match, node, sentence)

    def _operand(self, arg: ast.expr, *, last: bool) -> None:
        if isinstance(arg, ast.Call):
            self._node(arg, 1)
        elif isinstance(arg, ast.Starred) and isinstance(arg.value, ast.Name):
            name = arg.value.id
            self._name(name, arg)
            if not last:
                self._error(arg, f"*{name} stands for all operands that are left, so that none follows it")
            if name in self.values and name not in self.lists:
                self._error(arg, f"{name} stands for one value already")
            self.values.setdefault(name, arg)
            self.lists.add(name)
        elif isinstance(arg, ast.Name) and CONSTANTS.get(arg.id) != "None":
            self._name(arg.id, arg)
            if arg.id in self.lists:
                self._error(arg, f"{arg.id} stands for several values already")
            self.values.setdefault(arg.id, arg)

    def _field(self, op: HubOp, keyword: ast.keyword) -> None:
        attribute = op.attribute(keyword.arg or "")
        if attribute is None:
            at, known = self.printer.at(self.rule.match, keyword), [a.name for a in op.attributes]
            given = keyword.arg or f"**{ast.unparse(keyword.value)}"
            self.printer.diagnostics.unknown("unknown-attribute", at, f"attribute of {op.name}", given, known)
        elif isinstance(keyword.value, ast.Name) and keyword.value.id not in CONSTANTS:
            self._name(keyword.value.id, keyword.value)
            self.captures.setdefault(keyword.value.id, []).append(keyword.value)

    def _name(self, name: str, node: ast.AST) -> None:
        if name in CONSTANTS:
            self._error(node, f"{name} stands for a constant, use another name")

    def _unread(self, groups: Sequence[list[str]]) -> None:
        """Report lines whose results no other line reads: such a pattern is of nodes that do not meet."""
        for names in groups[:-1]:
            if names and not any(name in self.values for name in names):
                listed = ", ".join(names)
                self._error(self.results[names[0]], f"no other line reads {listed}: this never matches")

    def _unused_captures(self) -> None:
        rule = self.rule
        sources = [rule.rewrite, *(c.source for c in rule.require), *(source for _, source in rule.let)]
        read = names_of([*sources, *([rule.when] if rule.when is not None else [])])
        for name, nodes in self.captures.items():
            if name in self.values or name in self.results:
                self._error(nodes[0], f"{name} stands for a value already")
            elif len(nodes) == 1 and name not in read:
                sentence = f"nothing reads {name}, so that any value of this field matches"
                hint = "write the value, or ... as the last operand if any will do"
                self.printer.error("pattern-unused", rule.match, nodes[0], sentence, hint)

    def _kinds(self) -> None:
        """Report names of optional: and constant: that are no operands."""
        for key, words in (("optional", self.rule.optional), ("constant", self.rule.constant)):
            for word in words:
                known = [name for name in self.values if name not in self.results]
                if word.text not in known:
                    what = f"operand of the pattern in {key}:"
                    self.printer.diagnostics.unknown("pattern-operand", word.position, what, word.text, known)

    def _inner(self, groups: Sequence[list[str]]) -> None:
        """Report inner values that the rewrite reads: they go with the nodes that are replaced."""
        inner = {name for names in groups[:-1] for name in names}
        try:
            statements = self.rule.rewrite.statements()
        except SourceError:
            return
        for node in (n for statement in statements for n in ast.walk(statement)):
            operands = [*node.args] if isinstance(node, ast.Call) else []
            for operand in operands:
                if isinstance(operand, ast.Name) and operand.id in inner:
                    sentence = f"{operand.id} is an inner value of the pattern and gone when this is built"
                    self.printer.error("pattern-inner", self.rule.rewrite, operand, sentence)

    def _error(self, node: ast.AST, sentence: str) -> None:
        self.printer.error("pattern-form", self.rule.match, node, sentence)
