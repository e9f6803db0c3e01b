"""Properties of the checkout itself, which no single part can keep."""

import ast
import os
import re

import pytest

from tests import checkout

FILES = checkout.files()
PYTHON = [name for name in FILES if name.suffix == ".py"]

MACHINE_PATH = re.compile(rb"(?<![\w.])/(?:work|root|tmp)/\w")
REGISTRY = re.compile(rb"\b(?:pypi|pythonhosted|download\.pytorch|npmjs|anaconda|deb\.debian)\.(?:org|com)\b")


@pytest.mark.parametrize("pattern", [MACHINE_PATH, REGISTRY], ids=["machine-path", "registry"])
def test_no_file_names_a_machine(pattern: re.Pattern[bytes]) -> None:
    found = [
        f"{name}:{number}: {line.decode(errors='replace').strip()}"
        for name in FILES
        if (checkout.ROOT / name).is_file()
        for number, line in enumerate((checkout.ROOT / name).read_bytes().splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []


def test_hand_written_files_are_short() -> None:
    written = [name for name in PYTHON if name.parts[0] in ("generator", "runtime", "tests")]
    lengths = {str(name): len((checkout.ROOT / name).read_bytes().splitlines()) for name in written}
    assert {name: length for name, length in lengths.items() if length >= 400} == {}


def test_every_module_says_what_it_holds() -> None:
    modules = [name for name in PYTHON if name.parts[0] in checkout.PACKAGES]
    silent = [
        str(name)
        for name in modules
        if not ast.get_docstring(ast.parse((checkout.ROOT / name).read_bytes(), str(name)))
    ]
    assert silent == []


def test_editable_installs_find_the_four_packages() -> None:
    """An editable install puts tests/_ns on the path: links there must lead to the packages."""
    folder = checkout.ROOT / "tests/_ns/caffeforge"
    links = {name: os.readlink(folder / name) for name in sorted(os.listdir(folder))}
    assert links == {name: f"../../../{name}" for name in sorted(checkout.PACKAGES)}
