"""``caffeforge transcode``: a net of one dialect as a net of another."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from caffeforge.runtime.commands import BACKEND_HELP, add_state, describe

if TYPE_CHECKING:
    from caffeforge.runtime.commands import Commands


def register(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = describe(commands, shared, "transcode", "write a net in another dialect, or as ONNX")
    parser.add_argument("prototxt", metavar="NET.prototxt", help="the net")
    parser.add_argument("caffemodel", metavar="NET.caffemodel", nargs="?", help="its weights")
    source = f"dialect it is written in: {BACKEND_HELP}"
    parser.add_argument("--from", dest="source", required=True, metavar="NAME|DIR", help=source)
    parser.add_argument("--to", dest="target", required=True, metavar="NAME|DIR", help="dialect or opset")
    parser.add_argument("--out", required=True, metavar="STEM", help="files to write, without suffix")
    parser.add_argument("--no-verify", dest="verify", action="store_false", help="do not compare both nets")
    own = "ONNX: ops of domains of their own as nodes, with local functions or alone, or said by others"
    parser.add_argument("--own-ops", choices=("auto", "function", "node", "lower"), help=own)
    add_state(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Write the files and print the report."""
    from caffeforge.runtime.backends import find_any
    from caffeforge.runtime.errors import UsageError
    from caffeforge.runtime.onnx_out.backend import OnnxBackend
    from caffeforge.runtime.transcode import transcode

    target = find_any(options.target)
    if isinstance(target, OnnxBackend):
        from caffeforge.runtime.onnx_out.from_net import export_net

        made = export_net(
            options.prototxt,
            options.caffemodel,
            options.out,
            source=options.source,
            target=target,
            verify=options.verify,
            own_ops=options.own_ops or "auto",
            level=options.level,
            stages=options.stages,
        )
        print(made.report())
        return
    if options.own_ops:
        raise UsageError(f"--own-ops is for ONNX, {target.name} is a dialect of Caffe")
    result = transcode(
        options.prototxt,
        options.caffemodel,
        options.out,
        source=options.source,
        target=options.target,
        verify=options.verify,
        level=options.level,
        stages=options.stages,
    )
    print(result.report())
