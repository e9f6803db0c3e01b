"""``caffeforge dump``: what a net or model computes, in the notation in which rewrites are written."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from caffeforge.runtime.commands import add_net, add_state, describe, is_onnx

if TYPE_CHECKING:
    from caffeforge.runtime.commands import Commands


def register(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = describe(
        commands, shared, "dump", "print a net or an ONNX model as the graph of hub ops that it computes"
    )
    add_net(parser)
    add_state(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print the graph."""
    if is_onnx(options):
        from caffeforge.runtime.onnx_front.loaded import load

        print(load(options.prototxt, dequantize=options.dequantize).graph.dump(), end="")
        return
    from caffeforge.runtime.backends import find
    from caffeforge.runtime.caffe_files import read_files
    from caffeforge.runtime.hub_from_net import hub_from_net

    backend = find(options.backend)
    weights = Path(options.caffemodel) if options.caffemodel else None
    net = read_files(Path(options.prototxt), weights, backend, level=options.level, stages=options.stages)
    print(hub_from_net(net, backend).graph.dump(), end="")
