"""The map that an export writes beside its files: which value of the model each layer or node computes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from caffeforge.runtime.errors import FileError
from caffeforge.runtime.graph import Origin

PYTORCH = "pytorch"
ONNX = "onnx"

_TEXTS: Final = ("layer", "type", "value", "module", "source_op", "source")  # what is read of an entry


def read_map(path: Path) -> dict[str, dict[str, Any]]:
    """Return the entries of a map by layer name; none if there is no such file.

    Raises:
        FileError: it is no map.
    """
    try:
        layers = json.loads(path.read_text("utf-8"))["layers"]
        entries = {entry["layer"]: dict(entry) for entry in layers}
        if not all(isinstance(entry.get(key, ""), str) for entry in entries.values() for key in _TEXTS):
            raise ValueError
        return entries
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError):
        hint = "export the net again, or remove the file to compare by names alone"
        raise FileError("this is no map of a net", where=str(path), hint=hint) from None


def origin_of(entry: Mapping[str, Any]) -> Origin:
    """Return the origin that an entry tells."""
    return Origin(entry.get("module", ""), entry.get("source_op", ""), entry.get("source", ""))


def naming_of(entries: Mapping[str, Mapping[str, Any]]) -> str:
    """Return whose names the values of a map have: PyTorch's operators are called ``aten.relu.default``."""
    operators = [entry.get("source_op", "") for entry in entries.values()]
    if any(operator.startswith("aten.") for operator in operators):
        return PYTORCH
    return ONNX if any(operators) else ""
