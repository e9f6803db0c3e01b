"""Names and texts of inputs never become code: they are refused, or end as names and quoted literals."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from caffeforge.generator.generate import Package, generate, write
from tests.generator.hostile import PLACES, TEXTS
from tests.generator.inputs import HUB, SMALL, result
from tests.generator.inputs import write as write_inputs
from tests.generator.variants import BVLC

BENIGN = (BVLC, HUB, SMALL, SMALL.parent / "amended", SMALL.parent / "names", SMALL.parent / "hub")
SAMPLE = 300  # pairs of a place and a text that are tried without --every


@dataclass
class Contents:
    """What a program is made of."""

    imports: set[str] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)

    def add(self, package: Package) -> None:
        for text in package.files.values():
            for node in ast.walk(ast.parse(text)):
                self.kinds.add(type(node).__name__)
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    module = "" if isinstance(node, ast.Import) else f"{'.' * node.level}{node.module}"
                    self.imports.update(f"{module}:{alias.name}" for alias in node.names)
                elif isinstance(node, ast.Call):
                    self.calls.add(_called(node.func))

    def beyond(self, allowed: Contents) -> set[str]:
        return (self.imports - allowed.imports) | (self.calls - allowed.calls) | (self.kinds - allowed.kinds)


def _called(function: ast.expr) -> str:
    """Return what is called; of the classes of ops and layers only that it is one of them."""
    name = ast.unparse(function)
    module = name.partition(".")[0]
    return f"{module}.*" if module in ("hub", "layers", "ops", "hooks") else name


@pytest.fixture
def allowed() -> Contents:
    """What packages without such texts are made of."""
    contents = Contents()
    for source in BENIGN:
        contents.add(generate(source))
    return contents


def _pairs(every: bool) -> Iterator[tuple[str, str]]:
    pairs = [(place, text) for place in PLACES for text in TEXTS]
    step = 1 if every else len(pairs) // SAMPLE | 1
    yield from pairs[::step]


def _imported(package: Package, folder: Path, number: int) -> None:
    """Import a package that was written to a folder, under a name of its own."""
    write(package, folder)
    name = f"hostile_{number}"
    home = folder / package.name
    spec = importlib.util.spec_from_file_location(
        name, home / "__init__.py", submodule_search_locations=[str(home)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        for key in [key for key in sys.modules if key == name or key.startswith(f"{name}.")]:
            del sys.modules[key]


def test_no_text_of_an_input_becomes_code(
    every: bool, allowed: Contents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    written = 0
    for number, (place, text) in enumerate(_pairs(every)):
        folder = tmp_path / str(number)
        folder.mkdir()
        package, found = result(write_inputs(folder, PLACES[place](text)))
        assert (package is None) == bool(found), (place, text)
        if package is None:
            assert all(d.position.line and d.position.column for d in found), (place, text)
            continue
        written += 1
        contents = Contents()
        contents.add(package)
        assert contents.beyond(allowed) == set(), (place, text)
        _imported(package, folder / "out", number)
        assert list(Path().iterdir()) == [], (place, text)
    assert written > 20
