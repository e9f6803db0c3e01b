"""An expression, a rewrite or a pattern as text of a mapping: parsed here, with the place of each part."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass, field

from caffeforge.generator.diagnostics import Position
from caffeforge.generator.written import Written

LONGEST = 80  # characters of a text in a message
DEEPEST = 60  # levels of nesting; a chain of operators is as deep as it is long


class SourceError(Exception):
    """The text is not of Python's grammar, or is nested too deeply."""

    def __init__(self, position: Position, hint: str) -> None:
        super().__init__(hint)
        self.position = position
        self.hint = hint


@dataclass(frozen=True)
class Source:
    """An expression's text and where it stands.

    Attributes:
        position: the place of the scalar that holds it.
        written: how it is written there.
    """

    text: str
    position: Position
    written: Written = field(default=Written(), repr=False)

    def at(self, line: int, column: int) -> Position:
        """Return the place of a part, as ``ast`` counts: lines from 1, columns in bytes from 0."""
        lines = self.text.split("\n")
        before = lines[: line - 1]
        rest = lines[line - 1].encode("utf-8", "replace")[:column] if line <= len(lines) else b""
        return self._place(sum(len(one) + 1 for one in before) + len(rest.decode("utf-8", "replace")))

    def _place(self, index: int) -> Position:
        if not self.written.raw:
            return self.position
        return self.written.place(self.text, min(index, len(self.text)), self.position)

    def expression(self) -> ast.expr:
        """Return the text as one expression.

        Raises:
            SourceError: it is none.
        """
        lead = len(self.text) - len(self.text.lstrip())
        tree = self._parsed(self.text.strip(), "eval", lead)
        assert isinstance(tree, ast.Expression)
        return tree.body

    def statements(self) -> list[ast.stmt]:
        """Return the text as statements.

        Raises:
            SourceError: it is no Python.
        """
        tree = self._parsed(self.text, "exec", 0)
        assert isinstance(tree, ast.Module)
        return tree.body

    def _parsed(self, text: str, mode: str, lead: int) -> ast.AST:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # what Python would warn of, as "\d", is a mistake here
                tree = ast.parse(text, mode=mode)
        except SyntaxError as error:
            raise SourceError(self._syntax(error, text, lead), "") from None
        except (ValueError, RecursionError, MemoryError):
            raise SourceError(self._place(lead), "it is too long or too deeply nested") from None
        if _depth(tree) > DEEPEST:
            raise SourceError(self._place(lead), "it is too deeply nested: name its parts by let:")
        if lead:
            _shift(tree, self.text, lead)
        return tree

    def _syntax(self, error: SyntaxError, text: str, lead: int) -> Position:
        lines = text.split("\n")
        line = min(max(error.lineno or 1, 1), len(lines))
        column = min(max((error.offset or 1) - 1, 0), len(lines[line - 1]))
        return self._place(lead + sum(len(one) + 1 for one in lines[: line - 1]) + column)


def shortened(text: str) -> str:
    """Return a text for a message: on one line, its end left out if it is long."""
    one = " ".join(text.split())
    return one if len(one) <= LONGEST else f"{one[: LONGEST - 3]}..."


def _shift(tree: ast.AST, text: str, lead: int) -> None:
    """Move the nodes of a text that was stripped to where they stand in the whole one."""
    blank = text[:lead]
    lines, columns = blank.count("\n"), len(blank.rpartition("\n")[2])
    for node in ast.walk(tree):
        if isinstance(node, (ast.expr, ast.keyword)):
            node.col_offset += columns if node.lineno == 1 else 0
            node.lineno += lines


def _depth(tree: ast.AST) -> int:
    """Return how deeply the nodes of a tree are nested; no call per level, so that any depth can be told."""
    deepest, level = 0, [tree]
    while level:
        deepest += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return deepest
