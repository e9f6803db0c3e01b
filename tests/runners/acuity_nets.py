"""Runs Caffe nets in VeriSilicon's acuitylite, many in one process, which takes seconds to start.

    acuity_nets.py FOLDER

Each folder in FOLDER holds net.prototxt, net.caffemodel and inputs.npz, and gets outputs.npz with the outputs
by number, or error.txt with what was refused. It takes numpy, TensorFlow and acuitylite, nothing of
this project.
"""

import contextlib
import io
import logging
import os
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class _Unused:
    """What the tool looks up in torch while it is imported, for reading ONNX, and never calls here."""

    def __getattr__(self, name: str) -> Any:
        return _Unused()


class _Torch(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (_Unused,), {})


def run(folder: Path) -> None:
    """Read one net, run it in float32 and save what it gives."""
    import numpy as np
    from acuitylib.interface.importer import CaffeLoader  # type: ignore[import-not-found]
    from acuitylib.interface.inference import Inference  # type: ignore[import-not-found]

    model = CaffeLoader(model=str(folder / "net.prototxt"), weights=str(folder / "net.caffemodel")).load()
    inference = Inference(model)
    inference.build_session()
    given = np.load(folder / "inputs.npz")
    _, found = inference.run_session({name: given[name] for name in given.files})
    np.savez(folder / "outputs.npz", *found)


def main(arguments: Sequence[str]) -> None:
    """Run each net; one that is refused does not stop the others, one that ends the process does."""
    (folder,) = arguments
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    sys.modules |= {name: _Torch(name) for name in ("torch", "torch.nn", "torch.nn.functional", "torch.onnx")}
    logging.disable(logging.CRITICAL)
    for net in sorted(Path(folder).iterdir()):
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                run(net)
        except Exception as error:  # whatever the tool says of a net is what is asked for
            (net / "error.txt").write_text(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
