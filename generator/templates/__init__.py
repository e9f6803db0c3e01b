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
    return re.sub(r"\n{4,}", "\n\n\n", text)
