"""Free memory made ready for a large file, so that the one who writes first does not pay for it."""

from __future__ import annotations

import shutil
from pathlib import Path


def warm(file: Path) -> None:
    """Read `file` and write as much as it holds to a file beside it, which is removed.

    On a virtual machine the first large write after a pause takes up to a second longer, whoever does it.
    """
    scratch = file.with_name(file.name + ".warm")
    shutil.copyfile(file, scratch)
    scratch.unlink()
