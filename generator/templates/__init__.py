"""Jinja2 templates that lay out generated files. They print checked code only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caffeforge.generator.python_text import only_code

if TYPE_CHECKING:
    import jinja2


IMPORT = re.compile(r"from (?P<module>[\w.]+) import (?P<names>[\w, ]+)")

MODULES = ("caffe_ops", "hub", "layers", "lib", "ops")
FUNCTIONS = ("or_default",)


@cache
def imported_names() -> frozenset[str]:
    """Return the names that any template imports: no variable of a generated function may be called so."""
    texts = (path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.j2"))
    found = (IMPORT.fullmatch(line) for text in texts for line in text.split("\n"))
    names = (name for match in found if match is not None for name in match["names"].split(", "))
    return frozenset(name.split(" as ")[-1] for name in names)


@cache
def _environment() -> jinja2.Environment:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        finalize=only_code,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def render(template: str, context: Mapping[str, Any]) -> str:
    """Return the text of one generated file."""
    text = _environment().get_template(template).render(context)
    return _pruned(re.sub(r"\n{4,}", "\n\n\n", text))


def _pruned(text: str) -> str:
    """Return the text without imports at its top that nothing reads: not each backend needs all of them."""
    kept = []
    lines = text.split("\n")
    for index, line in enumerate(lines):
        match = IMPORT.fullmatch(line)
        if match is None or match["module"] == "__future__":
            kept.append(line)
            continue
        rest = "\n".join(lines[index + 1 :])
        names = match["names"].split(", ")
        used = [name for name in names if _is_read(name.split(" as ")[-1], rest)]
        if used:
            kept.append(f"from {match['module']} import {', '.join(used)}")
    return re.sub(r"(\nfrom [^\n]+\n)\n\n(?=[A-Z])", r"\1\n", "\n".join(kept))


def _is_read(name: str, code: str) -> bool:
    """Tell whether code reads an imported name; a module's is followed by a dot, a function's by its call."""
    behind = r"\." if name in MODULES else r"\(" if name in FUNCTIONS else ""
    return re.search(rf"\b{name}\b{behind}", code) is not None
