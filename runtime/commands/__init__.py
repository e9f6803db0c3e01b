"""The commands of ``caffeforge``, one a module: `register` declares its arguments, `run` does it.

Modules here import what is heavy inside functions: ``caffeforge --help`` must not wait for torch.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from caffeforge.runtime.errors import UsageError

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

DEQUANTIZE_HELP = "of a quantized ONNX model, the float model that QuantizeLinear was put into"
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
    """Declare the files of a net, or of an ONNX model, which needs no backend."""
    parser.add_argument(
        "prototxt", metavar="NET.prototxt|MODEL.onnx", help="the net, a caffemodel alone, or a model"
    )
    parser.add_argument("caffemodel", metavar="NET.caffemodel", nargs="?", help="its weights")
    parser.add_argument("--backend", metavar="NAME|DIR", help=f"of a prototxt: {BACKEND_HELP}")
    parser.add_argument("--dequantize", action="store_true", help=DEQUANTIZE_HELP)


def add_state(parser: argparse.ArgumentParser) -> None:
    """Declare ``--stage`` and ``--level``, by which a prototxt may choose its layers."""
    stage = "keep layers of this stage, as `deploy` in nets of DIGITS; may be given several times"
    parser.add_argument("--stage", dest="stages", action="append", default=[], metavar="NAME", help=stage)
    level = "for min_level and max_level of layers; default: 0"
    parser.add_argument("--level", type=int, default=0, metavar="N", help=level)


def add_random_weights(parser: argparse.ArgumentParser) -> None:
    """Declare ``--random-weights``."""
    what = "give layers of a prototxt that have no weights random ones, always the same"
    parser.add_argument("--random-weights", action="store_true", help=what)


def is_onnx(options: argparse.Namespace) -> bool:
    """Tell whether the command is given an ONNX model.

    Raises:
        UsageError: it is given a prototxt and no backend or to be dequantized, or an ONNX model and a
            caffemodel.
    """
    if options.prototxt.endswith(".onnx"):
        if options.caffemodel is not None:
            raise UsageError("an ONNX model holds its weights itself: give the .onnx file alone")
        return True
    if options.dequantize:
        raise UsageError("--dequantize is for ONNX models: a Caffe net holds floats")
    if options.backend is None:
        raise UsageError("a prototxt needs --backend: another dialect would read other numbers in silence")
    return False
