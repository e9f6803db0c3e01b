"""Files that appear all or not at all: written to a hidden folder beside their targets, then moved."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from caffeforge.runtime.errors import FileError


@contextmanager
def folder(path: Path) -> Iterator[None]:
    """Make a folder and those above it; if the body fails, remove again those that were made."""
    made = [above for above in (path, *path.parents) if not above.exists()]
    try:
        with disk_errors(path):
            path.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for above in made:
            with suppress(OSError):
                above.rmdir()
        raise


@contextmanager
def staging(parent: Path) -> Iterator[Path]:
    """Give a hidden folder in `parent`, on whose disk files can be moved to their places."""
    with disk_errors(parent):
        made = Path(tempfile.mkdtemp(prefix=".caffeforge-", dir=parent))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Say what the disk refuses as a FileError that names `path`."""
    try:
        yield
    except OSError as error:
        raise FileError(f"cannot write: {error.strerror or error}", where=str(path)) from error


def move(staged: Sequence[Path], targets: Sequence[Path]) -> None:
    """Move all files to their places; if one cannot be moved, put all old ones back."""
    backups = [file.with_name(file.name + ".old") for file in staged]
    try:
        for file, target, backup in zip(staged, targets, backups, strict=True):
            if target.exists():
                os.replace(target, backup)
            os.replace(file, target)
    except BaseException:
        for file, target, backup in zip(staged, targets, backups, strict=True):
            if backup.exists():
                os.replace(backup, target)
            elif not file.exists():
                target.unlink(missing_ok=True)
        raise
