"""How a YAML scalar is written in its file, so that each character of its value has a line and a column.

Quotes, escapes, folded lines and the indentation of blocks stand between a scalar's value and the file; an
error inside an expression is shown where a reader finds it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from caffeforge.generator.diagnostics import Position

BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
ESCAPE = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[^\n\r])")

SCALARS = 4096  # of which the places are remembered
JOINED = re.compile(r"(?:\\(?:\r\n|[\n\r])[ \t]*)+")


@dataclass(frozen=True)
class Written:
    """A scalar from its first mark to its end: ``raw`` with quotes and indentation, and YAML's `style` of it.

    `style` is ``'``, ``"``, ``|``, ``>`` or empty for a plain one; `flow` tells whether it stands within
    brackets or braces of YAML, where a comma ends a plain one.
    """

    raw: str = ""
    style: str = ""
    flow: bool = False

    def place(self, value: str, index: int, start: Position) -> Position:
        """Return the place of ``value[index]``; `start` is the scalar's own. One past the end is allowed."""
        at = self._raw_index(value, index)
        breaks = list(BREAK.finditer(self.raw, 0, at))
        if not breaks:
            return Position(start.file, start.line, start.column + at)
        return Position(start.file, start.line + len(breaks), at - breaks[-1].end() + 1)

    def _raw_index(self, value: str, index: int) -> int:
        """Return the index in `raw`: what is no blank stands in both, in the same order."""
        at = _indices(self, value)[index]
        return self._skipped(at) if index < len(value) and not value[index].isspace() else at

    def _first(self) -> int:
        """Return where the value begins: after the quote, or on the line after a block's mark."""
        if self.style in ("|", ">"):
            header = BREAK.search(self.raw)
            return header.end() if header else len(self.raw)
        return 1 if self.style else 0

    def _after(self, at: int, character: str) -> int:
        """Return the index after the `character` of the value that stands at `at`, or after blanks there."""
        at = self._joined(at)
        escape = self._escape(at)
        if character.isspace() and escape is None:
            return at + 1 if self.raw[at : at + 1] == character else at
        at = at if escape is not None else self._skipped(at)
        escape = self._escape(at)
        if escape is not None:
            return escape.end()
        return at + (2 if self.style == "'" and character == "'" else 1)

    def _joined(self, at: int) -> int:
        """Return the index behind a line's escaped end, and behind the blanks that begin the next line."""
        joined = JOINED.match(self.raw, at) if self.style == '"' else None
        return joined.end() if joined else at

    def _escape(self, at: int) -> re.Match[str] | None:
        """Return the escape that stands for a character at `at`, if there is one."""
        return ESCAPE.match(self.raw, at) if self.style == '"' else None

    def _skipped(self, at: int) -> int:
        """Return the index of the next character that is no blank, nor a line's escaped end."""
        while at < len(self.raw):
            behind = at + 1 if self.raw[at].isspace() else self._joined(at)
            if behind == at:
                break
            at = behind
        return at


@lru_cache(maxsize=SCALARS)
def _indices(written: Written, value: str) -> list[int]:
    """Return where in ``raw`` each character of a value ends, with the value's begin before them."""
    found = [written._first()]
    for character in value:
        found.append(written._after(found[-1], character))
    return found
