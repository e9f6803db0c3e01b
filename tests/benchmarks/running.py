"""Seconds for reading a net and for running it on onnxruntime, the first time and again."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

from tests.benchmarks.networks import files
from tests.benchmarks.page_cache import warm


def main() -> None:
    """Print the seconds of ``NETWORK FOLDER``: load with all imports, first run, and another run."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    prototxt, weights = files(name, folder)
    warm(weights)
    times = [time.perf_counter()]
    from caffeforge.generated.bvlc import load

    net = load(prototxt, weights)
    times.append(time.perf_counter())
    inputs = {key: np.zeros(shape, np.float32) for key, shape in net.inputs.items()}
    for _ in range(2):
        net.run(inputs)
        times.append(time.perf_counter())
    print(json.dumps(dict(zip(("load", "first run", "run"), np.diff(times).tolist(), strict=True))))


if __name__ == "__main__":
    main()
