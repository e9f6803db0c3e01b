"""The commands of ``caffeforge``, one a module: `register` declares its arguments, `run` does it.

Modules here import what is heavy inside functions: ``caffeforge --help`` must not wait for torch.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

BACKEND_HELP = "name of a backend, or the folder that gen-backend wrote"


def describe(
    commands: Commands, shared: argparse.ArgumentParser, name: str, what: str
) -> argparse.ArgumentParser:
    """Return the parser of a new command; `what` is its one line of help."""
    return commands.add_parser(
        name, parents=[shared], help=what, description=f"{what[:1].upper()}{what[1:]}."
    )


def add_backend(parser: argparse.ArgumentParser) -> None:
    """Declare ``--backend``: it has no default, as the wrong dialect would read other numbers in silence."""
    parser.add_argument("--backend", required=True, metavar="NAME|DIR", help=BACKEND_HELP)


def add_net(parser: argparse.ArgumentParser) -> None:
    """Declare the files of a net."""
    parser.add_argument("prototxt", metavar="NET.prototxt", help="the net's layers")
    parser.add_argument("caffemodel", metavar="NET.caffemodel", nargs="?", help="its weights")
    add_backend(parser)
