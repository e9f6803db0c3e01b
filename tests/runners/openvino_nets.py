"""Runs Caffe nets in OpenVINO, many in one process, which takes seconds to start.

    openvino_nets.py FOLDER

Each folder in FOLDER holds net.prototxt, net.caffemodel and inputs.npz, and gets outputs.npz with the
outputs by the names of their blobs, or error.txt with what was refused. It takes numpy and openvino-dev
2024.6, nothing of this project.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def run(folder: Path) -> None:
    """Convert one net, run it on the CPU in full precision and save what it gives."""
    import numpy as np
    import openvino  # type: ignore[import-not-found]
    from openvino.tools.mo import convert_model  # type: ignore[import-not-found]

    model: Any = convert_model(
        input_model=str(folder / "net.caffemodel"),
        input_proto=str(folder / "net.prototxt"),
        framework="caffe",
        silent=True,
    )
    compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    given = np.load(folder / "inputs.npz")
    found = compiled({name: given[name] for name in given.files})
    named = {sorted(port.names)[0] if port.names else str(i): a for i, (port, a) in enumerate(found.items())}
    np.savez(folder / "outputs.npz", **named)


def main(arguments: Sequence[str]) -> None:
    """Run each net; one that is refused does not stop the others, one that ends the process does."""
    (folder,) = arguments
    for net in sorted(Path(folder).iterdir()):
        try:
            run(net)
        except Exception as error:  # whatever the tool says of a net is what is asked for
            (net / "error.txt").write_text(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
