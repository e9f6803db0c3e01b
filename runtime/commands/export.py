"""``caffeforge export``: a model, in a file or as ``package.module:name``, into a backend's files."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caffeforge.runtime.commands import DEQUANTIZE_HELP, add_backend, describe
from caffeforge.runtime.errors import TrainingModeWarning, UsageError

if TYPE_CHECKING:
    from caffeforge.runtime.commands import Commands

FORM = "package.module:name"


def register(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = describe(
        commands, shared, "export", "convert a PyTorch or ONNX model and compare the files with it"
    )
    source = (
        f"an .onnx, .pt2 or TorchScript file, or {FORM} of the current folder: a module or what makes one"
    )
    parser.add_argument("source", metavar="SOURCE", help=source)
    add_backend(parser)
    shape = (
        "the shape of an input, as 1x3x224x224; once for each input; default: what an .onnx or .pt2 declares"
    )
    parser.add_argument("--shape", action="append", type=shape_argument, metavar="AxBxC", help=shape)
    out = "path of the files without a suffix; default: the name in SOURCE"
    parser.add_argument("--out", metavar="STEM", help=out)
    for side in ("input", "output"):
        what = f"names of the {side} blobs, as a,b"
        parser.add_argument(f"--{side}-names", type=_names, metavar="NAMES", help=what)
    cut = "paths of modules, as a,b: the net ends at their outputs, what comes after stays outside"
    parser.add_argument("--outputs-at", type=_names, metavar="MODULES", help=cut)
    parser.add_argument("--no-verify", action="store_true", help="do not compare the files with the model")
    close = "take rules that are approximations"
    parser.add_argument("--approximate", action="store_true", help=close)
    apart = "give every layer a blob of its own, so that each value can be observed"
    parser.add_argument("--no-in-place", action="store_true", help=apart)
    parser.add_argument("--dequantize", action="store_true", help=DEQUANTIZE_HELP)
    fold = "of a Caffe backend: join layers of different modules, as BatchNorm and Scale with a convolution"
    parser.add_argument("--fold", action="store_true", help=fold)
    style = "of an ONNX backend: names from module paths, or C identifiers; default: path"
    parser.add_argument("--names", choices=("path", "c"), default="path", help=style)
    beside = "of an ONNX backend: keep weights in a file beside the model"
    parser.add_argument("--external-data", action="store_true", help=beside)
    own = "of an ONNX backend: what becomes of ops of domains of their own; default: auto"
    parser.add_argument("--own-ops", choices=("auto", "function", "node", "lower"), default="auto", help=own)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Export with random inputs and print the report."""
    from caffeforge.runtime.backends import find_any
    from caffeforge.runtime.onnx_out.backend import OnnxBackend

    backend = find_any(options.backend)
    if options.shape is None and Path(options.source).suffix not in (".onnx", ".pt2"):
        raise UsageError("the input shapes are not known", hint="give --shape once for each input")
    model = options.source if Path(options.source).is_file() else model_named(options.source)
    warnings.simplefilter("ignore", TrainingModeWarning)  # the report says it
    shared: dict[str, Any] = {
        "model": model,
        "example_inputs": None if options.shape is None else example_inputs(options.source, options.shape),
        "path": options.out or _stem(options.source),
        "input_names": options.input_names,
        "output_names": options.output_names,
        "outputs_at": options.outputs_at,
        "verify": not options.no_verify,
        "approximate": options.approximate,
        "dequantize": options.dequantize,
    }
    if isinstance(backend, OnnxBackend):
        from caffeforge.runtime.onnx_out.export import export as export_onnx

        beside = True if options.external_data else None
        result = export_onnx(
            backend, **shared, names=options.names, external_data=beside, own_ops=options.own_ops
        )
    else:
        from caffeforge.runtime.export import export

        result = export(backend, **shared, in_place=not options.no_in_place, fold=options.fold)
    print(result.report())


def model_named(source: str) -> Any:
    """Import SOURCE and return the module that it is or makes; see ``opened.made``."""
    from caffeforge.runtime.torch_front.opened import made  # loads torch

    return made(source)


def _stem(source: str) -> str:
    """Return what files are called by default: the file's or the model's name."""
    if Path(source).is_file():
        return str(Path(source).with_suffix(""))
    return source.rpartition(":")[2].replace(".", "_")


def example_inputs(source: str, shapes: list[tuple[int, ...]]) -> Any:
    """Return normally distributed tensors, the same in every run; an ONNX model knows its own types."""
    if source.endswith(".onnx"):
        return shapes
    import torch

    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)


def shape_argument(text: str) -> tuple[int, ...]:
    """Return the sizes in ``1x3x224x224``; what argparse calls for an option."""
    sizes = text.lower().split("x")
    if not all(size.isdecimal() and int(size) > 0 for size in sizes):
        raise argparse.ArgumentTypeError(f"{text!r} is no shape, write 1x3x224x224")
    return tuple(map(int, sizes))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]
