"""Python source text: quoting, names, docstrings, and calls laid out one argument a line.

What reaches a template must be ``Code``: a checked name, a printed expression or a quoted literal.
Quoting is by type, so a forgotten filter raises instead of writing a foreign string into a program.
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Sequence
from typing import Any

WIDTH = 110
LONGEST = 200  # characters of a name, which may become that of a file


class Code(str):
    """Text that is Python already."""

    __slots__ = ()


def is_name(text: str) -> bool:
    """Tell whether a foreign name can be an identifier: ASCII, and not beginning with two underscores."""
    return len(text) <= LONGEST and text.isascii() and text.isidentifier() and not text.startswith("__")


def name(text: str) -> Code:
    """Return a foreign name as an identifier; keywords get a trailing underscore.

    Raises:
        ValueError: it is none, see `is_name`.
    """
    if not is_name(text):
        raise ValueError(f"not a name: {text!r}")
    return Code(text + "_" if keyword.iskeyword(text) else text)


def literal(value: object) -> Code:
    """Return a number, string, bytes, None or (nested) tuple of them as a literal."""
    if value is None or isinstance(value, (bool, int, bytes)):
        return Code(repr(value))
    if isinstance(value, float):
        return Code(repr(value) if math.isfinite(value) else f'float("{value}")')
    if isinstance(value, str):
        text = ascii(value)
        if text[0] == "'" and '"' not in text and "\\'" not in text:
            text = f'"{text[1:-1]}"'
        return Code(text)
    if isinstance(value, (tuple, list)):
        items = [literal(item) for item in value]
        return Code(f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})")
    raise TypeError(f"no literal for {type(value).__name__}")


def laid_out(value: object, margin: int) -> Code:
    """Return a literal whose nested tuples are broken one item a line where they do not fit."""
    if isinstance(value, tuple):
        return tuple_of("", [laid_out(item, margin + 4) for item in value], 0, margin)
    return literal(value)


def doc(text: str) -> Code:
    """Return one line that can stand inside a docstring or comment and end neither."""
    text = "".join(c if c.isprintable() else " " for c in text).replace("\\", "\\\\").replace('"""', "'''")
    return Code(text + " " if text.endswith('"') else text)


def call(head: str, args: Sequence[str], indent: int, tail: str = "", margin: int = 0) -> Code:
    """Return ``head(args)tail``: on one line if it fits, else one argument a line.

    Arguments may hold line breaks themselves; they are laid out for column 0 and indented here. `margin`
    is by how much the text may later be moved to the right.
    """
    return _bracketed(f"{head}(", args, f"){tail}", indent, margin)


def tuple_of(head: str, items: Sequence[str], indent: int, margin: int = 0) -> Code:
    """Return ``head(items)`` as a tuple: on one line if it fits, else one item a line."""
    return _bracketed(f"{head}(", items, ",)" if len(items) == 1 else ")", indent, margin)


def list_of(head: str, items: Sequence[str], indent: int) -> Code:
    """Return ``head[items]``: on one line if it fits, else one item a line."""
    return _bracketed(f"{head}[", items, "]", indent)


def dict_of(head: str, items: Sequence[str], indent: int, margin: int = 0) -> Code:
    """Return ``head{items}``: on one line if it fits, else one item a line."""
    return _bracketed(f"{head}{{", items, "}", indent, margin)


def indented(text: str, columns: int) -> Code:
    """Return laid out text moved to the right, its first line too."""
    return Code("\n".join(" " * columns + line if line else line for line in text.split("\n")))


def _bracketed(opening: str, items: Sequence[str], closing: str, indent: int, margin: int = 0) -> Code:
    pad = " " * indent
    one = f"{opening}{', '.join(items)}{closing}"
    if not items or ("\n" not in one and indent + margin + len(one) <= WIDTH):
        return Code(one)
    inner = "".join(f"{pad}    {item.replace(chr(10), chr(10) + pad + '    ')},\n" for item in items)
    return Code(f"{opening}\n{inner}{pad}{closing.lstrip(',')}")


def only_code(value: Any) -> Any:
    """Let a template print code and integers only."""
    if isinstance(value, (Code, int)):
        return value
    raise TypeError(f"unquoted {type(value).__name__} {value!r} reached a template")
