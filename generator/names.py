"""Names of generated functions and variables, and of rule positions in generated code."""

from __future__ import annotations

import os
import re
from collections.abc import Container

from caffeforge.generator.diagnostics import Position
from caffeforge.generator.library import BUILTINS
from caffeforge.generator.python_text import Code
from caffeforge.generator.python_text import name as python_name
from caffeforge.generator.templates import imported_names

# What any generated function may read: no variable that stands for a rule's name may be called so.
TAKEN = frozenset(("bool", "bytes", "object", "op", "param", "str", "tuple", *BUILTINS)) | imported_names()
# What layers.py imports and defines besides its classes.
OF_LAYERS = frozenset(
    (
        *("Field", "Final", "LAYER_TYPES", "LayerParam", "Literal", "MESSAGES", "Mapping", "Message"),
        *("annotations", "bool", "bytes", "float", "int", "object", "str", "tuple"),
    )
)
HOOKS = "_hooks"  # ends the names by which generated code imports files with hooks
# Words of expressions that stand for a value, whatever the rule.
CONSTANTS = {
    "true": "True",
    "false": "False",
    "none": "None",
    "True": "True",
    "False": "False",
    "None": "None",
    "inf": 'float("inf")',
    "nan": 'float("nan")',
}
# What the base classes of generated ones define.
OP_MEMBERS = frozenset(
    ("attributes", "custom", "domain", "fields", "inputs", "object", "op_type", "outputs", "self", "set_")
)
# What the classes of messages have or read besides their fields; the runtime has the same list.
MESSAGE_MEMBERS = frozenset(
    ("FIELDS", "Field", "PARAM", "TYPE", "bool", "bytes", "float", "int", "object", "present", "self", "set_")
) | frozenset(("str", "tuple"))


def function_name(prefix: str, subject: str, index: int, count: int, taken: Container[str] = ()) -> Code:
    """Return ``emit_max_pool`` for MaxPool, with ``_2`` for the second of several alternatives."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", subject).lower()
    return free_name(f"{prefix}_{words}" + (f"_{index + 1}" if count > 1 else ""), taken)


def free_name(text: str, taken: Container[str] = TAKEN) -> Code:
    """Return a name as an identifier that is neither `taken` nor that of a file with hooks.

    It gets as many underscores as that needs.
    """
    code = python_name(text)
    while code in taken or code.endswith(HOOKS):
        code = python_name(f"{code}_")
    return code


def field_name(text: str) -> Code:
    """Return a proto field's name as an attribute of its message's class."""
    return Code(f"{text}_") if text in MESSAGE_MEMBERS else python_name(text)


def place(position: Position) -> str:
    """Return a position as generated code and reports show it, wherever it runs: ``bvlc/mapping.yaml:38``."""
    return f"{'/'.join(os.path.abspath(position.file).split(os.sep)[-2:])}:{position.line}"
