"""``caffeforge explain-error``: what one of gen-backend's messages means and how to put it right."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from caffeforge.runtime.commands import describe

if TYPE_CHECKING:
    from caffeforge.runtime.commands import Commands


def register(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = describe(commands, shared, "explain-error", "say what a message of gen-backend means")
    parser.add_argument("id", metavar="ID", help="what stands in error[...]")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print the explanation."""
    from caffeforge.generator.error_catalog import explain

    print(explain(options.id))
