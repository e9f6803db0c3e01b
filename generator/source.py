"""An expression, a rewrite or a pattern as text of a mapping: parsed here, with the place of each part."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass, field
from functools import lru_cache
from keyword import iskeyword
from typing import Literal

from caffeforge.generator.diagnostics import Position
from caffeforge.generator.python_text import is_name
from caffeforge.generator.written import Written

Mode = Literal["eval", "exec"]
BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"))
FOREIGN = {"&&": "and", "||": "or", "? ": "a if condition else b"}
LIMIT = 2**63
LONGEST = 80  # characters of a text in a message
NAMED: dict[type[ast.AST], str] = {ast.Name: "id", ast.Attribute: "attr", ast.keyword: "arg"}
DEEPEST = 60  # levels of nesting; a chain of operators is as deep as it is long

# Python's keywords that have a place in expressions; another one is meant as a name
WORDS = frozenset({"False", "None", "True", "and", "else", "for", "if", "in", "is", "not", "or"})


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
        """Return the text as one expression; the tree is shared and must not be changed.

        Raises:
            SourceError: it is none.
        """
        tree = self._parsed("eval")
        assert isinstance(tree, ast.Expression)
        return tree.body

    def statements(self) -> list[ast.stmt]:
        """Return the text as statements; the tree is shared and must not be changed.

        Raises:
            SourceError: it is no Python.
        """
        tree = self._parsed("exec")
        assert isinstance(tree, ast.Module)
        return tree.body

    def names(self) -> frozenset[str]:
        """Return the names that the text reads, those of functions aside; none if it is no Python."""
        return _names(self.text)

    def tensors(self) -> frozenset[str]:
        """Return the names that an expression reads as they are, not only for their sizes."""
        try:
            nodes = list(ast.walk(self.expression()))
        except SourceError:
            return frozenset()
        asked = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
        return frozenset(n.id for n in nodes if isinstance(n, ast.Name) and id(n) not in asked) & self.names()

    def assigned(self) -> frozenset[str]:
        """Return the names that a rewrite gives; none if it is no Python."""
        try:
            nodes = [node for statement in self.statements() for node in ast.walk(statement)]
        except SourceError:
            return frozenset()
        names = [node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        return frozenset(node.id for node in names)

    def _parsed(self, mode: Mode) -> ast.AST:
        try:
            return _tree(self.text, mode)
        except SyntaxError as error:
            raise SourceError(self._syntax(error), self._hint(mode, error.msg)) from None
        except (ValueError, RecursionError, MemoryError):
            raise SourceError(self._place(0), "it is too long or too deeply nested") from None
        except _Refused as refused:
            raise SourceError(self.at(refused.line, refused.column), refused.hint) from None

    def _hint(self, mode: Mode, message: str) -> str:
        if "follows keyword" in message:
            return "values stand before fields, and so does '...'"
        if (
            self.written.flow
            and not self.written.style
            and any(self.text.count(a) != self.text.count(b) for a, b in BRACKETS)
        ):
            return "put it in quotes: YAML takes the comma or bracket for its own"
        for foreign, word in FOREIGN.items():
            if foreign in self.text:
                return f"{foreign} is written {word}"
        words = re.findall(r"\w+", self.text)
        taken = next((word for word in words if iskeyword(word) and word not in WORDS), "")
        if taken:
            return f"{taken} is a word of Python: the field or attribute is written {taken}_"
        several = mode == "eval" and "\n" in self.text.strip()
        return "it must stand on one line, or in brackets" if several else ""

    def _syntax(self, error: SyntaxError) -> Position:
        lines = self.text.split("\n")
        line = min(max(error.lineno or 1, 1), len(lines))
        column = min(max((error.offset or 1) - 1, 0), len(lines[line - 1]))
        return self._place(sum(len(one) + 1 for one in lines[: line - 1]) + column)


class _Refused(Exception):
    """Python, but nothing that a mapping may hold."""

    def __init__(self, node: ast.AST, hint: str) -> None:
        super().__init__(hint)
        self.line = getattr(node, "lineno", 1)
        self.column = getattr(node, "col_offset", 0)
        self.hint = hint


@lru_cache(maxsize=4096)
def _tree(text: str, mode: Mode) -> ast.AST:
    """Return the syntax tree of a text; an expression may be set off by blanks."""
    lead = len(text) - len(text.lstrip()) if mode == "eval" else 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what Python would warn of, as "\\d", is a mistake here
        tree = ast.parse(text[lead:], mode=mode)
    _shift(tree, text, lead)
    _check(tree)
    return tree


@lru_cache(maxsize=4096)
def _names(text: str) -> frozenset[str]:
    for mode in ("eval", "exec"):
        try:
            nodes = list(ast.walk(_tree(text, mode)))
        except (SyntaxError, ValueError, RecursionError, MemoryError, _Refused):
            continue
        called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        names = [node for node in nodes if isinstance(node, ast.Name) and id(node) not in called]
        return frozenset(name.id for name in names if isinstance(name.ctx, ast.Load))
    return frozenset()


def _check(tree: ast.AST) -> None:
    """Refuse what generated code cannot hold; ``lambda_`` stands for the field ``lambda``.

    Levels are gone through one by one, with no call for each, so that any depth can be told.
    """
    level, depth = [tree], 0
    while level:
        if depth > DEEPEST:
            raise _Refused(level[0], "it is too deeply nested: name its parts by let:")
        for node in level:
            if isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value >= LIMIT:
                raise _Refused(node, "the number does not fit 64 bits")
            if type(node) in NAMED:
                _check_name(node, NAMED[type(node)])
        level, depth = [child for node in level for child in ast.iter_child_nodes(node)], depth + 1


def _check_name(node: ast.AST, key: str) -> None:
    text = getattr(node, key)
    if text is None:  # that of ``**fields``
        return
    if not is_name(text):
        hint = f"{text} is no name: letters of ASCII, digits and underscores, not two at the begin"
        raise _Refused(node, hint)
    if text.endswith("_") and iskeyword(text[:-1]):
        setattr(node, key, text[:-1])


def shortened(text: str) -> str:
    """Return a text for a message: on one line, its end left out if it is long."""
    one = " ".join(text.split())
    return one if len(one) <= LONGEST else f"{one[: LONGEST - 3]}..."


def _shift(tree: ast.AST, text: str, lead: int) -> None:
    """Move the nodes of a text that was stripped to where they stand in the whole one."""
    blank = text[:lead]
    lines, columns = blank.count("\n"), len(blank.rpartition("\n")[2])
    for node in ast.walk(tree) if lead else ():
        if isinstance(node, (ast.expr, ast.keyword)):
            node.col_offset += columns if node.lineno == 1 else 0
            node.lineno += lines
