"""Whether a rewrite says what it seems to say: each name given once and read, each result given."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from caffeforge.generator.expression import Printer
from caffeforge.generator.names import CONSTANTS
from caffeforge.generator.source import Source


@dataclass
class RewriteChecks:
    """Follows the names of one rewrite.

    Attributes:
        known: names that stand for something already: operands, fields, let values.
        results: names of what is rewritten.
        required: those of them that must be given.
        tops: the results are ``tops[0]`` and so on.
    """

    printer: Printer
    source: Source
    known: Collection[str]
    results: Collection[str]
    required: Collection[str]
    tops: bool
    given: dict[str, ast.AST] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)

    def run(self, statements: Sequence[ast.stmt]) -> None:
        """Report what is wrong with the names of the statements."""
        groups: list[list[ast.Name]] = []
        for statement in statements:
            if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
                continue  # which is reported where it is printed
            self._reads(statement.value)
            target = statement.targets[0]
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            for part in parts:
                self._assign(part)
            groups.append([p for p in parts if isinstance(p, ast.Name) and not self._is_result(p.id)])
        for group in groups:
            if group and not any(name.id in self.read for name in group):
                names = ", ".join(name.id for name in group)
                self._error("rewrite-unused", group[0], f"nothing reads {names}")
        self._missing(statements)

    def _is_result(self, name: str) -> bool:
        return name in self.results or (self.tops and name == "tops")

    def _reads(self, value: ast.expr) -> None:
        asked = {id(_whole(node.value)) for node in ast.walk(value) if isinstance(node, ast.Attribute)}
        for node in ast.walk(value):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("has", "len"):
                asked.update(map(id, node.args))
            if isinstance(node, ast.Subscript) and ast.unparse(node) in self.given:
                asked.add(id(node.value))
        for node in ast.walk(value):
            if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
                continue
            self.read.add(node.id)
            if node.id in self.results and node.id not in self.given and id(node) not in asked:
                sentence = f"{node.id} is read here and given below: it is a result of what is rewritten"
                self._error("rewrite-order", node, sentence)

    def _assign(self, target: ast.expr) -> None:
        name = ast.unparse(target)
        whole = ast.unparse(_whole(target))
        pieces = [given for given in self.given if given.startswith(f"{name}[")]
        if name in self.given or (whole in self.given and self._is_result(whole)) or pieces:
            known = self._is_result(whole)
            hint = "each result is given once" if known else "give the second one a name of its own"
            self._error("rewrite-twice", target, f"{name} is given twice", hint)
        elif name in self.known and not self._is_result(name):
            sentence = f"{name} stands for something else already"
            self._error("rewrite-name", target, sentence, "give the result a name of its own")
        elif name in CONSTANTS:
            self._error("rewrite-name", target, f"{name} stands for a constant", "use another name")
        self.given.setdefault(name, target)

    def _missing(self, statements: Sequence[ast.stmt]) -> None:
        missing = [name for name in self.required if name not in self.given]
        for name in ["tops"] if self.tops and statements else [*missing]:
            pieces = [node for given, node in self.given.items() if given.startswith(f"{name}[")]
            numbers = [n for n in map(_number, pieces) if n is not None]
            if name in self.given:
                continue
            if pieces:
                missing = [m for m in missing if m != name]
                missing += [f"{name}[{i}]" for i in range(max(numbers, default=0)) if i not in numbers]
            elif self.tops:
                missing = ["tops[0]"]
        for name in missing:
            position = self.source.at(1, 0)
            sentence = f"the rewrite never gives {name}"
            self.printer.diagnostics.error(
                "rewrite-missing", position, sentence, f"a line '{name} = ...' is due"
            )

    def _error(self, id: str, node: ast.AST, sentence: str, hint: str = "") -> None:
        self.printer.error(id, self.source, node, sentence, hint)


def _whole(node: ast.expr) -> ast.expr:
    """Return the list of which an expression is a piece; what is no piece is whole."""
    return node.value if isinstance(node, ast.Subscript) else node


def _number(target: ast.AST) -> int | None:
    """Return 1 for ``tops[1]``, None for a place that is worked out."""
    index = target.slice if isinstance(target, ast.Subscript) else None
    return index.value if isinstance(index, ast.Constant) and isinstance(index.value, int) else None
