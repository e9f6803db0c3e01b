"""``caffeforge verify``: compare a model with what was made of it, whoever made it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caffeforge.runtime.commands import BACKEND_HELP, DEQUANTIZE_HELP, describe
from caffeforge.runtime.commands.export import shape_argument
from caffeforge.runtime.errors import TrainingModeWarning, UsageError, VerificationError

if TYPE_CHECKING:
    from caffeforge.runtime.commands import Commands
    from caffeforge.runtime.sides.side import Input

_SIDE = "NET.prototxt[,NET.caffemodel], an .onnx, a .pt2, or package.module:name"


def register(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = describe(commands, shared, "verify", "compare a model with the files made of it")
    parser.add_argument("source", metavar="SOURCE", help=f"the reference: {_SIDE}")
    parser.add_argument("target", metavar="TARGET", help=f"what should compute the same: {_SIDE}")
    parser.add_argument("--backend", metavar="NAME|DIR", help=f"dialect of a Caffe TARGET: {BACKEND_HELP}")
    same = "dialect of a Caffe SOURCE; default: that of TARGET"
    parser.add_argument("--source-backend", metavar="NAME|DIR", help=same)
    shape = "the shape of an input, as 1x3x224x224; once for each input; default: the files'"
    parser.add_argument("--shape", action="append", type=shape_argument, metavar="AxBxC", help=shape)
    inputs = (
        "random, an .npz of arrays by input name, which may hold several batches, or a folder of images; "
        "default: random"
    )
    parser.add_argument("--inputs", default="random", metavar="random|FILE|DIR", help=inputs)
    parser.add_argument("--samples", type=int, default=2, metavar="N", help="random input sets; default: 2")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="for random inputs; default: 0")
    mean = "of images: what is subtracted, one number or one a channel, as 104,117,123"
    parser.add_argument("--mean", type=_numbers, default=(0.0,), metavar="NUMBERS", help=mean)
    parser.add_argument(
        "--scale", type=float, default=1.0, help="of images: what they are multiplied by then"
    )
    parser.add_argument("--color", choices=("rgb", "bgr"), default="rgb", help="of images; default: rgb")
    parser.add_argument("--dequantize", action="store_true", help=f"as SOURCE {DEQUANTIZE_HELP}")
    parser.add_argument("--per-layer", action="store_true", help="compare inner values too")
    limit = "accepted error as a part of the largest magnitude; default: by element type, 1e-4 for float32"
    parser.add_argument("--tolerance", type=float, metavar="PART", help=limit)
    runner = (
        "a program that runs TARGET instead, as 'simulate --net n.bin {inputs} {outputs}' with .npz files"
    )
    parser.add_argument("--runner", metavar="CMD", help=runner)
    seconds = "for a runner: how long one run may take; default: no limit"
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help=seconds)
    provider = "what computes ONNX and Caffe: CPU or CUDA, or another provider of onnxruntime; default: CPU"
    parser.add_argument("--provider", default="CPU", metavar="NAME", help=provider)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print the comparison.

    Raises:
        VerificationError: the target differs; the comparison is printed all the same.
    """
    import warnings

    from caffeforge.runtime.compare import Tolerance
    from caffeforge.runtime.sides import compare_sides, open_pair
    from caffeforge.runtime.sides.opened import Opening
    from caffeforge.runtime.sides.runner_side import RunnerSide

    if options.runner and options.per_layer:
        raise UsageError("a runner shows outputs alone", hint="leave --per-layer or --runner")
    if options.samples < 1:
        raise UsageError("at least one sample is needed")
    if options.tolerance is not None and not options.tolerance >= 0:
        raise UsageError("a tolerance is a part of the largest magnitude, 0 or more")
    if options.timeout is not None and (not options.runner or not options.timeout > 0):
        raise UsageError("--timeout is a number of seconds above 0, for a --runner")
    warnings.simplefilter("ignore", TrainingModeWarning)  # who verifies means evaluation
    if options.dequantize and not options.source.endswith(".onnx"):
        raise UsageError("--dequantize is for an ONNX model as SOURCE")
    opening = Opening(
        options.source_backend or options.backend,
        options.backend,
        options.shape,
        (options.provider,),
        options.dequantize,
    )
    here = str(Path.cwd())
    sys.path.insert(0, here)  # a model is named as for export
    try:
        source, target = open_pair(options.source, options.target, opening)
    finally:
        sys.path.remove(here)
    if options.runner:
        target = RunnerSide(options.runner, target.inputs, target.outputs, timeout=options.timeout)
    accepted = None if options.tolerance is None else Tolerance(options.tolerance)
    sets = _sets(options, source.inputs)
    found = compare_sides(source, target, sets, per_layer=options.per_layer, accepted=accepted)
    if options.json:
        print(json.dumps(found.document(), indent=1))
    else:
        print(f"{source.title} against {target.title}: {found.summary()}\n\n{found.table()}")
    if not found.passed:
        blind = not options.per_layer and not options.runner
        hint = "--per-layer finds the first layer that differs" if blind else ""
        raise VerificationError(found.summary(), where=options.target, hint=hint)


def _sets(options: argparse.Namespace, inputs: Mapping[str, Input]) -> Iterable[dict[str, Any]]:
    from caffeforge.runtime.sides import input_sets

    if options.inputs == "random":
        return input_sets.random_sets(inputs, options.samples, options.seed)
    path = Path(options.inputs)
    if path.is_dir():
        how = input_sets.Preparation(options.mean, options.scale, options.color)
        return input_sets.image_sets(path, inputs, how)
    if input_sets.is_image(path):
        raise UsageError("a folder of images is taken, not one of them", where=str(path))
    return input_sets.npz_sets(path, inputs)


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(map(float, text.split(",")))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} are no numbers, write 104,117,123") from None
