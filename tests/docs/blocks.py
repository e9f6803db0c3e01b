"""Fenced code blocks of Markdown files."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """One block, without the indentation of a list that it stands in; `line` is that of its first line."""

    file: str
    line: int
    language: str
    text: str

    @property
    def name(self) -> str:
        """What a test of this block is called."""
        return f"{self.file}:{self.line}"


def blocks(path: Path, *languages: str) -> list[Block]:
    """Return the blocks of a file in these languages, in order."""
    text = path.read_text(encoding="utf-8")
    return [
        Block(
            path.name,
            text.count("\n", 0, match.start()) + 2,
            match["language"],
            textwrap.dedent(match["text"]),
        )
        for match in FENCE.finditer(text)
        if match["language"] in languages
    ]
