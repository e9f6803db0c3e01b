"""The models with test data that the onnx wheel carries: what becomes of each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"


def models() -> Iterator[tuple[str, Path]]:
    """Yield the name and file of each model, in order."""
    for file in sorted(DATA.glob("*/*/model.onnx")):
        yield f"{file.parts[-3]}/{file.parts[-2]}", file
    for file in sorted((DATA / "light").glob("*.onnx")):
        yield f"light/{file.stem}", file


def data_sets(file: Path) -> list[tuple[list[Any], list[Any]]]:
    """Return inputs and expected outputs as arrays; a light model has none beside it."""
    sets = []
    for folder in sorted(file.parent.glob("test_data_set_*")):
        sides = []
        for side in ("input", "output"):
            files = sorted(folder.glob(f"{side}_*.pb"), key=lambda f: int(f.stem.rpartition("_")[2]))
            sides.append([onnx.numpy_helper.to_array(TensorProto.FromString(f.read_bytes())) for f in files])
        sets.append((sides[0], sides[1]))
    return sets
