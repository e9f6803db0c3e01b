"""Hooks: functions in Python that a mapping names, in a file per backend, inherited with the rule."""

from __future__ import annotations

from pathlib import Path

from caffeforge.generator.expression import Printer
from caffeforge.generator.library import HOOKS as FOLDER
from caffeforge.generator.library import functions
from caffeforge.generator.names import HOOKS
from caffeforge.generator.python_text import is_name
from caffeforge.generator.python_text import name as python_name
from caffeforge.generator.yaml_source import Scalar


class Hooks:
    """Finds the functions that ``hook:`` names; remembers which files they are in."""

    def __init__(self) -> None:
        self.modules: dict[str, str] = {}  # file -> the name under which generated code imports it

    def code(self, name: Scalar, printer: Printer) -> str:
        """Return the Python of a hook: a function in the file of the backend whose mapping names it."""
        backend = Path(name.position.file).resolve().parent.name
        try:
            known = functions(FOLDER / f"{backend}.py") if is_name(backend) else {}
        except SyntaxError as error:
            sentence = f"runtime/hooks/{backend}.py is no Python: line {error.lineno}: {error.msg}"
            printer.diagnostics.error("unknown-hook", name.position, sentence)
            return "None"
        if name.text not in known:
            printer.diagnostics.unknown("unknown-hook", name.position, "hook", name.text, known)
            return "None"
        self.modules[backend] = f"{python_name(backend)}{HOOKS}"
        return f"{self.modules[backend]}.{name.text}"

    def imports(self) -> list[str]:
        """Return the import lines of the files that are used."""
        return [
            f"from caffeforge.runtime.hooks import {b} as {alias}"
            for b, alias in sorted(self.modules.items())
        ]
