"""Prints what becomes of ResNet-18 in every opset, and how long ResNet-50 to opset 11 takes beside PyTorch.

``python -m tests.onnx_out.every_opset``: ResNet-18 is written at each opset, run by onnxruntime, read again
and written at another opset; the error of each file is a part of the scale of what PyTorch computes. Then
ResNet-50 is exported by ``torch.onnx.export(dynamo=True)``, which needs onnxscript, and by caffeforge, both
in this process and without comparing.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch

from caffeforge.runtime.backends import find_any
from caffeforge.runtime.onnx_out.backend import OnnxBackend
from caffeforge.runtime.onnx_out.export import export
from tests.onnx_out.networks import model_of

OPSETS = range(7, 29)
RUNS = 3  # of each exporter, the fastest counts


def backend(opset: int) -> OnnxBackend:
    """Return an opset's backend."""
    found = find_any(f"onnx_opset{opset}")
    assert isinstance(found, OnnxBackend)
    return found


def error(path: Path, image: Any, wanted: Any) -> float:
    """Return how far onnxruntime is from what is due."""
    onnx.checker.check_model(str(path), full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    found = session.run(None, {session.get_inputs()[0].name: image})[0]
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def round_trips() -> None:
    """Write and read ResNet-18 at every opset."""
    model, image = model_of("resnet18"), torch.randn(1, 3, 224, 224)
    with torch.no_grad():
        wanted = model(image).numpy()
    with tempfile.TemporaryDirectory() as folder:
        for opset in OPSETS:
            first = export(backend(opset), model, (image,), Path(folder) / "first", verify=False).onnx
            assert first is not None
            written = error(first, image.numpy(), wanted)
            other = 35 - opset  # the newest for the oldest, and so on
            again = export(backend(other), first, None, Path(folder) / "again", verify=False).onnx
            assert again is not None
            read = error(again, image.numpy(), wanted)
            print(f"resnet18 {opset}: {written:.1e}, read and written at {other}: {read:.1e}", flush=True)


def times() -> None:
    """Export ResNet-50 to opset 11 in two ways."""
    model, image = model_of("resnet50"), torch.randn(1, 3, 224, 224)
    with tempfile.TemporaryDirectory() as folder:

        def by_torch() -> None:
            target = str(Path(folder) / "torch.onnx")
            torch.onnx.export(model, (image,), target, dynamo=True, opset_version=11, verbose=False)

        def by_caffeforge() -> None:
            export(backend(11), model, (image,), Path(folder) / "ours", verify=False)

        for name, run in (("torch.onnx.export", by_torch), ("caffeforge", by_caffeforge)):
            best = min(_seconds(run) for _ in range(RUNS))
            print(f"resnet50 to opset 11 by {name}: {best:.2f} s of CPU", flush=True)
        opset = onnx.load(Path(folder) / "torch.onnx", load_external_data=False).opset_import[0].version
        print(f"PyTorch's file has opset {opset}")


def _seconds(run: Any) -> float:
    begin = time.process_time()
    run()
    return time.process_time() - begin


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    round_trips()
    times()
