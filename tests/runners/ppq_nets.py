"""Runs Caffe nets in PPQ's executor, many in one process, which takes seconds to start.

    ppq_nets.py DIR FOLDER

DIR holds the package ppq. Each folder in FOLDER holds net.prototxt, net.caffemodel and inputs.npz, and gets
outputs.npz with the outputs by name, or error.txt with what was refused. It takes numpy, torch and ppq,
nothing of this project.
"""

import contextlib
import io
import os
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def _as_ppq_expects() -> None:
    """Let a PPQ of 2023 start: its generated messages are old, and onnx has no module `mapping` any more."""
    os.environ["PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"] = "python"
    import onnx

    mapping: Any = types.ModuleType("onnx.mapping")
    mapping.TENSOR_TYPE_TO_NP_TYPE = {}  # for ONNX files alone
    sys.modules["onnx.mapping"] = onnx.mapping = mapping  # type: ignore[attr-defined]


def run(folder: Path) -> None:
    """Read one net, run it in float32 and save what it gives."""
    import numpy as np
    import torch
    from ppq.core import IS_DISPATCHED_GRAPH  # type: ignore[import-not-found]
    from ppq.executor import TorchExecutor  # type: ignore[import-not-found]
    from ppq.parser.caffe_parser import CaffeParser  # type: ignore[import-not-found]

    graph = CaffeParser().build(str(folder / "net.prototxt"), str(folder / "net.caffemodel"))
    graph.set_extension_attrib(IS_DISPATCHED_GRAPH, True)
    given = np.load(folder / "inputs.npz")
    fed = {name: torch.from_numpy(given[name]) for name in given.files}
    names = list(graph.outputs)
    found = TorchExecutor(graph=graph, device="cpu").forward(fed, names)
    np.savez(folder / "outputs.npz", **{n: value.numpy() for n, value in zip(names, found, strict=True)})


def main(arguments: Sequence[str]) -> None:
    """Run each net; one that is refused does not stop the others."""
    place, folder = arguments
    sys.path.insert(0, place)
    _as_ppq_expects()
    for net in sorted(Path(folder).iterdir()):
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                run(net)
        except Exception as error:  # whatever the tool says of a net is what is asked for
            (net / "error.txt").write_text(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
