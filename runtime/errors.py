"""The errors a user can meet: each says what is wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class CaffeforgeError(Exception):
    """An input is at fault.

    Args:
        what: one sentence that names the fault.
        where: file:line:col, module path, layer or node name; empty when the sentence names it.
        hint: what the user can do; empty when the sentence says it.
    """

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}\n  hint: {self.hint}" if self.hint else text


class UsageError(CaffeforgeError):
    """A function or command was called with arguments that do not fit together."""


class FileError(CaffeforgeError):
    """A file cannot be read as what it should be, or cannot be written."""


def joined(problems: Sequence[FileError], where: str) -> FileError:
    """Return one error that lists the first 20 of all `problems` of the file `where`, and counts the rest."""
    if len(problems) == 1:
        return problems[0]
    shown = problems[:20]
    lines = [f"{len(problems)} faults", *(f"  {problem.where}: {problem.what}" for problem in shown)]
    if len(problems) > len(shown):
        lines.append(f"  and {len(problems) - len(shown)} more")
    return FileError("\n".join(lines), where=where, hint=problems[0].hint)


class ReadError(CaffeforgeError):
    """A net holds a layer whose meaning is unknown, or outside what its rule can say."""


class GraphError(CaffeforgeError):
    """A graph breaks an invariant, or its text cannot be parsed."""


class FrontEndError(CaffeforgeError):
    """A source model holds something that has no place in the hub."""


class LegalizeError(CaffeforgeError):
    """The target cannot express the graph; the text lists every node that it refuses.

    Attributes:
        document: the same as JSON holds it.
    """

    def __init__(
        self, what: str, *, where: str = "", hint: str = "", document: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(what, where=where, hint=hint)
        self.document = document or {}


class VerificationError(CaffeforgeError):
    """The written files do not compute what the source computes."""


class TrainingModeWarning(UserWarning):
    """A model in training mode is traced in evaluation mode."""
