"""GB/s of writing a caffemodel from memory, of reading one to memory, and of a copy of the file."""

from __future__ import annotations

import json
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from caffeforge.generated.bvlc import BACKEND
from caffeforge.runtime import caffemodel
from caffeforge.runtime.array import Dense
from caffeforge.runtime.caffe_files import read_files
from caffeforge.runtime.net import Net
from tests.benchmarks.networks import files
from tests.benchmarks.page_cache import warm


def main() -> None:
    """Print the speed of ``KIND NETWORK FOLDER``; KIND is ``write``, ``read`` or ``copy``."""
    kind, name, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    prototxt, weights = files(name, folder)
    target = folder / "made.caffemodel"
    net = in_memory(read_files(prototxt, weights, BACKEND)) if kind == "write" else None
    warm(weights)
    start = time.perf_counter()
    if net is not None:
        caffemodel.write(net, BACKEND, target)
    elif kind == "read":
        read_all(read_files(prototxt, weights, BACKEND))
    else:
        shutil.copyfile(weights, target)
    seconds = time.perf_counter() - start
    target.unlink(missing_ok=True)
    print(json.dumps({"speed": weights.stat().st_size / seconds / 1e9}))


def in_memory(net: Net) -> Net:
    """Return `net` with copies of its weights, which lay in a mapped file."""
    layers = [
        replace(layer, blobs=tuple(Dense(np.array(blob.numpy())) for blob in layer.blobs))
        for layer in net.layers
    ]
    return replace(net, layers=layers)


def read_all(net: Net) -> None:
    """Bring every weight to memory, a piece at a time as a consumer would."""
    for layer in net.layers:
        for blob in layer.blobs:
            for chunk in blob.chunks():
                chunk.copy()


if __name__ == "__main__":
    main()
