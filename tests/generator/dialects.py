"""The vendors' schemas that facts are known of, as backends generated from a proto alone.

Run as a program, this file writes the table of docs/dialects.md, as tests.docs.reference does.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType

from caffeforge.generator.generate import Package, generate, write

DIALECTS = Path(__file__).resolve().parents[3] / "shared" / "dialects"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "dialects.md"
FACTS = sorted((DIALECTS / "facts").glob("*.json"))
NAMES = [facts.stem for facts in FACTS]


@cache
def proto(dialect: str) -> str:
    """Return the schema of a dialect as text."""
    command = [sys.executable, str(DIALECTS / "render_proto.py"), str(DIALECTS / "facts" / f"{dialect}.json")]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def package(dialect: str, folder: Path) -> Package:
    """Return the package of a dialect's proto, alone in a folder below `folder`."""
    source = folder / "vendor" / dialect.replace(".", "_")
    source.mkdir(parents=True)
    (source / "caffe.proto").write_text(proto(dialect), encoding="utf-8")
    return generate(source)


def backend(dialect: str, folder: Path) -> ModuleType:
    """Return the imported package of a dialect's proto, generated below `folder`."""
    made = package(dialect, folder)
    write(made, folder / "out")
    return imported(folder / "out" / made.name)


def imported(folder: Path) -> ModuleType:
    """Return the package in a folder, imported under a name of its own."""
    name = f"drop_in_{folder.name}"
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    for old in [key for key in sys.modules if key == name or key.startswith(f"{name}.")]:
        del sys.modules[old]  # of another test, from another folder of that name
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def row(dialect: str, made: Package) -> str:
    """Return a dialect's row of the table: how much of it works without a mapping."""
    found, types = made.arrival, made.files["layers.py"].partition("LAYER_TYPES")[2].count('": ')
    opened = ", ".join(kind for kind, _ in found.open) or "-"
    lost = len(made.dropped) - len(found.open)
    counts = [
        types - len(found.known),
        len(found.known),
        opened,
        len(found.unknown),
        len(found.assumed),
        lost,
    ]
    return f"| {dialect} | {' | '.join(map(str, counts))} |"


def write_table() -> None:
    """Bring the rows of the page up to date, if the fact tables are there."""
    head = PAGE.read_text(encoding="utf-8").partition("|---|---|---|")[0].rstrip()
    with tempfile.TemporaryDirectory() as folder:
        rows = [row(name, package(name, Path(folder))) for name in NAMES]
    if rows:
        PAGE.write_text("\n".join([head, "|---|---|---|---|---|---|---|", *rows, ""]), encoding="utf-8")


if __name__ == "__main__":
    write_table()
