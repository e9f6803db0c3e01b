"""``caffeforge explain``: the rules of one op or layer type."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from caffeforge.runtime.commands import BACKEND_HELP, describe

if TYPE_CHECKING:
    from caffeforge.runtime.commands import Commands


def register(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = describe(commands, shared, "explain", "show the rules of an op or a layer type")
    parser.add_argument("backend", metavar="BACKEND", help=BACKEND_HELP)
    parser.add_argument("name", metavar="OP|LAYER", help="as Conv or Convolution")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print all rules under this name."""
    from caffeforge.runtime.backends import find_any
    from caffeforge.runtime.onnx_out.backend import OnnxBackend

    backend = find_any(options.backend)
    if isinstance(backend, OnnxBackend):
        from caffeforge.runtime.onnx_out.explanation import explain_onnx

        print(explain_onnx(backend, options.name))
    else:
        from caffeforge.runtime.explanation import explain

        print(explain(backend, options.name))
