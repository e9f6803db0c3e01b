"""Time of one forward pass of a net from Caffe's files: ours, real Caffe's, OpenCV's, and of an ONNX file.

``python -m tests.benchmarks.inference FOLDER [--repeat N] [NETWORK ...]``: batch 1, two threads each, engines
in turn. CAFFEFORGE_OPENCV names a Python with OpenCV 4, if this one has none. CPU time is compared, of both
threads together: on a machine that others use the clock says little.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from tests.benchmarks import forward_time
from tests.benchmarks.networks import files, network
from tests.benchmarks.process import run
from tests.benchmarks.result import Result, table
from tests.real_caffe.witness import CAFFE

TOO_LARGE = (
    "vgg16",
)  # for the protobuf of real Caffe, which takes 512 MB; it runs on weights of its fillers
NETWORKS = ("resnet50", "mobilenet_v2", "vgg16")
RUNS = 5  # in each process, after two that do not count
GOALS: Mapping[str, float] = {"caffe": 1 / 3, "opencv": 1.0, "torch.onnx": 1.05}


def commands(name: str, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each engine that is at hand and how it is started."""
    prototxt, weights = map(str, files(name, folder))
    script = forward_time.__file__
    yield "ours", [sys.executable, "-m", "tests.benchmarks.inference", "--ours", str(folder), name]
    if CAFFE.available:
        given = [prototxt] if name in TOO_LARGE else [prototxt, weights]
        yield "caffe", [str(CAFFE.python), "-I", script, "caffe", str(RUNS), *given]
    opencv = os.environ.get("CAFFEFORGE_OPENCV") or (
        sys.executable if importlib.util.find_spec("cv2") else ""
    )
    if opencv:
        yield "opencv", [opencv, script, "opencv", str(RUNS), prototxt, weights]
    yield "torch.onnx", [sys.executable, script, "onnxruntime", str(RUNS), str(folder / f"{name}.onnx")]


def measure(name: str, folder: Path, repeat: int) -> Iterator[Result]:
    """Yield our time against that of each other engine."""
    found: dict[str, list[dict[str, float]]] = {}
    for _ in range(repeat):
        for engine, command in commands(name, folder):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"{engine} failed on {name}:\n{done.stderr[-2000:]}")
            found.setdefault(engine, []).append(json.loads(done.stdout.splitlines()[-1]))
    ours = found.pop("ours")
    for engine, theirs in found.items():
        for key in ("cpu", "seconds"):
            values, reference = [each[key] for each in ours], [each[key] for each in theirs]
            goal = GOALS[engine] if key == "cpu" else None
            yield Result(f"{name}, {engine} ({key})", "s", values, reference, goal=goal)
    load, memory = (1.5, 1.3) if name == "vgg16" else (None, None)
    yield Result(f"{name}, load (cpu)", "s", [each["load_cpu"] for each in ours])
    yield Result(f"{name}, load (seconds)", "s", [each["load"] for each in ours], goal=load)
    sizes = [each["file"] for each in ours]
    yield Result(f"{name}, memory, the file", "MB", [each["memory"] for each in ours], sizes, goal=memory)


def prepare(name: str, folder: Path) -> None:
    """Write the files of a network: Caffe's by us, ONNX's by PyTorch."""
    import torch

    run("tests.benchmarks.networks", name, folder)
    model, example = network(name)
    torch.onnx.export(model, example, str(folder / f"{name}.onnx"), dynamo=False)


def ours(folder: Path, name: str) -> dict[str, float]:
    """Return the times of our reader and executor, and the memory that both take above the imports.

    The load is what the first result takes longer than any other: a session is made when it is first needed.
    """
    import onnxruntime  # noqa: F401  # its import and our own are no part of a load

    from caffeforge.generated.bvlc import BACKEND
    from caffeforge.runtime.caffe_files import read_files
    from caffeforge.runtime.executor import Executor
    from caffeforge.runtime.hub_from_net import hub_from_net
    from tests.benchmarks.peak import Peak, anonymous

    prototxt, weights = files(name, folder)
    image = np.random.RandomState(0).standard_normal((1, 3, 224, 224)).astype(np.float32)
    with Peak(anonymous) as peak:
        before = time.perf_counter(), time.process_time()
        hub = hub_from_net(read_files(prototxt, weights, BACKEND), BACKEND)
        executor = Executor(hub.graph, threads=2)
        inputs = {hub.graph.inputs[0].name: image}
        executor.run(inputs)
        load, cpu = time.perf_counter() - before[0], time.process_time() - before[1]
        executor.run(inputs)
    found = forward_time.measured(lambda: executor.run(inputs), RUNS)  # the samples of memory take time too
    return found | {
        "load": load - found["seconds"],
        "load_cpu": cpu - found["cpu"],
        "memory": peak.bytes / 1e6,
        "file": weights.stat().st_size / 1e6,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print a table; with ``--ours``, the numbers of one process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--ours", action="store_true")
    options = parser.parse_args(arguments)
    if options.ours:
        print(json.dumps(ours(options.folder, options.networks[0])))
        return
    for name in options.networks:
        if not files(name, options.folder)[1].exists():
            prepare(name, options.folder)
        print(f"{table(list(measure(name, options.folder, options.repeat)))}\n", flush=True)


if __name__ == "__main__":
    main()
