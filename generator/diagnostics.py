"""Diagnostics: what is wrong in a schema or a mapping, where, and what to do; all of a run at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field

LONGEST = 400  # characters of a sentence


@dataclass(frozen=True, order=True)
class Position:
    """A place in an input file; line and column are 1-based, 0 where the file as a whole is meant."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, order=True)
class Diagnostic:
    """One error, under a stable id."""

    position: Position
    id: str
    sentence: str
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.position}: error[{self.id}]: {self.sentence}"
        return f"{text}; {self.hint}" if self.hint else text


class GenerationError(Exception):
    """The inputs hold errors; `diagnostics` lists all of them, sorted by position."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = sorted(set(diagnostics))
        super().__init__("\n".join(map(str, self.diagnostics)))


def _cut(text: str) -> str:
    """Return a text without its middle if it quotes something very long."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 100]} ... {text[-95:]}"


@dataclass
class Diagnostics:
    """Collects the errors of a run."""

    found: list[Diagnostic] = field(default_factory=list)

    def error(self, id: str, position: Position, sentence: str, hint: str = "") -> None:
        self.found.append(Diagnostic(position, id, _cut(sentence), _cut(hint)))

    def unknown(self, id: str, position: Position, what: str, name: str, known: Iterable[str]) -> None:
        """Report that `name` is no `what`, with the nearest known name or the list of them."""
        known = list(known)
        alike = [word for word in known if word.lower() == name.lower()]
        near = alike or difflib.get_close_matches(name, known, 1)
        if near:
            hint = f"did you mean {near[0]}?"
        else:
            hint = f"known: {', '.join(known)}" if 0 < len(known) <= 12 else ""
        self.error(id, position, f"unknown {what} {name!r}", hint)

    def raise_if_any(self) -> None:
        """Raise GenerationError if an error was reported."""
        if self.found:
            raise GenerationError(self.found)
