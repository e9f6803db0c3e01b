"""``caffeforge check``: whether a backend takes a model, and what it does not take; writes nothing."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from caffeforge.runtime.commands import add_backend, describe
from caffeforge.runtime.commands.export import example_inputs, model_named, shape_argument
from caffeforge.runtime.errors import TrainingModeWarning

if TYPE_CHECKING:
    from caffeforge.runtime.commands import Commands


def register(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = describe(commands, shared, "check", "tell whether a backend takes a model, and what it refuses")
    source = "an .onnx, .pt2 or TorchScript file, or package.module:name of the current folder"
    parser.add_argument("source", metavar="SOURCE", help=source)
    add_backend(parser)
    shape = "the shape of an input, as 1x3x224x224; once for each input"
    parser.add_argument("--shape", action="append", type=shape_argument, metavar="AxBxC", help=shape)
    parser.add_argument("--approximate", action="store_true", help="take rules that are approximations")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Read a model, legalize it, and say how many layers or ops it becomes.

    Raises:
        LegalizeError: the backend cannot express a part of it; the text says which and why.
    """
    from caffeforge.generated.hub.fusions import PATTERNS
    from caffeforge.runtime.backends import find_any
    from caffeforge.runtime.fold import fold_constants
    from caffeforge.runtime.fuse import fuse
    from caffeforge.runtime.legalize import directly, legalize
    from caffeforge.runtime.lowering_notes import lowering_notes
    from caffeforge.runtime.onnx_out.backend import OnnxBackend
    from caffeforge.runtime.onnx_out.export import convert
    from caffeforge.runtime.source import source_of

    backend = find_any(options.backend)
    model = options.source if Path(options.source).is_file() else model_named(options.source)
    warnings.simplefilter("ignore", TrainingModeWarning)
    source = source_of(
        model,
        None if options.shape is None else example_inputs(options.source, options.shape),
        input_names=None,
        output_names=None,
        outputs_at=None,
        custom=backend.custom,
        dequantize=False,
    )
    if isinstance(backend, OnnxBackend):
        made, calls, _ = convert(source.graph, backend, approximate=options.approximate)
        count, notes = len(made.calls), lowering_notes(calls)
    else:
        fold_constants(source.graph)
        fuse(source.graph, (*backend.patterns, *PATTERNS), lambda node: directly(node, backend))
        layers = legalize(source.graph, backend, approximate=options.approximate)
        count, notes = len(layers), lowering_notes(layers)
    print(f"{backend.name} takes it: {len(source.graph.nodes)} operations become {count}")
    for note in notes:
        print(f"note: {note}")
