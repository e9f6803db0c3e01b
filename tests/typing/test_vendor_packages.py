"""What is generated from vendors' schemas passes mypy --strict: awkward names, and fact tables.

``python -m tests.typing.test_vendor_packages`` takes all fact tables.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from caffeforge.generator.generate import write
from tests.checkout import ROOT
from tests.generator import awkward, dialects

SAMPLE = ("nart_caffe", "synopsys")  # the schemas with most that is odd


def errors(folder: Path, names: tuple[str, ...]) -> str:
    """Return what mypy finds in packages of fact tables and of the awkward schemas; empty for nothing."""
    packages = [dialects.package(name, folder) for name in names]
    packages += [awkward.made(package, folder) for package in awkward.PACKAGES]
    for package in packages:
        write(package, folder / "out")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml")]
    done = subprocess.run(
        [*command, "--cache-dir", str(folder / "cache"), *(package.name for package in packages)],
        capture_output=True,
        text=True,
        cwd=folder / "out",
        check=False,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_packages_of_vendors_schemas_pass_type_checking(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    assert errors(tmp_path, SAMPLE if dialects.NAMES else ()) == ""


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        found = errors(Path(scratch), tuple(dialects.NAMES))
    print(found or f"{len(dialects.NAMES) + len(awkward.PACKAGES)} packages pass mypy --strict")
    sys.exit(bool(found))
