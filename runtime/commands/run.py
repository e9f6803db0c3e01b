"""``caffeforge run``: compute blobs of a net from its files."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from caffeforge.runtime.commands import add_net, add_random_weights, add_state, describe, is_onnx
from caffeforge.runtime.errors import FileError, UsageError

if TYPE_CHECKING:
    from caffeforge.runtime.commands import Commands
    from caffeforge.runtime.loaded import LoadedNet
    from caffeforge.runtime.onnx_front.loaded import LoadedOnnx


def register(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = describe(commands, shared, "run", "compute blobs of a net")
    add_net(parser)
    given = parser.add_mutually_exclusive_group(required=True)
    array = "the array of an input; once for each input"
    given.add_argument("--input", action="append", type=_input, metavar="NAME=FILE.npy", help=array)
    given.add_argument("--random", action="store_true", help="feed normally distributed numbers")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="for --random; default: 0")
    fill = "for --random: the number in inputs that take integers or truth values, as 0 or 1"
    parser.add_argument("--fill", type=int, metavar="N", help=fill)
    names = "which blobs, as a,b, or a@layer as a is before others overwrite it; default: the net's outputs"
    parser.add_argument("--blobs", metavar="NAMES", help=names)
    parser.add_argument("--out", type=Path, metavar="FILE.npz", help="where to save them")
    engine = "what computes a prototxt: CPU or CUDA, or an execution provider of onnxruntime; default: CPU"
    add_random_weights(parser)
    add_state(parser)
    parser.add_argument("--provider", default="CPU", metavar="NAME", help=engine)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print shape and range of each blob; save the blobs if asked to."""
    net, notes = _loaded(options)
    if options.random:
        inputs = _random(net, options.seed, options.fill)
    else:
        inputs = _arrays(options.input, None if is_onnx(options) else "float32")
    blobs = options.blobs.split(",") if options.blobs else None
    found = net.run(inputs, blobs)
    for note in notes:
        print(f"note: {note}")
    if not found:
        print("note: the net has no outputs: ask for blobs by --blobs")
    for name, array in found.items():
        print(f"{name}: {_summary(array)}")
    if options.out is not None:
        _save(options.out, found)


def _summary(array: Any) -> str:
    """Return the shape of an array and the range of its numbers, or its first texts."""
    shape = "x".join(map(str, array.shape)) or "scalar"
    if not array.size:
        return f"{shape}, empty"
    if array.dtype.kind == "O":
        return f"{shape}, {', '.join(map(repr, array.reshape(-1)[:4].tolist()))}"
    return f"{shape}, {array.min():.6g} to {array.max():.6g}, mean {array.mean():.6g}"


def _loaded(options: argparse.Namespace) -> tuple[LoadedNet | LoadedOnnx, Sequence[str]]:
    """Return the net or model, and what is to be said of it."""
    if is_onnx(options):
        from caffeforge.runtime.onnx_front.loaded import load as load_onnx

        if options.provider.upper() != "CPU":
            raise UsageError("--provider is for a prototxt: an ONNX model runs on the CPU")
        model = load_onnx(options.prototxt, dequantize=options.dequantize)
        return model, model.notes
    from caffeforge.runtime.loaded import load

    weights: Literal["random"] | None = "random" if options.random_weights else None
    net = load(
        options.prototxt,
        options.caffemodel,
        options.backend,
        providers=[options.provider],
        weights=weights,
        level=options.level,
        stages=options.stages,
    )
    return net, net.net.notes


def _input(text: str) -> tuple[str, str]:
    name, mark, file = text.partition("=")
    if not (name and mark and file):
        raise argparse.ArgumentTypeError(f"{text!r} is no input, write name=file.npy")
    return name, file


def _random(net: LoadedNet | LoadedOnnx, seed: int, fill: int | None) -> dict[str, Any]:
    """Return random numbers for inputs of floats; integers, which mean places or sizes, are all `fill`.

    Raises:
        UsageError: an input takes integers and there is no `fill`, or it takes text.
    """
    import numpy as np

    generator = np.random.default_rng(seed)
    whole: Mapping[str, str] = getattr(net, "whole", {})  # a Caffe net has floats alone
    found: dict[str, Any] = {}
    for name, shape in net.inputs.items():
        if whole.get(name) == "string":
            raise UsageError(f"input {name} takes text", hint=f"give --input {name}=FILE.npy and all others")
        if name not in whole:
            found[name] = generator.standard_normal(shape, np.float32)
        elif fill is None:
            raise UsageError(
                f"input {name} takes {whole[name]}, for which random numbers mean nothing",
                hint=f"add --fill 0 to fill it with zeros, or give --input {name}=FILE.npy and all others",
            )
        else:
            found[name] = np.full(shape, fill, np.int64)
    return found


def _arrays(given: list[tuple[str, str]], dtype: str | None) -> dict[str, Any]:
    """Return the arrays in the files, as `dtype`; as they are if it is None.

    Raises:
        UsageError: a name is given twice.
        FileError: a file cannot be read, or holds no numbers.
    """
    from caffeforge.runtime.array_files import read_arrays

    arrays: dict[str, Any] = {}
    for name, file in given:
        if name in arrays:
            raise UsageError(f"input {name} is given twice")
        found = read_arrays(Path(file), texts=dtype is None)
        if list(found) != [""]:
            raise FileError("the input is no single array", where=file, hint="save it by numpy.save")
        array = found[""]
        arrays[name] = array if dtype is None else array.astype(dtype)
    return arrays


def _save(path: Path, blobs: Mapping[str, Any]) -> None:
    """Write an .npz; an old file stays as it was if that fails."""
    from caffeforge.runtime.array_files import write_arrays

    part = path.with_name(f".{path.name}.part")
    try:
        write_arrays(part, blobs)
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise FileError(f"the blobs cannot be written: {error.strerror}", where=str(path)) from None
    print(f"wrote {path}")
