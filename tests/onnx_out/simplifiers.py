"""Prints how many nodes simplifiers leave of networks: ``python -m tests.onnx_out.simplifiers [NAME ...]``.

Files of PyTorch's older exporter at opset 13 are simplified by caffeforge, and by onnxsim and onnxslim where
they are installed: nodes left, seconds of CPU, and whether onnxruntime computes the same.
"""

from __future__ import annotations

import importlib
import logging
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch

from caffeforge.runtime.onnx_simplify import simplify
from tests.onnx_out.networks import model_of

NAMES = (
    "alexnet convnext_tiny deeplabv3_mobilenet_v3_large densenet121 efficientnet_b0 efficientnet_v2_s "
    "googlenet lraspp_mobilenet_v3_large mnasnet0_5 mobilenet_v2 mobilenet_v3_small regnet_x_400mf "
    "regnet_y_400mf resnet18 resnet50 shufflenet_v2_x0_5 squeezenet1_1 swin_t swin_v2_t vit_b_16"
)
Simplifier = Callable[[Path, Path], None]
NEWER = {"swin_v2_t": 17, "vit_b_16": 17}  # what the exporter cannot write at opset 13
TOLERANCE = 1e-4  # of the scale


def simplifiers() -> dict[str, Simplifier]:
    """Return those that are installed."""
    found: dict[str, Simplifier] = {"caffeforge": lambda a, b: void(simplify(a, b, verify=False))}
    for name, run in (("onnxsim", _onnxsim), ("onnxslim", _onnxslim)):
        if importlib.util.find_spec(name) is not None:
            found[name] = run
    return found


def void(_: object) -> None:
    """Return nothing."""


def _onnxsim(source: Path, target: Path) -> None:
    module: Any = importlib.import_module("onnxsim")
    onnx.save(module.simplify(onnx.load(source))[0], target)


def _onnxslim(source: Path, target: Path) -> None:
    module: Any = importlib.import_module("onnxslim")
    logging.getLogger("ONNXSlim").setLevel(logging.CRITICAL)
    onnx.save(module.slim(onnx.load(source)), target)


def row(name: str) -> str:
    """Return what each simplifier leaves of a network."""
    image = torch.randn(1, 3, 224, 224)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "in.onnx"
        torch.onnx.export(
            model_of(name), (image,), str(source), opset_version=NEWER.get(name, 13), dynamo=False
        )
        wanted = _outputs(source, image.numpy())
        parts = [f"{name}: {len(onnx.load(source).graph.node)} nodes"]
        for simplifier, run in simplifiers().items():
            target = Path(folder) / f"{simplifier}.onnx"
            begin = time.process_time()
            try:
                run(source, target)
                seconds = time.process_time() - begin
                pairs = zip(_outputs(target, image.numpy()), wanted, strict=True)
                error = max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)
            except Exception as failure:  # of three programs
                parts.append(f"{simplifier} fails: {str(failure)[:80]}")
                continue
            count = len(onnx.load(target).graph.node)
            parts.append(f"{simplifier} {count} in {seconds:.1f} s{'' if error < TOLERANCE else ', WRONG'}")
    return "; ".join(parts)


def _outputs(path: Path, image: Any) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, {session.get_inputs()[0].name: image}))


def main(arguments: list[str]) -> None:
    """Print a line for each network."""
    warnings.simplefilter("ignore")
    for name in arguments or NAMES.split():
        print(row(name), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
