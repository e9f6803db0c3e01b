"""One file of an exporter, with inputs and what the exporter's own framework computed of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

FILES = Path(__file__).parent / "files"


def write(exporter: str, name: str, model: bytes, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Save a model, and arrays in the order of its inputs and outputs."""
    folder = FILES / exporter
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.onnx").write_bytes(model)
    arrays: dict[str, Any] = {f"in{index}": np.asarray(array) for index, array in enumerate(inputs)}
    arrays |= {f"out{index}": np.asarray(array) for index, array in enumerate(outputs)}
    np.savez_compressed(folder / f"{name}.npz", **arrays)
    print(f"{exporter}/{name}: {len(model)} bytes")


def arrays(file: Path) -> tuple[list[Any], list[Any]]:
    """Return inputs and outputs that lie beside a model."""
    with np.load(file.with_suffix(".npz")) as held:
        sides = [
            [held[f"{side}{index}"] for index in range(len(held.files)) if f"{side}{index}" in held]
            for side in ("in", "out")
        ]
    return sides[0], sides[1]
