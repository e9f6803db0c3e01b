"""Runs a Caffe net in the simulator of Rockchip's toolkit, as ``caffeforge verify --runner`` wants it.

    rknn.py NET.prototxt NET.caffemodel INPUTS.npz OUTPUTS.npz OUTPUT...

It takes numpy and rknn-toolkit2, nothing of this project; OUTPUT names the net's outputs in their order.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

TARGET = "rk3588"  # computes in half precision


def main(arguments: Sequence[str]) -> None:
    """Run the net and save its outputs.

    Raises:
        SystemExit: the toolkit refuses the net.
    """
    import numpy as np
    from rknn.api import RKNN  # type: ignore[import-not-found]

    prototxt, caffemodel, inputs, results, *outputs = arguments
    toolkit: Any = RKNN(verbose=False)
    toolkit.config(target_platform=TARGET)
    steps: dict[str, Callable[[], Any]] = {
        "load": lambda: toolkit.load_caffe(model=prototxt, blobs=caffemodel),
        "build": lambda: toolkit.build(do_quantization=False),
        "start": lambda: toolkit.init_runtime(),
    }
    for name, step in steps.items():
        if step():
            sys.exit(f"rknn-toolkit2 does not {name} {Path(prototxt).name}")
    given = np.load(inputs)
    found = toolkit.inference(inputs=[given[name] for name in given.files], data_format="nchw")
    np.savez(results, **dict(zip(outputs, found, strict=True)))


if __name__ == "__main__":
    main(sys.argv[1:])
