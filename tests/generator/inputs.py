"""Folders of inputs for the generator, written into a test's own folder."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from caffeforge.generator.diagnostics import Diagnostic, GenerationError
from caffeforge.generator.generate import Package, generate

SMALL = Path(__file__).parent / "cases" / "small"
HUB = Path(__file__).resolve().parents[2] / "schemas" / "hub"
BACKEND = "backend: vendorx\nextends: small\n"


def write(folder: Path, files: Mapping[str, str | bytes], *, base: bool = True) -> Path:
    """Write files into ``vendorx`` in `folder`, with the base ``small`` beside it, and return that."""
    if base and not (folder / "small").exists():
        (folder / "small").mkdir()
        for name in ("caffe.proto", "mapping.yaml"):
            shutil.copyfile(SMALL / name, folder / "small" / name)
    target = folder / "vendorx"
    target.mkdir(exist_ok=True)
    for name, content in files.items():
        data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape")
        (target / name).write_bytes(data)
    return target


def mapping(folder: Path, lines: str) -> Path:
    """Write a mapping that extends ``small`` by some lines."""
    return write(folder, {"mapping.yaml": BACKEND + lines})


def result(source: Path, includes: Sequence[Path] = ()) -> tuple[Package | None, list[Diagnostic]]:
    """Return the package for a schema, or what is wrong with it."""
    try:
        return generate(source, includes), []
    except GenerationError as error:
        return None, error.diagnostics


def ids(source: Path) -> list[str]:
    """Return the ids of the errors of a schema."""
    return [diagnostic.id for diagnostic in result(source)[1]]
