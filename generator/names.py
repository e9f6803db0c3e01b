"""Names of generated functions and variables, and of rule positions in generated code."""

from __future__ import annotations

import os
import re
from collections.abc import Container

from caffeforge.generator.diagnostics import Position
from caffeforge.generator.library import BUILTINS
from caffeforge.generator.python_text import Code
from caffeforge.generator.python_text import name as python_name

# What any generated function may read: no variable that stands for a rule's name may be called so.
TAKEN = frozenset(("caffe_ops", "hooks", "hub", "layers", "lib", "op", "ops", "param", "tuple", *BUILTINS))
# What the base classes of generated ones define.
OP_MEMBERS = frozenset(
    ("attributes", "custom", "domain", "fields", "inputs", "object", "op_type", "outputs", "self", "set_")
)
MESSAGE_MEMBERS = frozenset(("FIELDS", "PARAM", "TYPE", "object", "present", "self", "set_"))


def function_name(prefix: str, subject: str, index: int, count: int, taken: Container[str] = ()) -> Code:
    """Return ``emit_max_pool`` for MaxPool, with ``_2`` for the second of several alternatives."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", subject).lower()
    return free_name(f"{prefix}_{words}" + (f"_{index + 1}" if count > 1 else ""), taken)


def free_name(text: str, taken: Container[str] = TAKEN) -> Code:
    """Return a name as an identifier that is not `taken`, with as many underscores as that needs."""
    code = python_name(text)
    while code in taken:
        code = python_name(f"{code}_")
    return code


def place(position: Position) -> str:
    """Return a position as generated code and reports show it, wherever it runs: ``bvlc/mapping.yaml:38``."""
    return f"{'/'.join(os.path.abspath(position.file).split(os.sep)[-2:])}:{position.line}"
