"""Where a node of an ONNX file comes from, as PyTorch's two exporters tell it: module and user's line."""

from __future__ import annotations

import ast
import re
from typing import Any, Final

_SCOPES: Final = "pkg.torch.onnx.name_scopes"
_TRACE: Final = "pkg.torch.onnx.stack_trace"
_FRAME: Final = re.compile(r'^\s*File "(.+)", line (\d+), in ', re.MULTILINE)
_TORCH: Final = re.compile(r"[/\\](site|dist)-packages[/\\]torch[/\\]|^<")


def module_of(node: Any) -> str:
    """Return the path of the PyTorch module that a NodeProto comes from, empty for files of others.

    The older exporter names nodes ``/layer1/layer1.0/conv1/Conv``, the newer one keeps a list of scopes whose
    last one is the operator.
    """
    scopes = _noted(node, _SCOPES)
    if scopes:
        try:
            listed = ast.literal_eval(scopes)
            return str(listed[-2]) if isinstance(listed, list) and len(listed) > 1 else ""
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return ""
    path = ""
    for scope in node.name.split("/")[1:-1]:
        _, _, last = path.rpartition("/")
        inner = last and scope.startswith(f"{last}.")  # a list's item repeats the list's name
        path = f"{path.removesuffix(last)}{scope}" if inner else f"{path}/{scope}"
    return path.strip("/").replace("/", ".")


def line_of(node: Any) -> str:
    """Return the user's line as ``file:line``, or empty: the innermost frame outside PyTorch."""
    frames = _FRAME.findall(_noted(node, _TRACE))
    return next((f"{file}:{line}" for file, line in reversed(frames) if not _TORCH.search(file)), "")


def _noted(node: Any, key: str) -> str:
    return next((str(entry.value) for entry in node.metadata_props if entry.key == key), "")
