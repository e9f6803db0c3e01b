"""``caffeforge backends``: the backends that are installed."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from caffeforge.runtime.commands import describe

if TYPE_CHECKING:
    from caffeforge.runtime.commands import Commands


def register(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = describe(commands, shared, "backends", "list the installed backends")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print a line for each backend: its layer types and ops, or its opset."""
    from caffeforge.runtime import coverage
    from caffeforge.runtime.backends import find, find_any, names, onnx_names
    from caffeforge.runtime.onnx_out.backend import OnnxBackend

    for name in names():
        backend = find(name)
        covered = coverage.of(backend)
        types = len(backend.layer_types)
        print(
            f"{name}: {types} layer types, {len(covered.layers)} of them read; {len(covered.ops)} ops written"
        )
    for name in onnx_names():
        other = find_any(name)
        assert isinstance(other, OnnxBackend)
        print(f"{name}: ONNX, opset {other.opset}; {len(other.rules)} ops written by name or rule")
