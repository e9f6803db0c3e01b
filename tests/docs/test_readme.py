"""README.md and the other pages: every command and program is run, and prints what the page says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import caffeforge
from tests import checkout
from tests.docs.blocks import Block, blocks

README = checkout.ROOT / "README.md"
FILE = re.compile(r"(?:#|//) (?P<name>[\w./-]+\.(?:py|yaml|proto))\n")
COMMANDS = {"caffeforge": "caffeforge.runtime.cli", "gen-backend": "caffeforge.generator.cli"}


@dataclass
class Session:
    """A folder that stands for the checkout, in which a reader types what a page says."""

    folder: Path
    path: str
    printed: str = ""
    errors: list[str] = field(default_factory=list)

    def take(self, block: Block) -> None:
        """Do what a reader does with a block: save it, type it, or compare it with the screen."""
        file = FILE.match(block.text)
        if block.language == "sh":
            self.printed = self._typed(block)
        elif block.language == "text":
            if not matches(block.text, self.printed):
                self.errors.append(f"{block.name} says\n{block.text}\nbut this was printed\n{self.printed}")
        elif file is not None:
            path = self.folder / file["name"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        else:
            self.errors.append(f"{block.name} has no name of a file in its first line")

    def _typed(self, block: Block) -> str:
        done = subprocess.run(
            ["bash", "-e", "-c", block.text],
            cwd=self.folder,
            env={**os.environ, "PATH": self.path, "COLUMNS": "100"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            self.errors.append(f"{block.name} fails with {done.returncode}:\n{done.stdout}")
        return done.stdout


def matches(said: str, printed: str) -> bool:
    """Tell whether `printed` is what a page says.

    ``...`` stands for anything on a line, or for any lines if it is all of a line; blanks count once.
    """
    lines = [
        r"(?:[^\n]*\n)*?"
        if line.strip() == "..."
        else r"[^\n]*".join(map(re.escape, line.split("..."))) + "\n"
        for line in _plain(said).splitlines()
    ]
    return re.fullmatch("".join(lines), _plain(printed)) is not None


def _plain(text: str) -> str:
    lines = (re.sub(r"(?<=\S) +", " ", line).rstrip() for line in text.rstrip().splitlines())
    return "".join(f"{line}\n" for line in lines)


@pytest.fixture
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """A copy of what the pages use of the checkout, with the two commands in the path."""
    folder = tmp_path_factory.mktemp("checkout")
    shutil.copytree(checkout.ROOT / "schemas" / "bvlc", folder / "schemas" / "bvlc")
    bin = tmp_path_factory.mktemp("bin")
    (found,) = {str(Path(path).parent) for path in caffeforge.__path__}
    for command, module in {**COMMANDS, "python": ""}.items():
        script = bin / command
        arguments = f'-m {module} "$@"' if module else '"$@"'
        path = f'PYTHONPATH="{found}:$PWD"'
        script.write_text(f'#!/bin/sh\n{path} exec "{sys.executable}" {arguments}\n', encoding="utf-8")
        script.chmod(0o755)
    return Session(folder, f"{bin}:{os.environ['PATH']}")


def run_blocks(path: Path) -> list[Block]:
    """Return the blocks that are run: all but those behind a comment that says why not."""
    text = path.read_text(encoding="utf-8").splitlines()
    found = blocks(path, "sh", "python", "yaml", "text")
    return [block for block in found if not text[block.line - 3].lstrip().startswith("<!-- not run")]


@pytest.mark.parametrize("page", ["README.md", "docs/onnx-out.md", "docs/pytorch.md", "docs/new-chip.md"])
def test_pages_do_what_they_say(session: Session, page: str) -> None:
    found = run_blocks(checkout.ROOT / page)
    assert {"sh", "python", "text"} <= {block.language for block in found}
    for block in found:
        session.take(block)
        assert not session.errors, session.errors[0]


def test_set_up_is_that_of_the_makefile() -> None:
    """The commands that are not run here are those that ``make`` runs."""
    skipped = [b for b in blocks(README, "sh") if b not in run_blocks(README)]
    installs = [
        sorted(re.sub(r"--quiet|python -m|\$\(\w+\)/", "", command).split())
        for text in (skipped[0].text, (checkout.ROOT / "Makefile").read_text(encoding="utf-8"))
        for command in re.findall(r"python -m pip install[^\n]*", text)
    ]
    assert len(skipped) == 1
    assert installs[:2] == installs[2:]


def test_the_tree_names_what_is_there() -> None:
    (tree,) = re.findall(r"^```\n(schemas/ .*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)
    folder = Path()
    for line in tree.splitlines():
        name = line.split()[0]
        path = folder / name if line.startswith("  ") else Path(name)
        assert (checkout.ROOT / path).exists(), name
        folder = folder if line.startswith("  ") else path


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/architecture.md",
        "docs/custom-ops.md",
        "docs/dialects.md",
        "docs/folds.md",
        "docs/new-chip.md",
        "docs/onnx-out.md",
        "docs/onnx.md",
        "docs/pytorch.md",
        "docs/rules.md",
        "docs/ops.md",
    ],
)
def test_links_and_paths_lead_somewhere(page: str) -> None:
    path = checkout.ROOT / page
    text = path.read_text(encoding="utf-8")
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    assert [link for link in links if link and not (path.parent / link).exists()] == []
    named = set(re.findall(r"`((?:schemas|generator|generated|runtime|tests|docs)/[\w./-]+)`", text))
    known = [name for name in named if not re.search(r"/(vendorx|lynx|loom)\b", name)]  # made by a reader
    assert [name for name in known if not (checkout.ROOT / name).exists()] == []


def test_architecture_names_files_that_exist() -> None:
    text = (checkout.ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    files = re.findall(r"`(\w+\.py)`", text)
    places = [checkout.ROOT / "runtime", checkout.ROOT / "generated" / "bvlc"]
    assert files
    assert [name for name in files if not any((place / name).exists() for place in places)] == []
