"""A backend of 40 rules, written from docs/rules.md: it generates, type-checks, exports and reads back."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from caffeforge.generator.generate import generate, write
from caffeforge.runtime import backends, coverage
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.errors import LegalizeError
from caffeforge.runtime.export import export
from caffeforge.runtime.graph import Graph
from caffeforge.runtime.loaded import load
from tests import checkout
from tests.docs.backends import computed, written

SCHEMA = Path(__file__).with_name("example_backend")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the generated package."""
    out = tmp_path_factory.mktemp("generated")
    write(generate(SCHEMA), out)
    return out / "kiln"


@pytest.fixture(scope="module")
def kiln(package: Path) -> Backend:
    return backends.find(package)


def examples(backend: Backend) -> list[tuple[str, str, str]]:
    package = sys.modules[backend.descriptor.__module__].__package__
    found: list[tuple[str, str, str]] = import_module(".examples", package).EXAMPLES
    return list(found)


class Block(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        for tensor in (self.norm.running_mean, self.norm.running_var):
            assert tensor is not None
            nn.init.uniform_(tensor, 0.5, 2.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = x + nn.functional.silu(self.norm(self.conv(x)))
        return result


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU6(), Block(8))
        self.head = nn.Linear(8 * 4 * 5, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        features = nn.functional.max_pool2d(self.stem(x), 2)
        gate = nn.functional.hardsigmoid(features)
        result: torch.Tensor = self.head(torch.flatten(features * gate, 1))
        return result


def test_has_the_rules_that_it_says(kiln: Backend) -> None:
    found = coverage.of(kiln)
    rules = (found.ops, found.layers, found.patterns, found.constraints)
    assert sum(map(len, rules)) >= 40
    assert found.unread == () and found.dropped == ()


def test_every_example_is_written_and_reads_back(kiln: Backend, tmp_path: Path) -> None:
    found = examples(kiln)
    assert len(found) >= 15
    for index, (subject, _, text) in enumerate(found):
        if subject in coverage.of(kiln).ops:
            assert written(kiln, Graph.parse(text, computed(text)), tmp_path / str(index))


def test_exports_a_network(kiln: Backend, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, x = Net().eval(), torch.randn(2, 3, 16, 20)
    result = export(kiln, model, (x,), tmp_path / "net")
    assert result.verification is not None and result.verification.conclusive
    types = [layer.type for layer in load(result.prototxt, result.caffemodel, kiln).net.layers]
    assert types == [
        "Data",
        "Conv",
        "Act",
        "Conv",
        "Norm",
        "Act",
        "Join",
        "Window",
        "Math",
        "Act",
        "Join",
        "Flat",
        "Dense",
    ]
    found = load(result.prototxt, result.caffemodel, kiln).run({"x": x.numpy()})
    with torch.no_grad():
        np.testing.assert_allclose(next(iter(found.values())), model(x).numpy(), rtol=1e-4, atol=1e-5)


def test_a_pattern_makes_one_layer_of_four_ops(kiln: Backend, tmp_path: Path) -> None:
    class Gelu(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * (torch.erf(x * 0.5**0.5) + 1) * 0.5

    result = export(kiln, Gelu(), (torch.randn(2, 3),), tmp_path / "gelu")
    assert any("gelu" in note for note in result.notes)
    assert [layer.type for layer in load(result.prototxt, None, kiln).net.layers] == ["Data", "Act"]


def test_says_what_the_chip_refuses(kiln: Backend, tmp_path: Path) -> None:
    with pytest.raises(LegalizeError) as caught:
        export(kiln, nn.Conv2d(3, 4, 9), (torch.randn(1, 3, 16, 16),), tmp_path / "large")
    assert "kernels up to 7 (source: kiln handbook, table 4)" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_generated_code_has_no_type_errors(package: Path) -> None:
    """The cache in the checkout is that of ``make check``: what the package imports is known already."""
    pytest.importorskip("mypy")
    config, cache = checkout.ROOT / "pyproject.toml", checkout.ROOT / ".mypy_cache"
    done = subprocess.run(
        [sys.executable, "-m", "mypy", f"--config-file={config}", f"--cache-dir={cache}", "kiln"],
        cwd=package.parent,
        env={**os.environ, "MYPYPATH": str(package.parent)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
