"""Names of generated functions and of rule positions in generated code."""

from __future__ import annotations

import os
import re

from caffeforge.generator.diagnostics import Position
from caffeforge.generator.python_text import Code
from caffeforge.generator.python_text import name as python_name


def function_name(prefix: str, subject: str, index: int, count: int) -> Code:
    """Return ``emit_max_pool`` for MaxPool, with ``_2`` for the second of several alternatives."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", subject).lower()
    return python_name(f"{prefix}_{words}" + (f"_{index + 1}" if count > 1 else ""))


def place(position: Position) -> str:
    """Return a position as generated code and reports show it, wherever it runs: ``bvlc/mapping.yaml:38``."""
    return f"{'/'.join(os.path.abspath(position.file).split(os.sep)[-2:])}:{position.line}"
