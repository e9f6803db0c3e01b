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
    """Print a line for each backend: its layer types, how many of them can be read, the ops it covers."""
    from caffeforge.runtime import coverage
    from caffeforge.runtime.backends import find, names

    for name in names():
        backend = find(name)
        covered = coverage.of(backend)
        types = len(backend.layer_types)
        print(
            f"{name}: {types} layer types, {len(covered.layers)} of them read; {len(covered.ops)} ops written"
        )
