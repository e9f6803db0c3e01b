"""Seconds of one forward pass in another engine: a script for any Python that has it (3.8 or newer, numpy).

Usage: forward_time.py caffe|opencv|onnxruntime RUNS FILE [CAFFEMODEL], with a float32[1, 3, 224, 224] image.
It prints the CPU seconds of all threads and the seconds of the clock, the least of RUNS after two others, as
what else runs on the machine only adds to them.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "2"
os.environ.setdefault("GLOG_minloglevel", "2")

import numpy as np  # noqa: E402  # after the number of threads is set


def main() -> None:
    """Run as the usage above says."""
    engine, runs, files = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    image = np.random.RandomState(0).standard_normal((1, 3, 224, 224)).astype(np.float32)
    forward = ENGINES[engine](files, image)
    print(json.dumps(measured(forward, runs)))


def measured(forward: Callable[[], Any], runs: int) -> dict[str, float]:
    """Return the least CPU time, and the least time that passes."""
    cpu, seconds = [], []
    for _ in range(runs + 2):
        before = time.process_time(), time.perf_counter()
        forward()
        cpu.append(time.process_time() - before[0])
        seconds.append(time.perf_counter() - before[1])
    return {"cpu": min(cpu[2:]), "seconds": min(seconds[2:])}


def caffe(files: list[str], image: Any) -> Callable[[], Any]:
    """Real Caffe, on weights of the net's fillers if no caffemodel is given."""
    import caffe

    caffe.set_mode_cpu()
    net = caffe.Net(*files, caffe.TEST)
    net.blobs[net.inputs[0]].data[...] = image
    return lambda: net.forward()


def opencv(files: list[str], image: Any) -> Callable[[], Any]:
    """OpenCV's dnn, which reads Caffe's files up to version 4."""
    import cv2  # type: ignore[import-not-found,unused-ignore]

    cv2.setNumThreads(2)
    net = cv2.dnn.readNetFromCaffe(files[0], files[1])
    net.setInput(image)
    return lambda: net.forward()


def onnxruntime(files: list[str], image: Any) -> Callable[[], Any]:
    """Run an ONNX file on onnxruntime."""
    import onnxruntime as runtime

    options = runtime.SessionOptions()
    options.intra_op_num_threads = 2
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = runtime.InferenceSession(files[0], options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda: session.run(None, {name: image})


ENGINES = {"caffe": caffe, "opencv": opencv, "onnxruntime": onnxruntime}

if __name__ == "__main__":
    main()
