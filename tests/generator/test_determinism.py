"""A package is the same bytes in each process, folder and place."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from caffeforge.generator.generate import Package, generate
from tests.generator.inputs import HUB, SMALL

CASES = SMALL.parent
SCHEMAS = [HUB.parent / "bvlc", HUB, CASES / "amended", CASES / "names", CASES / "hub"]
PROGRAM = """
import hashlib, sys
from pathlib import Path
from caffeforge.generator.generate import generate
for source in sys.argv[1:]:
    package = generate(Path(source))
    text = "".join(f"{name}\\0{text}\\0" for name, text in package.files.items())
    print(package.name, hashlib.sha256(text.encode()).hexdigest())
"""


def _digest(package: Package) -> str:
    text = "".join(f"{name}\0{text}\0" for name, text in package.files.items())
    return f"{package.name} {hashlib.sha256(text.encode()).hexdigest()}"


def _in_process(seed: str, folder: Path) -> list[str]:
    """Return the digests that another process prints, in another folder and with another hash seed."""
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PROGRAM, *map(str, SCHEMAS)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_hash_seeds_and_processes_make_no_difference(tmp_path: Path) -> None:
    expected = [_digest(generate(source)) for source in SCHEMAS]
    assert _in_process("1", tmp_path) == _in_process("2", tmp_path / "..") == expected


@pytest.mark.parametrize("name", ["amended", "names"])
def test_the_place_of_a_folder_makes_no_difference(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = generate(CASES / name)
    for case in ("small", name):
        shutil.copytree(CASES / case, tmp_path / "deep" / "schemas" / case)
    copy = tmp_path / "deep" / "schemas" / name
    assert generate(copy) == expected
    monkeypatch.chdir(copy)
    assert generate(Path()) == generate(Path("mapping.yaml")) == generate(Path("../") / name) == expected
    monkeypatch.chdir(tmp_path)
    assert generate(Path("deep/schemas") / name) == expected
    (tmp_path / "linked").symlink_to(copy.parent)
    assert generate(tmp_path / "linked" / name) == expected


def test_no_package_names_a_folder_of_this_machine(tmp_path: Path) -> None:
    shutil.copytree(SMALL, tmp_path / "small")
    shutil.copytree(CASES / "amended", tmp_path / "amended")
    texts = generate(tmp_path / "amended").files
    assert [name for name, text in texts.items() if str(tmp_path) in text] == []
