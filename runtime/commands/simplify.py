"""``caffeforge simplify``: an ONNX model with fewer nodes, compared with the one that was given."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from caffeforge.runtime.commands import describe

if TYPE_CHECKING:
    from caffeforge.runtime.commands import Commands


def register(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = describe(
        commands, shared, "simplify", "write an ONNX model with fewer nodes that computes the same"
    )
    parser.add_argument("source", metavar="IN.onnx", help="the model")
    parser.add_argument("target", metavar="OUT.onnx", help="the file to write")
    parser.add_argument("--opset", type=int, metavar="N", help="of the new file; default: that of the model")
    part = "a vendor's part of an opset that the new file shall fit, or that declares ops of the model's"
    parser.add_argument("--backend", metavar="NAME|DIR", help=part)
    parser.add_argument("--no-verify", action="store_true", help="do not run and compare the two")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Simplify and print what was done."""
    from caffeforge.runtime.onnx_simplify import simplify

    done = simplify(
        options.source,
        options.target,
        options.opset,
        backend=options.backend,
        verify=not options.no_verify,
    )
    print(f"wrote {options.target}: {done.after} nodes of {done.before}")
    for name, count in done.applied.items():
        if count:
            print(f"{name}: {count}")
    print(
        "not verified"
        if done.error is None
        else f"verified: the outputs agree within {done.error:.1e} of their scale"
    )
