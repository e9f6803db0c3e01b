"""Runs OpenVINO's DetectionOutput, which takes the locations of a first stage as RefineDet does.

    openvino_detections.py FOLDER

Each folder in FOLDER holds attributes.json and inputs.npz, the inputs by position, and gets boxes.npy: rows
(image, class, score, left, top, right, bottom). It takes numpy and openvino, nothing of this project.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path


def run(folder: Path) -> None:
    """Build the operator, run it on the CPU in full precision and save the rows before the end mark."""
    import numpy as np
    import openvino  # type: ignore[import-not-found]
    from openvino.runtime import opset8  # type: ignore[import-not-found]

    given = np.load(folder / "inputs.npz")
    inputs = [opset8.parameter(given[name].shape, np.float32) for name in given.files]
    attributes = json.loads((folder / "attributes.json").read_text("utf-8"))
    operator = opset8.detection_output(*inputs[:3], attributes, *inputs[3:])
    compiled = openvino.Core().compile_model(
        openvino.Model([operator], inputs), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
    )
    (found,) = compiled([given[name] for name in given.files]).values()
    rows = found.reshape(-1, 7)
    ends = np.flatnonzero(rows[:, 0] == -1)
    np.save(folder / "boxes.npy", rows[: ends[0]] if len(ends) else rows)


def main(arguments: Sequence[str]) -> None:
    """Run each folder."""
    (folder,) = arguments
    for each in sorted(Path(folder).iterdir()):
        run(each)


if __name__ == "__main__":
    main(sys.argv[1:])
