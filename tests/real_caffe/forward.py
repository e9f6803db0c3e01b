"""Runs one net in Caffe: a script for the Python that has Caffe (3.8 or newer, with numpy).

Usage: forward.py PROTOTXT CAFFEMODEL|- INPUTS.npz OUTPUTS.npz [--blob NAME]... [--all] [--once]

The net runs twice, first on other inputs: a result that depends on what ran before is then wrong. With --once
nothing runs before, for layers of a Caffe that do depend on that.
Caffe ends the whole process on what it dislikes, which is why this is a process of its own.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


def read_arrays(path: str | Path) -> dict[str, npt.NDArray[np.float32]]:
    """Read what ``write_arrays`` wrote."""
    with np.load(path) as file:
        return {str(name): file[str(index)] for index, name in enumerate(file["names"])}


def write_arrays(path: str | Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays as the float32 that Caffe computes in; their names may hold what a file's may not."""
    numbered: dict[str, Any] = {str(i): np.asarray(a, np.float32) for i, a in enumerate(arrays.values())}
    np.savez(path, names=np.array(list(arrays), np.str_), **numbered)


def other_input(array: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Give another valid input, be it an image, indices or boxes: half of each value, rows upside down.

    Whole numbers stay whole: they may be indices.
    """
    half = array / np.float32(2)
    if np.array_equal(array, np.trunc(array)):
        half = np.trunc(half)
    return np.flip(half, axis=2) if half.ndim == 4 else half


def blob_names(net: Any) -> list[str]:
    """Name every blob that the prototxt names, in order: all but the copies that Caffe inserts."""
    splits = [name for name, layer in net.layer_dict.items() if layer.type == "Split"]
    copies = {top for split in splits for top in net.top_names[split]}
    return [name for name in net.blobs if name not in copies]


def forward(net: Any, inputs: Mapping[str, npt.NDArray[np.float32]]) -> None:
    """Run the net on inputs, whose shapes it takes over."""
    for name, array in inputs.items():
        net.blobs[name].reshape(*array.shape)
    net.reshape()
    for name, array in inputs.items():
        net.blobs[name].data[...] = array
    net.forward()


def main() -> None:
    """Run as the usage above says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("prototxt")
    parser.add_argument("caffemodel")
    parser.add_argument("inputs")
    parser.add_argument("outputs")
    parser.add_argument("--blob", action="append", help="a blob to write; without any: the net's outputs")
    parser.add_argument("--all", action="store_true", help="write every blob")
    parser.add_argument("--once", action="store_true", help="do not run on other inputs first")
    options = parser.parse_args()

    os.environ.setdefault("GLOG_minloglevel", "2")  # errors only; read when caffe is imported
    import caffe

    caffe.set_mode_cpu()
    caffe.set_random_seed(1)  # a net without weights gets the same ones from its fillers each time
    files = [options.prototxt] + ([] if options.caffemodel == "-" else [options.caffemodel])
    net = caffe.Net(*files, caffe.TEST)

    inputs = read_arrays(options.inputs)
    if set(inputs) != set(net.inputs):
        sys.exit(f"the net's inputs are {sorted(net.inputs)}, given are {sorted(inputs)}")
    wanted = blob_names(net) if options.all else options.blob or list(net.outputs)
    unknown = [name for name in wanted if name not in net.blobs]
    if unknown:
        sys.exit(f"the net has no blob {unknown}; it has {blob_names(net)}")

    if not options.once:
        forward(net, {name: other_input(array) for name, array in inputs.items()})
    forward(net, inputs)
    write_arrays(options.outputs, {name: net.blobs[name].data for name in wanted})


if __name__ == "__main__":
    main()
