"""The checkout as tests see it: where it is and which files belong to it."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

PACKAGES = ("generator", "runtime", "generated", "schemas")
"""The folders that are installed, as ``caffeforge.<name>``."""


def files() -> list[Path]:
    """Return the files of the checkout, relative to its root: all but those that git ignores."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):  # no git, or an unpacked archive
        return sorted(_walk())
    names = (Path(os.fsdecode(name)) for name in listed.split(b"\0") if name)
    return sorted({name for name in names if os.path.lexists(ROOT / name)})


def _walk() -> list[Path]:
    found = []
    for folder, subfolders, names in os.walk(ROOT):
        here = Path(folder)
        links = [name for name in subfolders if (here / name).is_symlink()]
        subfolders[:] = [
            name for name in subfolders if name not in (*links, "__pycache__") and name[0] != "."
        ]
        found += [(here / name).relative_to(ROOT) for name in names + links]
    return found
